//! Calls through the SDK to a local HTTP server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aws::{Answer, Clients, Metrics, Options, Sessions};
use aws_config::{BehaviorVersion, ConfigLoader, Region};
use aws_credential_types::Credentials;
use aws_credential_types::provider::ProvideCredentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::future::ProvideCredentials as Provided;
use aws_sdk_sts::Client;
use aws_sdk_sts::config::Builder;
use prometheus_client::registry::Registry;
use resource::{Class, Scope};
use server::{Reply, Server};

const IDENTITY: &str = "<GetCallerIdentityResponse><GetCallerIdentityResult>\
    <Arn>arn:aws-cn:sts::123456789012:assumed-role/operator/session</Arn><UserId>u</UserId>\
    <Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>";

const ROLE: &str = "arn:aws:iam::123456789012:role/r";

/// The answer of a query API of AWS.
fn refusal(status: u16, code: &str, message: &str) -> Reply {
    let error = format!("<Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error>");
    let body = format!("<ErrorResponse>{error}<RequestId>in-body</RequestId></ErrorResponse>");
    Reply::new(status, body).header("x-amzn-requestid: in-header")
}

/// What a front end's 500 looks like.
fn broken() -> Reply {
    refusal(500, "InternalFailure", "something broke")
}

fn scope() -> Scope {
    Scope {
        provider: String::new(),
        account_id: "123456789012".to_owned(),
        region: "eu-central-1".to_owned(),
        partition: "aws".to_owned(),
    }
}

/// The project's sessions over a test's endpoint.
struct Bench {
    sessions: Arc<Sessions>,
    clients: Clients<Client>,
    registry: Registry,
    open: Arc<AtomicBool>,
}

impl Bench {
    async fn new(loader: ConfigLoader) -> Self {
        let mut registry = Registry::default();
        let open = Arc::new(AtomicBool::new(true));
        let lease = open.clone();
        let fence = move || match lease.load(Ordering::SeqCst) {
            true => Ok(()),
            false => Err("the lease is not held".to_owned()),
        };
        let options = Options { fence: Arc::new(fence), metrics: Metrics::register(&mut registry) };
        let sessions = Sessions::from_config(options, loader.load().await);
        let clients = Clients::new(sessions.clone(), |config, guard| {
            Client::from_conf(Builder::from(config).interceptor(guard).build())
        });
        Self { sessions, clients, registry, open }
    }

    async fn at(endpoint: &str) -> Self {
        Self::new(loader(endpoint).credentials_provider(keys())).await
    }

    async fn client(&self) -> Client {
        self.clients.get(&scope()).await.unwrap()
    }

    /// A call that only reads.
    async fn read(&self) -> resource::Result<()> {
        self.client().await.get_caller_identity().send().await.answer().map(drop)
    }

    /// A call that counts as a change.
    async fn change(&self) -> resource::Result<()> {
        let call = self.client().await.assume_role().role_arn(ROLE).role_session_name("test");
        call.send().await.answer().map(drop)
    }

    fn metrics(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        text
    }
}

fn loader(endpoint: &str) -> ConfigLoader {
    let loader = aws_config::defaults(BehaviorVersion::latest());
    loader.region(Region::new("eu-central-1")).endpoint_url(endpoint)
}

fn keys() -> Credentials {
    Credentials::new("AKIAEXAMPLE", "secret", None, None, "test")
}

#[derive(Debug)]
struct NoCredentials;

impl ProvideCredentials for NoCredentials {
    fn provide_credentials<'a>(&'a self) -> Provided<'a>
    where
        Self: 'a,
    {
        Provided::ready(Err(CredentialsError::not_loaded("nothing in the environment")))
    }
}

#[tokio::test]
async fn a_read_is_tried_three_times_and_a_change_sent_once() {
    let server = Server::start(|_| broken()).await;
    let bench = Bench::at(&server.endpoint).await;

    let error = bench.read().await.unwrap_err();
    assert_eq!(error.class, Class::Transient);
    assert_eq!(server.count("GetCallerIdentity"), 3);

    let error = bench.change().await.unwrap_err();
    assert_eq!(error.class, Class::Transient);
    assert_eq!((error.operation.as_str(), error.code.as_str()), ("AssumeRole", "InternalFailure"));
    assert_eq!(server.count("AssumeRole"), 1);

    let metrics = bench.metrics();
    let read = r#"konfig_aws_calls_total{service="STS",operation="GetCallerIdentity",outcome="transient"} 3"#;
    assert!(metrics.contains(read), "{metrics}");
    let change = r#"konfig_aws_call_duration_seconds_count{service="STS",operation="AssumeRole"} 1"#;
    assert!(metrics.contains(change), "{metrics}");
}

