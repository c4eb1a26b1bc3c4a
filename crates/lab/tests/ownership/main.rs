//! Whose something in AWS is, and what becomes of what existed before.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod adoption;
mod claims;

use std::time::Duration;

use lab::subject::{TRUST, manifest};
use serde_json::json;

const OWNER: &str = "konfig.io/owner";
const UID: &str = "konfig.io/uid";
/// Several retries of what is in Error, at the pace of the tests.
const A_WHILE: Duration = Duration::from_secs(2);
const SOON: Duration = Duration::from_secs(20);

fn vpc(name: &str) -> String {
    manifest("VPC", name, &[], json!({"cidrBlock": "10.0.0.0/16"}))
}

fn role(name: &str, role_name: &str) -> String {
    let spec = json!({"roleName": role_name, "assumeRolePolicyDocument": TRUST});
    manifest("IAMRole", name, &[], spec)
}
