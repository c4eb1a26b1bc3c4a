//! Which class an AWS error code belongs to.
//!
//! The general list, for all services. Where a kind knows better, it says so with
//! [`resource::Error::class`].

use resource::Class;

/// Error codes by class; the first that matches wins. A `*` at either end stands for anything.
const CODES: &[(Class, &[&str])] = &[
    (Class::TokenMismatch, &["IdempotentParameterMismatch*", "ClientTokenConflict*"]),
    (
        Class::Throttled,
        &[
            "*Throttl*",
            "TooManyRequests*",
            "RequestLimitExceeded*",
            "BandwidthLimitExceeded",
            "ProvisionedThroughputExceeded*",
            "TransactionInProgress*",
            "SlowDown",
            "PriorRequestNotComplete",
        ],
    ),
    (
        Class::Credentials,
        &[
            "ExpiredToken*",
            "RequestExpired",
            "InvalidClientTokenId",
            "InvalidAccessKeyId",
            "InvalidToken",
            "TokenRefreshRequired",
            "UnrecognizedClient*",
            "SignatureDoesNotMatch",
            "InvalidSignature*",
            "IncompleteSignature*",
            "MissingAuthenticationToken*",
            "RequestTimeTooSkewed",
        ],
    ),
    (
        Class::Denied,
        &[
            "*AccessDenied*",
            "Unauthorized*",
            "NotAuthorized*",
            "AuthFailure*",
            "AuthorizationError*",
            "OptInRequired",
        ],
    ),
    (
        Class::Quota,
        &[
            "*LimitExceeded*",
            "*QuotaExceeded*",
            "TooMany*",
            "InsufficientFreeAddressesInSubnet",
            "InsufficientInstanceCapacity",
            "InsufficientHostCapacity",
            "InsufficientCapacity*",
        ],
    ),
    (Class::Exists, &["*AlreadyExists*", "*Duplicate*", "*AlreadyOwnedByYou", "*NameExists"]),
    (
        Class::Busy,
        &[
            "IncorrectState*",
            "IncorrectInstanceState*",
            "IncorrectModificationState*",
            "InvalidDBInstanceState*",
            "InvalidDBClusterState*",
            "InvalidDBSubnetGroupState*",
            "EntityTemporarilyUnmodifiable*",
            "*DeletedRecently",
        ],
    ),
    (
        Class::Dependency,
        &["DependencyViolation*", "DeleteConflict*", "*InUse", "*InUseException", "BucketNotEmpty"],
    ),
    (
        Class::Conflict,
        &["Concurrent*", "OperationAborted", "OperationConflict*", "ResourceConflict*", "ConflictException"],
    ),
    (Class::NotFound, &["*NotFound*", "*NoSuch*", "*NonExistent*", "*DoesNotExist*"]),
    (
        Class::Transient,
        &[
            "Internal*",
            "ServiceUnavailable*",
            "ServiceFailure*",
            "Unavailable",
            "ServerInternal",
            "RequestTimeout*",
        ],
    ),
];

/// Codes that mean "still used by something" where something is taken away, and "not now"
/// elsewhere.
const STATE_OF_OTHERS: &[&str] = &["InvalidDBClusterState*", "InvalidDBSubnetGroupState*"];

/// Beginnings of the operations that take something away.
const REMOVALS: &[&str] =
    &["Delete", "Detach", "Disassociate", "Release", "Remove", "Revoke", "Deregister", "Terminate"];

/// Sorts an AWS error: by its code, and by the HTTP status where no rule knows the code.
pub fn classify(operation: &str, code: &str, status: u16) -> Class {
    let is_removal = REMOVALS.iter().any(|verb| operation.starts_with(verb));
    if matches("ResourceInUse*", code) {
        return in_use(operation, is_removal);
    }
    if is_removal && STATE_OF_OTHERS.iter().any(|pattern| matches(pattern, code)) {
        return Class::Dependency;
    }
    let rule = CODES.iter().find(|(_, codes)| codes.iter().any(|pattern| matches(pattern, code)));
    rule.map_or_else(|| by_status(status), |(class, _)| *class)
}

/// `ResourceInUse`: the name is taken on create, a change is under way on update (EKS, DynamoDB).
fn in_use(operation: &str, is_removal: bool) -> Class {
    if is_removal {
        Class::Dependency
    } else if operation.starts_with("Create") {
        Class::Exists
    } else {
        Class::Busy
    }
}

fn by_status(status: u16) -> Class {
    match status {
        401 | 403 => Class::Denied,
        404 => Class::NotFound,
        408 => Class::Transient,
        409 => Class::Conflict,
        429 => Class::Throttled,
        400..500 => Class::Invalid,
        _ => Class::Transient,
    }
}

fn matches(pattern: &str, code: &str) -> bool {
    let (open_start, pattern) = pattern.strip_prefix('*').map_or((false, pattern), |rest| (true, rest));
    let (open_end, pattern) = pattern.strip_suffix('*').map_or((false, pattern), |rest| (true, rest));
    match (open_start, open_end) {
        (false, false) => code == pattern,
        (false, true) => code.starts_with(pattern),
        (true, false) => code.ends_with(pattern),
        (true, true) => code.contains(pattern),
    }
}

