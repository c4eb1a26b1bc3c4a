//! AWS s3.
