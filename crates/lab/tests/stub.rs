//! The AWS stub of the load benchmark, driven by boto3: it must hold what is written to it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use anyhow::{Result, ensure};
use lab::{AwsError, Boto, Stub};
use serde_json::{Value, json};

fn code(answer: Result<Value, AwsError>) -> String {
    answer.map_or_else(|error| error.code, |value| format!("success: {value}"))
}

#[tokio::test]
async fn a_network_is_kept_and_found() -> Result<()> {
    let stub = Stub::start();
    let boto = Boto::new(stub.endpoint());
    let (a, b) =
        (boto.make_vpc("10.0.0.0/16", &[("n", "a")]).await?, boto.make_vpc("10.1.0.0/16", &[]).await?);
    ensure!(a != b);

    let by = |name: &str, value: &str| json!({"Filters": [{"Name": name, "Values": [value, "other"]}]});
    let found = boto.call("ec2", "describe_vpcs", by("tag:n", "a")).await?;
    assert_eq!((found["Vpcs"].as_array().unwrap().len(), &found["Vpcs"][0]["VpcId"]), (1, &json!(a)));
    assert_eq!(found["Vpcs"][0]["CidrBlock"], "10.0.0.0/16");
    for _ in 0..4 {
        boto.make_vpc("10.2.0.0/16", &[("n", "more")]).await?;
    }
    let first = boto.call("ec2", "describe_vpcs", json!({"MaxResults": 5})).await?;
    let next = json!({"MaxResults": 5, "NextToken": first["NextToken"]});
    let second = boto.call("ec2", "describe_vpcs", next).await?;
    let count = |page: &Value| page["Vpcs"].as_array().unwrap().len();
    assert_eq!((count(&first), &first["Vpcs"][1]["VpcId"], count(&second)), (5, &json!(b), 1));
    assert!(second.get("NextToken").is_none(), "{second}");
    let lost = boto.call("ec2", "describe_vpcs", json!({"VpcIds": ["vpc-0"]})).await;
    assert_eq!(code(lost), "InvalidVpcID.NotFound");
    assert_eq!(
        code(boto.call("ec2", "describe_vpcs", by("dhcp-options-id", "x")).await),
        "InvalidParameterValue"
    );

    let hostnames = json!({"VpcId": a, "Attribute": "enableDnsHostnames"});
    let read = async || boto.call("ec2", "describe_vpc_attribute", hostnames.clone()).await;
    assert_eq!(read().await?["EnableDnsHostnames"]["Value"], false);
    let on = json!({"VpcId": a, "EnableDnsHostnames": {"Value": true}});
    boto.call("ec2", "modify_vpc_attribute", on).await?;
    assert_eq!(read().await?["EnableDnsHostnames"]["Value"], true);

    let subnet = json!({"VpcId": a, "CidrBlock": "10.0.1.0/24", "AvailabilityZone": "eu-west-1b"});
    let id = boto.make("create_subnet", subnet.clone(), "/Subnet/SubnetId").await?;
    assert_eq!(code(boto.call("ec2", "create_subnet", subnet).await), "InvalidSubnet.Conflict");
    boto.tag(&id, &[("team", "x"), ("stage", "y")]).await?;
    boto.untag(&id, "team").await?;
    let found = boto.call("ec2", "describe_subnets", by("subnet-id", &id)).await?;
    assert_eq!(found["Subnets"][0]["Tags"], json!([{"Key": "stage", "Value": "y"}]));
    assert_eq!(found["Subnets"][0]["AvailabilityZone"], "eu-west-1b");

    let gateway =
        boto.make("create_internet_gateway", json!({}), "/InternetGateway/InternetGatewayId").await?;
    let link = json!({"InternetGatewayId": gateway, "VpcId": b});
    boto.call("ec2", "attach_internet_gateway", link.clone()).await?;
    let found = boto.call("ec2", "describe_internet_gateways", json!({})).await?;
    assert_eq!(found["InternetGateways"][0]["Attachments"][0]["VpcId"], json!(b));
    for vpc in [&a, &b] {
        let delete = boto.call("ec2", "delete_vpc", json!({"VpcId": vpc})).await;
        assert_eq!(code(delete), "DependencyViolation");
    }
    boto.call("ec2", "detach_internet_gateway", link).await?;
    boto.call("ec2", "delete_internet_gateway", json!({"InternetGatewayId": gateway})).await?;
    boto.call("ec2", "delete_subnet", json!({"SubnetId": id})).await?;
    for vpc in [&a, &b] {
        boto.call("ec2", "delete_vpc", json!({"VpcId": vpc})).await?;
    }
    let left = boto.call("ec2", "describe_vpcs", json!({})).await?;
    assert!(left["Vpcs"].as_array().unwrap().iter().all(|vpc| vpc["Tags"][0]["Value"] == "more"), "{left}");
    Ok(())
}

