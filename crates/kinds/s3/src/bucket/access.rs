//! A bucket as its account reaches it, and what its answers mean.

use std::error::Error as StdError;

use aws::{Answer, Clients, or_absent};
use aws_sdk_s3::Client;
use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use resource::{Call, Class, Error, Result, Scope};

use crate::permission::permission;

/// The one code that means: no such bucket.
pub(super) const ABSENT: &[&str] = &["NoSuchBucket"];

/// The codes by which S3 says that a bucket is in another region than the one that was asked.
const ELSEWHERE: &[&str] =
    &["PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"];

/// A bucket, the account that must own it, and the client of its region.
pub(super) struct Bucket {
    pub(super) client: Client,
    pub(super) name: String,
    /// AWS refuses a call when the bucket is another account's.
    pub(super) owner: String,
    pub(super) region: String,
    pub(super) partition: String,
}

/// A call on a bucket, refused by AWS where another account owns it.
macro_rules! ask {
    ($bucket:expr, $operation:ident $(, $field:ident = $value:expr)*) => {
        $bucket
            .client
            .$operation()
            .bucket(&$bucket.name)
            .expected_bucket_owner(&$bucket.owner)
            $(.$field($value))*
            .send()
            .await
    };
}
pub(super) use ask;

impl Bucket {
    /// The bucket of that name, in the region of its spec or else the operator's.
    pub(super) async fn reach(clients: &Clients<Client>, call: &Call, name: &str) -> Result<Self> {
        let region = call.spec["region"].as_str().filter(|region| !region.is_empty());
        let region = region.unwrap_or(&call.scope.region).to_owned();
        let scope = Scope { region, ..call.scope.clone() };
        Ok(Self {
            client: clients.get(&scope).await?,
            name: name.to_owned(),
            owner: scope.account_id,
            region: scope.region,
            partition: scope.partition,
        })
    }

    /// The output of a call; errors say where the bucket is when it is elsewhere.
    pub(super) fn answer<T, E>(&self, result: Sent<T, E>) -> Result<T>
    where
        E: ProvideErrorMetadata + StdError + 'static,
    {
        let region = region_named(&result);
        let answer = result.answer_permitted_by(permission);
        answer.map_err(|error| self.elsewhere(error, region))
    }

    /// The same; None where AWS itself answers with one of these codes.
    pub(super) fn answer_or_unset<T, E>(&self, result: Sent<T, E>, codes: &[&str]) -> Result<Option<T>>
    where
        E: ProvideErrorMetadata + StdError + 'static,
    {
        or_absent(self.answer(result), codes)
    }

    fn elsewhere(&self, error: Error, region: Option<String>) -> Error {
        if !ELSEWHERE.contains(&error.code.as_str()) {
            return error;
        }
        let (name, asked) = (&self.name, &self.region);
        let message = match region.filter(|region| region != asked) {
            Some(region) => format!(
                "the bucket {name} is in the region {region}, not in {asked}: delete this object and create \
                 it anew with spec.region: {region}"
            ),
            None => format!("the bucket {name} is not in the region {asked}: {}", error.message),
        };
        Error { class: Class::Invalid, message, ..error }
    }
}

/// The SDK's result of a call.
pub(super) type Sent<T, E> = std::result::Result<T, SdkError<E, HttpResponse>>;

/// The region in which S3 says the bucket is: in a header, or in the body.
fn region_named<T, E>(result: &Sent<T, E>) -> Option<String> {
    let response = result.as_ref().err()?.raw_response()?;
    let header = response.headers().get("x-amz-bucket-region");
    header.or_else(|| region_in(response.body().bytes()?)).map(str::to_owned)
}

fn region_in(body: &[u8]) -> Option<&str> {
    let (_, rest) = std::str::from_utf8(body).ok()?.split_once("<Region>")?;
    rest.split_once('<').map(|(region, _)| region)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::result_large_err)]
    use super::*;
    use aws_sdk_s3::config::{BehaviorVersion, Config};
    use aws_sdk_s3::error::ErrorMetadata;
    use aws_sdk_s3::operation::get_bucket_tagging::{GetBucketTaggingError, GetBucketTaggingOutput};
    use aws_sdk_s3::primitives::SdkBody;

    fn bucket() -> Bucket {
        let config = Config::builder().behavior_version(BehaviorVersion::latest()).build();
        Bucket {
            client: Client::from_conf(config),
            name: "pictures".to_owned(),
            owner: "123456789012".to_owned(),
            region: "eu-west-1".to_owned(),
            partition: "aws".to_owned(),
        }
    }

    fn refused(
        status: u16,
        code: &str,
        body: &'static str,
    ) -> Sent<GetBucketTaggingOutput, GetBucketTaggingError> {
        let mut response = HttpResponse::new(status.try_into().unwrap(), SdkBody::from(body));
        response.headers_mut().insert("x-amz-request-id", "R1");
        if status == 301 {
            response.headers_mut().insert("x-amz-bucket-region", "us-west-2");
        }
        let meta = ErrorMetadata::builder().code(code).message("as AWS says").build();
        Err(SdkError::service_error(GetBucketTaggingError::generic(meta), response))
    }

    #[test]
    fn a_bucket_elsewhere_is_named_with_its_region() {
        let says = |status, code, body| bucket().answer(refused(status, code, body)).unwrap_err();
        let error = says(301, "PermanentRedirect", "");
        assert!(error.message.contains("is in the region us-west-2, not in eu-west-1"), "{error}");
        assert_eq!(error.class, Class::Invalid);
        let error = says(400, "AuthorizationHeaderMalformed", "<Region>us-east-1</Region>");
        assert!(error.message.contains("spec.region: us-east-1"), "{error}");
        let error = says(400, "IllegalLocationConstraintException", "");
        assert!(error.message.contains("is not in the region eu-west-1: as AWS says"), "{error}");
        assert!(says(403, "AccessDenied", "").message.starts_with("as AWS says"));
    }

    #[test]
    fn only_the_codes_asked_for_mean_unset() {
        let answer = |code, codes: &[&str]| bucket().answer_or_unset(refused(404, code, ""), codes);
        assert!(answer("NoSuchBucket", ABSENT).unwrap().is_none());
        assert!(answer("NoSuchTagSet", ABSENT).is_err());
    }
}
