//! Which updates bring a cluster to what is wanted. AWS takes one at a time, each of one type.

use aws_sdk_eks::types::{
    AuthenticationMode, EncryptionConfig, LogSetup, LogType, Logging, Provider, SupportType,
    UpdateAccessConfigRequest, UpgradePolicyRequest, VpcConfigRequest,
};
use resource::{Changes, Class, Error, Ref, Result};

use crate::spec::{Encryption, LOG_TYPES, Spec, VpcConfig};

/// One update of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// UpdateClusterVersion.
    Version(String),
    /// UpdateClusterConfig: subnets and security groups.
    Network(VpcConfigRequest),
    /// UpdateClusterConfig: from where the API is reached.
    Endpoint(VpcConfigRequest),
    /// UpdateClusterConfig: control plane logs.
    Logs(Logging),
    /// UpdateClusterConfig: how principals get access.
    Access(UpdateAccessConfigRequest),
    /// UpdateClusterConfig: what happens at the end of support.
    Policy(UpgradePolicyRequest),
    /// AssociateEncryptionConfig.
    Encryption(EncryptionConfig),
}

/// The updates that are still needed, in the order in which they are sent; an error where AWS has
/// no way to what is wanted. The version comes last: it takes longest.
pub(crate) fn steps(live: &Spec, target: &Spec, changes: &Changes) -> Vec<Result<Step>> {
    let touch =
        |paths: &[&str]| paths.iter().any(|path| changes.iter().any(|change| change.path.starts_with(path)));
    let vpc = |field: &str| format!("/resourcesVpcConfig/{field}");
    let network = [vpc("subnetRefs"), vpc("securityGroupRefs")];
    let endpoint = [vpc("endpointPublicAccess"), vpc("endpointPrivateAccess"), vpc("publicAccessCidrs")];
    let (from, to) = (&live.resources_vpc_config, &target.resources_vpc_config);
    let mut steps = Vec::new();
    if touch(&network.each_ref().map(String::as_str)) {
        steps.push(Ok(Step::Network(network_of(from, to))));
    }
    if touch(&endpoint.each_ref().map(String::as_str)) {
        steps.push(Ok(Step::Endpoint(endpoint_of(from, to))));
    }
    if touch(&["/logging"]) {
        let wanted = target.logging.as_ref().and_then(|logging| logging.enabled_types.clone());
        steps.push(Ok(Step::Logs(logging(&wanted.unwrap_or_default()))));
    }
    if touch(&["/accessConfig"]) {
        steps.extend(access(live, target));
    }
    if touch(&["/upgradePolicy"]) {
        let support = target.upgrade_policy.as_ref().and_then(|policy| policy.support_type.as_deref());
        let policy = UpgradePolicyRequest::builder().set_support_type(support.map(SupportType::from));
        steps.push(Ok(Step::Policy(policy.build())));
    }
    if touch(&["/encryptionConfig"]) {
        steps.extend(encryption(live, target));
    }
    if touch(&["/version"]) {
        steps.extend(version(live, target));
    }
    steps
}

/// Both lists go together: each with the other as it is, where that is not managed.
fn network_of(live: &VpcConfig, target: &VpcConfig) -> VpcConfigRequest {
    let groups = target.security_group_refs.as_deref().or(live.security_group_refs.as_deref());
    VpcConfigRequest::builder()
        .set_subnet_ids(Some(ids(&target.subnet_refs)))
        .set_security_group_ids(groups.map(ids))
        .build()
}

fn endpoint_of(live: &VpcConfig, target: &VpcConfig) -> VpcConfigRequest {
    let public = target.endpoint_public_access.or(live.endpoint_public_access);
    let cidrs = target.public_access_cidrs.clone().filter(|_| public == Some(true));
    VpcConfigRequest::builder()
        .set_endpoint_public_access(public)
        .set_endpoint_private_access(target.endpoint_private_access.or(live.endpoint_private_access))
        .set_public_access_cidrs(cidrs)
        .build()
}

/// The logs of a cluster: each type is either kept or not.
pub(crate) fn logging(enabled: &[String]) -> Logging {
    let (on, off): (Vec<_>, Vec<_>) =
        LOG_TYPES.iter().partition(|kind| enabled.iter().any(|enabled| enabled == *kind));
    let setup = |types: Vec<&str>, enabled| {
        let types: Vec<_> = types.into_iter().map(LogType::from).collect();
        let setup = LogSetup::builder().set_types(Some(types.clone())).enabled(enabled).build();
        (!types.is_empty()).then_some(setup)
    };
    let setups = [setup(on, true), setup(off, false)].into_iter().flatten().collect();
    Logging::builder().set_cluster_logging(Some(setups)).build()
}

/// As AWS takes it at creation and afterwards.
// The resources no longer matter to AWS, but are still asked for.
#[allow(deprecated)]
pub(crate) fn encryption_of(config: &Encryption) -> EncryptionConfig {
    let resources = config.resources.clone().unwrap_or_else(|| vec!["secrets".to_owned()]);
    let provider = Provider::builder().key_arn(&config.provider_key_arn).build();
    EncryptionConfig::builder().set_resources(Some(resources)).provider(provider).build()
}