#[tokio::test]
async fn a_throttled_change_is_not_sent_again_either() {
    let server = Server::start(|_| refusal(400, "Throttling", "slow down")).await;
    let bench = Bench::at(&server.endpoint).await;
    assert_eq!(bench.change().await.unwrap_err().class, Class::Throttled);
    assert_eq!(server.count("AssumeRole"), 1);
}

/// The engine paces changes before it writes that it makes them; after that nothing holds them back.
#[tokio::test]
async fn a_change_is_sent_at_once_however_many_were_throttled() {
    let server = Server::start(|_| refusal(400, "Throttling", "slow down")).await;
    let bench = Bench::at(&server.endpoint).await;
    let start = std::time::Instant::now();
    for _ in 0..10 {
        bench.change().await.unwrap_err();
    }
    assert_eq!(server.count("AssumeRole"), 10);
    assert!(start.elapsed() < std::time::Duration::from_secs(5), "held back: {:?}", start.elapsed());
}

#[tokio::test]
async fn a_throttled_read_is_left_to_the_engine() {
    let server = Server::start(|_| refusal(400, "Throttling", "slow down")).await;
    let bench = Bench::at(&server.endpoint).await;
    assert_eq!(bench.read().await.unwrap_err().class, Class::Throttled);
    assert_eq!(server.count("GetCallerIdentity"), 1);
}

#[tokio::test]
async fn a_change_whose_connection_breaks_is_sent_once() {
    let server = Server::start(|_| Reply::hang_up()).await;
    let bench = Bench::at(&server.endpoint).await;
    let error = bench.change().await.unwrap_err();
    assert_eq!(error.class, Class::Transient);
    assert!(error.message.starts_with("no answer from AWS: "), "{error}");
    assert_eq!(server.count("AssumeRole"), 1);
}

#[tokio::test]
async fn a_client_asking_for_more_attempts_still_sends_a_change_once() {
    let server = Server::start(|_| broken()).await;
    let bench = Bench::at(&server.endpoint).await;
    let eager = Builder::default().retry_config(aws_sdk_sts::config::retry::RetryConfig::standard());
    let call = bench.client().await.assume_role().role_arn(ROLE).role_session_name("test");
    call.customize().config_override(eager).send().await.unwrap_err();
    assert_eq!(server.count("AssumeRole"), 1);
}

