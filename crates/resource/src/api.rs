//! The operator's names in Kubernetes.

/// The API group of all kinds, and the prefix of every annotation of ours.
pub const GROUP: &str = "aws.konfig.io";
/// The version of all kinds.
pub const VERSION: &str = "v1alpha1";
/// Keeps an object until its AWS resource is gone.
pub const FINALIZER: &str = "aws.konfig.io/finalizer";
/// The operator's name: in events, leases, RBAC and as field manager.
pub const OPERATOR: &str = "konfig-konector";