fn encryption(live: &Spec, target: &Spec) -> Option<Result<Step>> {
    let wanted = target.encryption_config.as_ref()?;
    if let Some(config) = &live.encryption_config {
        return Some(Err(impossible(format!(
            "encryptionConfig cannot be changed: the cluster is encrypted with {}. Set that in the spec, or delete \
             this object and create it anew",
            config.provider_key_arn
        ))));
    }
    Some(Ok(Step::Encryption(encryption_of(wanted))))
}

/// The modes in the one direction that AWS allows, one at a time.
const MODES: [&str; 3] = ["CONFIG_MAP", "API_AND_CONFIG_MAP", "API"];

fn access(live: &Spec, target: &Spec) -> Option<Result<Step>> {
    let mode =
        |spec: &Spec| spec.access_config.as_ref().and_then(|access| access.authentication_mode.clone());
    let (wanted, has) = (mode(target)?, mode(live).unwrap_or_else(|| "CONFIG_MAP".to_owned()));
    let place = |mode: &str| MODES.iter().position(|known| *known == mode);
    let next = match (place(&has), place(&wanted)) {
        (Some(has), Some(wanted)) if has < wanted => MODES[has + 1],
        _ => {
            return Some(Err(impossible(format!(
                "accessConfig.authenticationMode cannot go from {has} to {wanted}: AWS only goes from CONFIG_MAP over \
                 API_AND_CONFIG_MAP to API. Set it to {has}"
            ))));
        }
    };
    let access = UpdateAccessConfigRequest::builder().authentication_mode(AuthenticationMode::from(next));
    Some(Ok(Step::Access(access.build())))
}

fn version(live: &Spec, target: &Spec) -> Option<Result<Step>> {
    let (wanted, has) = (target.version.as_deref()?, live.version.as_deref().unwrap_or_default());
    Some(next_version(has, wanted).map(Step::Version))
}

/// The next version on the way up.
fn next_version(has: &str, wanted: &str) -> Result<String> {
    let minor = |version: &str| version.strip_prefix("1.")?.parse::<u32>().ok();
    match (minor(has), minor(wanted)) {
        (Some(has), Some(wanted)) if has < wanted => Ok(format!("1.{}", has + 1)),
        (Some(_), Some(_)) => Err(impossible(format!(
            "the cluster runs version {has} and the spec asks for {wanted}: a cluster is never downgraded. Set \
             version to {has}, or leave it out"
        ))),
        _ => Err(impossible(format!("there is no known way from version {has} to {wanted}"))),
    }
}

fn impossible(message: String) -> Error {
    Error::new(Class::Invalid, "spec", message)
}