#[tokio::test]
async fn a_closed_fence_stops_changes_and_not_reads() {
    let server = Server::start(|_| Reply::new(200, IDENTITY)).await;
    let bench = Bench::at(&server.endpoint).await;
    bench.open.store(false, Ordering::SeqCst);

    let error = bench.change().await.unwrap_err();
    assert_eq!(error.class, Class::Fenced);
    assert_eq!(error.to_string(), "AssumeRole: not sent: the lease is not held");
    assert_eq!(server.count("AssumeRole"), 0);

    bench.read().await.unwrap();
    assert_eq!(server.count("GetCallerIdentity"), 1);
    let metrics = bench.metrics();
    assert!(metrics.contains(r#"operation="AssumeRole",outcome="fenced"} 1"#), "{metrics}");
    assert!(metrics.contains(r#"operation="GetCallerIdentity",outcome="ok"} 1"#), "{metrics}");
}

#[tokio::test]
async fn a_client_without_the_guard_sends_nothing() {
    let server = Server::start(|_| Reply::new(200, IDENTITY)).await;
    let bench = Bench::at(&server.endpoint).await;
    let config = bench.sessions.config(&scope()).await.unwrap();
    let error = Client::new(&config).get_caller_identity().send().await.answer().unwrap_err();
    assert_eq!(error.class, Class::Invalid);
    assert!(error.message.contains("without the guard"), "{error}");
    assert_eq!(server.count("GetCallerIdentity"), 0);
}

#[tokio::test]
async fn an_answer_becomes_an_error_with_all_that_aws_said() {
    let server = Server::start(|_| refusal(403, "AccessDenied", "you may not")).await;
    let bench = Bench::at(&server.endpoint).await;
    let error = bench.change().await.unwrap_err();
    assert_eq!(error.class, Class::Denied);
    assert_eq!(
        error.to_string(),
        "AssumeRole: AccessDenied: you may not (the credentials need the permission sts:AssumeRole) \
         (request id in-header)"
    );
    let metrics = bench.metrics();
    assert!(metrics.contains(r#"operation="AssumeRole",outcome="denied"} 1"#), "{metrics}");
}

#[tokio::test]
async fn a_denial_that_names_the_permission_is_left_as_it_is() {
    let said = "User: u is not authorized to perform: sts:AssumeRole on resource: r";
    let server = Server::start(move |_| refusal(403, "AccessDenied", said)).await;
    let bench = Bench::at(&server.endpoint).await;
    assert_eq!(bench.change().await.unwrap_err().message, said);
}

#[tokio::test]
async fn expired_credentials_are_told_from_missing_permissions() {
    let server = Server::start(|_| refusal(403, "ExpiredToken", "expired")).await;
    let bench = Bench::at(&server.endpoint).await;
    assert_eq!(bench.change().await.unwrap_err().class, Class::Credentials);
}

#[tokio::test]
async fn the_request_id_is_found_in_the_body_too() {
    let body = "<ErrorResponse><Error><Code>MalformedPolicyDocument</Code><Message>m</Message></Error>\
        <RequestId>in-body</RequestId></ErrorResponse>";
    let server = Server::start(move |_| Reply::new(400, body)).await;
    let error = Bench::at(&server.endpoint).await.change().await.unwrap_err();
    assert_eq!(error.class, Class::Invalid);
    assert_eq!(error.request_id, "in-body");
}

#[tokio::test]
async fn absence_takes_one_of_the_codes_and_aws_itself() {
    let server = Server::start(|action| match action {
        "AssumeRole" => refusal(404, "NoSuchEntity", "gone"),
        _ => Reply::new(404, "<html>no such page</html>"),
    })
    .await;
    let bench = Bench::at(&server.endpoint).await;
    let client = bench.client().await;
    let role = || client.assume_role().role_arn(ROLE).role_session_name("test").send();

    assert!(role().await.answer_or_absent(&["NoSuchEntity"]).unwrap().is_none());
    let error = role().await.answer_or_absent(&["NoSuchBucket"]).unwrap_err();
    assert_eq!(error.class, Class::NotFound);

    let error =
        client.get_caller_identity().send().await.answer_or_absent(&["NoSuchEntity", ""]).unwrap_err();
    assert_eq!(error.class, Class::Transient);
    assert!(error.message.contains("something that is not AWS"), "{error}");
}

#[tokio::test]
async fn an_endpoint_that_is_not_there_is_transient_and_says_why() {
    let server = Server::start(|_| broken()).await;
    let endpoint = server.endpoint.clone();
    server.stop().await;
    let error = Bench::at(&endpoint).await.change().await.unwrap_err();
    assert_eq!(error.class, Class::Transient);
    assert!(error.message.contains("Connection refused"), "{error}");
    assert!(error.code.is_empty() && error.request_id.is_empty());
}

#[tokio::test]
async fn missing_credentials_are_not_transient() {
    let server = Server::start(|_| broken()).await;
    let bench = Bench::new(loader(&server.endpoint).credentials_provider(NoCredentials)).await;
    let error = bench.change().await.unwrap_err();
    assert_eq!(error.class, Class::Credentials);
    assert!(error.message.contains("nothing in the environment"), "{error}");
    assert_eq!(server.count("AssumeRole"), 0);
}

#[tokio::test]
async fn the_own_scope_is_asked_for_once_and_again_after_a_failure() {
    let up = Arc::new(AtomicBool::new(false));
    let is_up = up.clone();
    let server = Server::start(move |_| match is_up.load(Ordering::SeqCst) {
        true => Reply::new(200, IDENTITY),
        false => refusal(403, "InvalidClientTokenId", "who?"),
    })
    .await;
    let bench = Bench::at(&server.endpoint).await;
    assert_eq!(bench.sessions.own_scope().await.unwrap_err().class, Class::Credentials);

    up.store(true, Ordering::SeqCst);
    let scope = bench.sessions.own_scope().await.unwrap();
    assert_eq!(scope, bench.sessions.own_scope().await.unwrap());
    assert_eq!(scope.account_id, "123456789012");
    assert_eq!((scope.region.as_str(), scope.partition.as_str()), ("eu-central-1", "aws-cn"));
    assert!(scope.provider.is_empty());
    assert_eq!(server.count("GetCallerIdentity"), 2);
}

#[tokio::test]
async fn a_named_provider_never_falls_through_to_the_own_credentials() {
    let server = Server::start(|_| broken()).await;
    let bench = Bench::at(&server.endpoint).await;
    let scope = Scope { provider: "other".to_owned(), ..scope() };
    assert_eq!(bench.sessions.config(&scope).await.unwrap_err().class, Class::Invalid);
}
