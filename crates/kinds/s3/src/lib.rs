//! The kinds of Amazon S3.

mod bucket;
mod permission;

use std::sync::Arc;

use aws::{Clients, Sessions};
use aws_sdk_s3::Client;
use aws_sdk_s3::config::Builder;
use resource::{Kind, typed};

/// The kinds of this service.
pub fn kinds(sessions: Arc<Sessions>) -> Vec<Arc<dyn Kind>> {
    let s3 = Clients::new(sessions, |config, guard| {
        // Behind an endpoint of one's own no name resolves to a single bucket.
        let is_custom = config.endpoint_url().is_some();
        Client::from_conf(Builder::from(config).force_path_style(is_custom).interceptor(guard).build())
    });
    vec![typed(bucket::S3Bucket(s3))]
}