#[tokio::test]
async fn a_groups_rules_come_and_go() -> Result<()> {
    let stub = Stub::start();
    let boto = Boto::new(stub.endpoint());
    let vpc = boto.make_vpc("10.0.0.0/16", &[]).await?;
    let group = |name: &str| json!({"GroupName": name, "Description": "d", "VpcId": vpc});
    let id = boto.make("create_security_group", group("web"), "/GroupId").await?;
    let other = boto.make("create_security_group", group("db"), "/GroupId").await?;
    let again = boto.call("ec2", "create_security_group", group("web")).await;
    assert_eq!(code(again), "InvalidGroup.Duplicate");

    let rule = |source: Value| {
        let mut rule = json!({"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443});
        rule.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
        json!({"GroupId": id, "IpPermissions": [rule]})
    };
    let everyone = rule(json!({"IpRanges": [{"CidrIp": "0.0.0.0/0", "Description": "web"}]}));
    let bare = rule(json!({"IpRanges": [{"CidrIp": "0.0.0.0/0"}]}));
    let members = rule(json!({"UserIdGroupPairs": [{"GroupId": other}]}));
    boto.call("ec2", "authorize_security_group_ingress", everyone).await?;
    boto.call("ec2", "authorize_security_group_ingress", members).await?;
    let twice = boto.call("ec2", "authorize_security_group_ingress", bare.clone()).await;
    assert_eq!(code(twice), "InvalidPermission.Duplicate");
    let lost = rule(json!({"UserIdGroupPairs": [{"GroupId": "sg-0"}]}));
    let lost = boto.call("ec2", "authorize_security_group_ingress", lost).await;
    assert_eq!(code(lost), "InvalidGroup.NotFound");

    let found = boto.call("ec2", "describe_security_groups", json!({"GroupIds": [id]})).await?;
    let rules = &found["SecurityGroups"][0]["IpPermissions"];
    assert_eq!(rules[0]["IpRanges"], json!([{"CidrIp": "0.0.0.0/0", "Description": "web"}]));
    assert_eq!(rules[1]["UserIdGroupPairs"][0]["GroupId"], json!(other));
    let egress = &found["SecurityGroups"][0]["IpPermissionsEgress"];
    assert_eq!((&egress[0]["IpProtocol"], egress.as_array().unwrap().len()), (&json!("-1"), 1));

    let used = boto.call("ec2", "delete_security_group", json!({"GroupId": other})).await;
    assert_eq!(code(used), "DependencyViolation");
    boto.call("ec2", "revoke_security_group_ingress", bare.clone()).await?;
    let gone = boto.call("ec2", "revoke_security_group_ingress", bare).await;
    assert_eq!(code(gone), "InvalidPermission.NotFound");
    boto.call("ec2", "delete_security_group", json!({"GroupId": id})).await?;
    boto.call("ec2", "delete_security_group", json!({"GroupId": other})).await?;
    Ok(())
}

#[tokio::test]
async fn buckets_and_roles_are_kept() -> Result<()> {
    let stub = Stub::start();
    let boto = Boto::new(stub.endpoint());
    let identity = boto.call("sts", "get_caller_identity", json!({})).await?;
    assert_eq!(identity["Account"], lab::stub::ACCOUNT);

    let bucket = json!({"Bucket": "pictures"});
    let missing = boto.call("s3", "get_bucket_versioning", bucket.clone()).await;
    assert_eq!(code(missing), "NoSuchBucket");
    let mut create = bucket.clone();
    create["CreateBucketConfiguration"] = json!({"LocationConstraint": "eu-west-1"});
    boto.call("s3", "create_bucket", create.clone()).await?;
    assert_eq!(code(boto.call("s3", "create_bucket", create).await), "BucketAlreadyOwnedByYou");
    assert_eq!(code(boto.call("s3", "get_bucket_tagging", bucket.clone()).await), "NoSuchTagSet");
    let tags = json!([{"Key": "a & b", "Value": "<c>"}]);
    let tagging = json!({"Bucket": "pictures", "Tagging": {"TagSet": tags}});
    boto.call("s3", "put_bucket_tagging", tagging).await?;
    assert_eq!(boto.call("s3", "get_bucket_tagging", bucket.clone()).await?["TagSet"], tags);
    let on = json!({"Bucket": "pictures", "VersioningConfiguration": {"Status": "Enabled"}});
    assert!(boto.call("s3", "get_bucket_versioning", bucket.clone()).await?.get("Status").is_none());
    boto.call("s3", "put_bucket_versioning", on).await?;
    assert_eq!(boto.call("s3", "get_bucket_versioning", bucket.clone()).await?["Status"], "Enabled");
    let mut others = bucket.clone();
    others["ExpectedBucketOwner"] = json!("999999999999");
    assert_eq!(code(boto.call("s3", "get_bucket_tagging", others).await), "AccessDenied");
    boto.call("s3", "delete_bucket", bucket.clone()).await?;
    assert_eq!(code(boto.call("s3", "head_bucket", bucket).await), "404");

    let document = r#"{"Version": "2012-10-17", "Statement": []}"#;
    boto.make_role("app", document, &[("team", "x")]).await?;
    let again = boto.make_role("app", document, &[]).await;
    assert!(again.unwrap_err().to_string().starts_with("EntityAlreadyExists"));
    let role = boto.call("iam", "get_role", json!({"RoleName": "app"})).await?;
    let role = &role["Role"];
    assert_eq!(role["Tags"], json!([{"Key": "team", "Value": "x"}]));
    assert_eq!(role["AssumeRolePolicyDocument"], serde_json::from_str::<Value>(document)?);
    boto.call("iam", "delete_role", json!({"RoleName": "app"})).await?;
    assert!(!boto.has_role("app").await?);
    let unknown = boto.call("iam", "list_role_tags", json!({"RoleName": "other"})).await;
    assert_eq!(code(unknown), "InvalidAction");
    Ok(())
}
