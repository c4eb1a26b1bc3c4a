//! The one list of all kinds, and what Kubernetes must be told of them.

mod crd;
mod rbac;

use std::sync::Arc;

use aws::Sessions;
use resource::Kind;

pub use crd::crd;
pub use rbac::{cluster_role, role};

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