/// The class as a label of metrics and logs.
pub(crate) fn label(class: Class) -> &'static str {
    match class {
        Class::NotFound => "not_found",
        Class::Throttled => "throttled",
        Class::Denied => "denied",
        Class::Credentials => "credentials",
        Class::Busy => "busy",
        Class::Dependency => "dependency",
        Class::Exists => "exists",
        Class::Conflict => "conflict",
        Class::Quota => "quota",
        Class::Invalid => "invalid",
        Class::TokenMismatch => "token_mismatch",
        Class::NotPropagated => "not_propagated",
        Class::Fenced => "fenced",
        Class::Transient => "transient",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_statuses_sort_as_listed() {
        let cases = [
            ("DescribeVpcs", "InvalidVpcID.NotFound", 400, Class::NotFound),
            ("GetRole", "NoSuchEntity", 404, Class::NotFound),
            ("GetQueueUrl", "AWS.SimpleQueueService.NonExistentQueue", 400, Class::NotFound),
            ("HeadBucket", "", 404, Class::NotFound),
            ("DescribeVpcs", "RequestLimitExceeded", 503, Class::Throttled),
            ("ListRoles", "Throttling", 400, Class::Throttled),
            ("RunInstances", "EC2ThrottledException", 400, Class::Throttled),
            ("PutObject", "SlowDown", 503, Class::Throttled),
            ("PutObject", "", 429, Class::Throttled),
            ("CreateVpc", "UnauthorizedOperation", 403, Class::Denied),
            ("CreateVpc", "AuthFailure", 401, Class::Denied),
            ("CreateRole", "AccessDenied", 403, Class::Denied),
            ("CreateTable", "AccessDeniedException", 400, Class::Denied),
            ("CreateRole", "", 403, Class::Denied),
            ("CreateRole", "ExpiredToken", 403, Class::Credentials),
            ("CreateRole", "InvalidClientTokenId", 403, Class::Credentials),
            ("CreateVpc", "RequestExpired", 400, Class::Credentials),
            ("DeleteVpc", "DependencyViolation", 400, Class::Dependency),
            ("DeleteRole", "DeleteConflict", 409, Class::Dependency),
            ("DeleteSecurityGroup", "InvalidGroup.InUse", 400, Class::Dependency),
            ("ReleaseAddress", "InvalidIPAddress.InUse", 400, Class::Dependency),
            ("DeleteBucket", "BucketNotEmpty", 409, Class::Dependency),
            ("DeleteCluster", "ResourceInUseException", 409, Class::Dependency),
            ("UpdateClusterConfig", "ResourceInUseException", 409, Class::Busy),
            ("CreateTable", "ResourceInUseException", 400, Class::Exists),
            ("DeleteDBSubnetGroup", "InvalidDBSubnetGroupStateFault", 400, Class::Dependency),
            ("ModifyDBSubnetGroup", "InvalidDBSubnetGroupStateFault", 400, Class::Busy),
            ("DeleteDBInstance", "InvalidDBInstanceState", 400, Class::Busy),
            ("DetachInternetGateway", "IncorrectState", 400, Class::Busy),
            ("UpdateRole", "EntityTemporarilyUnmodifiable", 409, Class::Busy),
            ("CreateRole", "EntityAlreadyExists", 409, Class::Exists),
            ("CreateSecurityGroup", "InvalidGroup.Duplicate", 400, Class::Exists),
            ("AuthorizeSecurityGroupIngress", "InvalidPermission.Duplicate", 400, Class::Exists),
            ("CreateBucket", "BucketAlreadyOwnedByYou", 409, Class::Exists),
            ("CreateQueue", "QueueNameExists", 400, Class::Exists),
            ("UpdateRole", "ConcurrentModification", 409, Class::Conflict),
            ("CreateTags", "ConcurrentTagAccess", 400, Class::Conflict),
            ("PutBucketTagging", "OperationAborted", 409, Class::Conflict),
            ("CreateFunction", "", 409, Class::Conflict),
            ("CreateVpc", "VpcLimitExceeded", 400, Class::Quota),
            ("CreateInternetGateway", "InternetGatewayLimitExceeded", 400, Class::Quota),
            ("CreateRole", "LimitExceeded", 409, Class::Quota),
            ("PutRule", "LimitExceededException", 400, Class::Quota),
            ("CreateDBInstance", "InstanceQuotaExceeded", 400, Class::Quota),
            ("CreateBucket", "TooManyBuckets", 400, Class::Quota),
            ("RunInstances", "InsufficientInstanceCapacity", 500, Class::Quota),
            ("CreateVpc", "InvalidVpc.Range", 400, Class::Invalid),
            ("CreateSubnet", "InvalidSubnet.Conflict", 400, Class::Invalid),
            ("CreateRole", "MalformedPolicyDocument", 400, Class::Invalid),
            ("CreateVpc", "IdempotentParameterMismatch", 400, Class::TokenMismatch),
            ("CreateFileSystem", "IdempotentParameterMismatchException", 400, Class::TokenMismatch),
            ("CreateFleet", "ClientTokenConflict", 409, Class::TokenMismatch),
            ("CreateResource", "ClientTokenConflictException", 400, Class::TokenMismatch),
            ("CreateVpc", "InternalError", 500, Class::Transient),
            ("CreateVpc", "Unavailable", 503, Class::Transient),
            ("CreateVpc", "RequestTimeout", 400, Class::Transient),
            ("CreateVpc", "SomethingNew", 502, Class::Transient),
            ("CreateVpc", "", 500, Class::Transient),
        ];
        for (operation, code, status, class) in cases {
            assert_eq!(classify(operation, code, status), class, "{operation}: {code} {status}");
        }
    }
}
