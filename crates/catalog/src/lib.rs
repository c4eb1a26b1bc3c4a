//! The one list of all kinds, and what Kubernetes must be told of them.

mod crd;
mod rbac;

use std::sync::Arc;

use aws::Sessions;
use resource::Kind;

pub use crd::crd;
pub use rbac::{cluster_role, role};

/// The API group of all kinds.
pub const GROUP: &str = "aws.konfig.io";
/// The version of all kinds.
pub const VERSION: &str = "v1alpha1";
/// The name of the operator in RBAC, leases and charts.
pub const OPERATOR: &str = "konfig-konector";

/// Every kind there is, service by service.
pub fn kinds(sessions: &Arc<Sessions>) -> Vec<Arc<dyn Kind>> {
    [
        ec2::kinds(sessions.clone()),
        iam::kinds(sessions.clone()),
        eks::kinds(sessions.clone()),
        rds::kinds(sessions.clone()),
        s3::kinds(sessions.clone()),
        cloudcontrol::kinds(sessions.clone()),
    ]
    .concat()
}
