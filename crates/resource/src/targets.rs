//! What can be referred to, and what a reference to it yields.
//!
//! They stand here, not beside their kinds, so that a crate of one AWS service can refer to the
//! kinds of another without building its SDK.

use crate::Target;

macro_rules! targets {
    ($($(#[$doc:meta])* $name:ident = $kind:literal yields $pointer:literal or $direct:literal;)*) => {$(
        $(#[$doc])*
        pub enum $name {}

        impl Target for $name {
            const KIND: &'static str = $kind;
            const YIELDS: &'static str = $pointer;
            const DIRECT: &'static str = $direct;
        }
    )*};
}

targets! {
    /// An EC2 VPC.
    Vpc = "VPC" yields "/status/vpcId" or "id";
    /// An EC2 subnet.
    Subnet = "Subnet" yields "/status/subnetId" or "id";
    /// An EC2 security group.
    SecurityGroup = "SecurityGroup" yields "/status/groupId" or "id";
    /// An EC2 internet gateway.
    InternetGateway = "InternetGateway" yields "/status/internetGatewayId" or "id";
    /// An IAM role, by its ARN.
    IamRole = "IAMRole" yields "/status/arn" or "arn";
    /// An Aurora DB cluster, by its identifier.
    DbCluster = "DBCluster" yields "/spec/dbClusterIdentifier" or "name";
    /// An RDS DB subnet group, by its name in AWS.
    DbSubnetGroup = "DBSubnetGroup" yields "/spec/dbSubnetGroupName" or "name";
    /// An RDS DB parameter group, by its name in AWS.
    DbParameterGroup = "DBParameterGroup" yields "/spec/dbParameterGroupName" or "name";
    /// An RDS DB cluster parameter group, by its name in AWS.
    DbClusterParameterGroup = "DBClusterParameterGroup" yields "/spec/dbClusterParameterGroupName" or "name";
}