/// The ids that references lead to.
pub(crate) fn ids<T>(refs: &[Ref<T>]) -> Vec<String> {
    refs.iter().map(|one| one.id().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;

    /// What is sent to bring `live` to `wanted`.
    fn sent(live: &Value, wanted: &Value) -> Vec<Result<Step>> {
        let schema = resource::schema_of::<Spec>();
        let difference = resource::diff::diff(&schema, wanted, live, &BTreeSet::new(), &BTreeSet::new());
        assert_eq!(difference.forbidden, []);
        let target = serde_json::from_value(difference.target).unwrap();
        steps(&serde_json::from_value(live.clone()).unwrap(), &target, &difference.changes)
    }

    fn spec(part: Value) -> Value {
        let mut spec = json!({
            "clusterName": "prod", "roleArn": "arn:aws:iam::123456789012:role/eks",
            "resourcesVpcConfig": {"subnetRefs": [{"id": "subnet-a"}, {"id": "subnet-b"}]},
        });
        merge(&mut spec, part);
        spec
    }

    fn merge(into: &mut Value, part: Value) {
        match part {
            Value::Object(fields) => fields.into_iter().for_each(|(key, value)| merge(&mut into[key], value)),
            plain => *into = plain,
        }
    }

    fn one(live: Value, wanted: Value) -> Result<Step> {
        let mut steps = sent(&spec(live), &spec(wanted));
        assert_eq!(steps.len(), 1, "{steps:?}");
        steps.remove(0)
    }

    #[test]
    fn nothing_differs_nothing_is_sent() {
        let live = spec(json!({"version": "1.33", "logging": {"enabledTypes": ["api", "audit"]}}));
        let wanted = spec(json!({"version": "1.33", "logging": {"enabledTypes": ["audit", "api"]}}));
        assert!(sent(&live, &wanted).is_empty());
    }

    #[test]
    fn versions_go_up_one_minor_at_a_time() {
        let step = |has: &str, wanted: &str| one(json!({"version": has}), json!({"version": wanted}));
        assert_eq!(step("1.31", "1.33").unwrap(), Step::Version("1.32".to_owned()));
        assert_eq!(step("1.32", "1.33").unwrap(), Step::Version("1.33".to_owned()));
        assert_eq!(step("1.9", "1.10").unwrap(), Step::Version("1.10".to_owned()));
        let error = step("1.33", "1.31").unwrap_err();
        assert!(error.message.contains("never downgraded") && error.message.contains("Set version to 1.33"));
        assert_eq!(error.class, Class::Invalid);
    }

    #[test]
    fn authentication_modes_go_towards_api_one_at_a_time() {
        let access = |mode: &str| json!({"accessConfig": {"authenticationMode": mode}});
        let step = |has: &str, wanted: &str| one(access(has), access(wanted));
        let to = |mode: AuthenticationMode| {
            Step::Access(UpdateAccessConfigRequest::builder().authentication_mode(mode).build())
        };
        assert_eq!(step("CONFIG_MAP", "API").unwrap(), to(AuthenticationMode::ApiAndConfigMap));
        assert_eq!(step("API_AND_CONFIG_MAP", "API").unwrap(), to(AuthenticationMode::Api));
        assert!(step("API", "API_AND_CONFIG_MAP").unwrap_err().message.contains("cannot go from API"));
    }

    #[test]
    fn what_is_sent_keeps_what_is_not_managed() {
        let live = json!({"resourcesVpcConfig": {
            "securityGroupRefs": [{"id": "sg-1"}], "endpointPublicAccess": true, "endpointPrivateAccess": false,
            "publicAccessCidrs": ["0.0.0.0/0"],
        }});
        let network = json!({"resourcesVpcConfig": {"subnetRefs": [{"id": "subnet-a"}, {"id": "subnet-c"}]}});
        let expected = VpcConfigRequest::builder()
            .subnet_ids("subnet-a")
            .subnet_ids("subnet-c")
            .security_group_ids("sg-1")
            .build();
        assert_eq!(one(live.clone(), network).unwrap(), Step::Network(expected));
        let endpoint = json!({"resourcesVpcConfig": {"endpointPrivateAccess": true}});
        let expected =
            VpcConfigRequest::builder().endpoint_public_access(true).endpoint_private_access(true).build();
        assert_eq!(one(live.clone(), endpoint).unwrap(), Step::Endpoint(expected));
        let closed = json!({"resourcesVpcConfig": {
            "endpointPublicAccess": false, "endpointPrivateAccess": true, "publicAccessCidrs": ["198.51.100.0/24"],
        }});
        let expected =
            VpcConfigRequest::builder().endpoint_public_access(false).endpoint_private_access(true).build();
        assert_eq!(one(live, closed).unwrap(), Step::Endpoint(expected));
    }

    #[test]
    fn logs_that_are_not_wanted_are_turned_off() {
        let logs = |types: &[&str]| json!({"logging": {"enabledTypes": types}});
        let Step::Logs(sent) = one(logs(&["audit"]), logs(&["api", "scheduler"])).unwrap() else { panic!() };
        let types =
            |n: usize| sent.cluster_logging()[n].types().iter().map(LogType::as_str).collect::<Vec<_>>();
        assert_eq!(types(0), ["api", "scheduler"]);
        assert_eq!(types(1), ["audit", "authenticator", "controllerManager"]);
        assert_eq!(sent.cluster_logging()[0].enabled(), Some(true));
        // None at all.
        let Step::Logs(none) = one(logs(&["audit"]), logs(&[])).unwrap() else { panic!() };
        assert_eq!((none.cluster_logging().len(), none.cluster_logging()[0].enabled()), (1, Some(false)));
    }

    #[test]
    fn encryption_is_added_and_never_changed() {
        let key = |id: &str| {
            let arn = format!("arn:aws:kms:eu-west-1:123456789012:key/{id}");
            json!({"encryptionConfig": {"providerKeyArn": arn, "resources": ["secrets"]}})
        };
        assert!(matches!(one(json!({}), key("a")).unwrap(), Step::Encryption(_)));
        assert!(one(key("a"), key("b")).unwrap_err().message.contains("cannot be changed"));
    }

    #[test]
    fn each_type_of_update_goes_by_itself_and_the_version_last() {
        let live = spec(
            json!({"version": "1.31", "logging": {"enabledTypes": []}, "upgradePolicy": {"supportType": "EXTENDED"}}),
        );
        let wanted = spec(json!({
            "version": "1.32", "logging": {"enabledTypes": ["api"]}, "upgradePolicy": {"supportType": "STANDARD"},
            "resourcesVpcConfig": {"endpointPrivateAccess": true, "securityGroupRefs": [{"id": "sg-1"}]},
        }));
        let steps: Vec<_> = sent(&live, &wanted).into_iter().map(Result::unwrap).collect();
        assert!(matches!(
            &steps[..],
            [Step::Network(_), Step::Endpoint(_), Step::Logs(_), Step::Policy(_), Step::Version(_)]
        ));
    }
}
