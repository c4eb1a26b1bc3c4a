//! The AWS proxy between boto3 and a real moto.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use lab::proxy::aws::{Action, AwsProxy, Match};
use lab::proxy::{Stage, Verdict};
use lab::{AwsError, Boto, Emulator};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// One moto for all tests; a proxy, and so faults and a log, for each.
async fn world() -> (AwsProxy, Boto) {
    static MOTO: OnceCell<Emulator> = OnceCell::const_new();
    let moto = MOTO.get_or_init(|| async { Emulator::moto().await.unwrap() }).await;
    let proxy = AwsProxy::start(&moto.endpoint());
    let boto = Boto::new(proxy.endpoint());
    (proxy, boto)
}

type Outcome = Result<Value, AwsError>;

async fn create_vpc(boto: &Boto) -> Outcome {
    boto.call("ec2", "create_vpc", json!({"CidrBlock": "10.0.0.0/16"})).await
}

fn vpc_id(vpc: &Value) -> String {
    vpc["Vpc"]["VpcId"].as_str().unwrap().to_owned()
}

async fn describe_vpc(boto: &Boto, id: &str) -> Outcome {
    boto.call("ec2", "describe_vpcs", json!({"VpcIds": [id]})).await
}

fn code(outcome: Outcome) -> String {
    outcome.unwrap_err().code
}

struct Network {
    vpc: String,
    subnet: String,
    address: String,
}

async fn network(boto: &Boto) -> Network {
    let vpc = vpc_id(&create_vpc(boto).await.unwrap());
    let subnet = json!({"VpcId": vpc, "CidrBlock": "10.0.1.0/24"});
    let subnet = boto.call("ec2", "create_subnet", subnet).await.unwrap();
    let address = boto.call("ec2", "allocate_address", json!({"Domain": "vpc"})).await.unwrap();
    Network {
        vpc,
        subnet: subnet["Subnet"]["SubnetId"].as_str().unwrap().to_owned(),
        address: address["AllocationId"].as_str().unwrap().to_owned(),
    }
}

async fn create_nat(boto: &Boto, network: &Network, token: &str) -> Outcome {
    let nat = json!({"SubnetId": network.subnet, "AllocationId": network.address, "ClientToken": token});
    boto.call("ec2", "create_nat_gateway", nat).await
}

fn nat_id(nat: &Value) -> String {
    nat["NatGateway"]["NatGatewayId"].as_str().unwrap().to_owned()
}

async fn nat_state(boto: &Boto, id: &str) -> String {
    let found = boto.call("ec2", "describe_nat_gateways", json!({"NatGatewayIds": [id]})).await.unwrap();
    found["NatGateways"][0]["State"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn records() {
    let (proxy, boto) = world().await;
    let id = vpc_id(&create_vpc(&boto).await.unwrap());
    let mark = proxy.mark();
    describe_vpc(&boto, &id).await.unwrap();
    boto.call("sts", "get_caller_identity", json!({})).await.unwrap();
    assert_eq!(code(boto.call("iam", "get_role", json!({"RoleName": "nobody"})).await), "NoSuchEntity");

    let calls = proxy.calls();
    let names = calls.iter().map(|call| format!("{} {}", call.service, call.operation)).collect::<Vec<_>>();
    assert_eq!(names, ["ec2 CreateVpc", "ec2 DescribeVpcs", "sts GetCallerIdentity", "iam GetRole"]);
    assert_eq!((calls[0].params["CidrBlock"].as_str(), calls[0].status), ("10.0.0.0/16", Some(200)));
    assert_eq!((calls[3].status, calls[3].error_code.as_deref()), (Some(404), Some("NoSuchEntity")));
    assert!(calls.iter().all(|call| call.forwarded && call.request_id.is_some()));
    assert_eq!(calls[0].region, lab::aws::REGION);
    assert_eq!(proxy.mutating_calls().len(), 1);
    assert_eq!((proxy.count("Describe*"), proxy.calls_since(mark).len()), (1, 3));
    assert!(proxy.table().contains("CreateVpc"), "{}", proxy.table());
    proxy.clear();
    assert!(proxy.calls().is_empty());
}

#[tokio::test]
async fn throttles_and_fails() {
    let (proxy, boto) = world().await;
    let fault = proxy.fault(Match::op("CreateVpc").times(1), Action::Throttle);
    proxy.fault(Match::any().service("iam"), Action::Throttle);
    proxy.fault(Match::op("DescribeVpcs").nth(2), Action::ServerError(500));
    proxy.fault(Match::op("AllocateAddress"), Action::error(400, "AddressLimitExceeded", "No more."));

    assert_eq!(code(create_vpc(&boto).await), "RequestLimitExceeded");
    assert_eq!(fault.hits(), 1);
    assert!(!proxy.calls()[0].forwarded);
    let id = vpc_id(&create_vpc(&boto).await.unwrap());
    assert_eq!(code(boto.call("iam", "list_roles", json!({})).await), "Throttling");
    describe_vpc(&boto, &id).await.unwrap();
    assert_eq!(code(describe_vpc(&boto, &id).await), "InternalError");
    describe_vpc(&boto, &id).await.unwrap();
    let refused = boto.call("ec2", "allocate_address", json!({})).await.unwrap_err();
    assert_eq!(refused.code, "AddressLimitExceeded");
    assert!(refused.message.ends_with("No more."), "{refused}");
    proxy.clear_faults();
    boto.call("ec2", "allocate_address", json!({})).await.unwrap();
}

#[tokio::test]
async fn loses_answers_but_not_effects() {
    let (proxy, boto) = world().await;
    let tagged = |name: &str| {
        json!({"CidrBlock": "10.0.0.0/16", "TagSpecifications": [
            {"ResourceType": "vpc", "Tags": [{"Key": "lost", "Value": name}]}]})
    };
    let found = async |name: &str| {
        let filter = json!({"Filters": [{"Name": "tag:lost", "Values": [name]}]});
        let found = boto.call("ec2", "describe_vpcs", filter).await.unwrap();
        found["Vpcs"].as_array().unwrap().len()
    };
    for (name, action, effects) in [
        ("before", Action::ResetBefore, 0),
        ("after", Action::ResetAfter, 1),
        ("hangs", Action::TimeoutAfterEffect(Duration::from_millis(300)), 1),
    ] {
        let fault = proxy.fault(Match::op("CreateVpc").param("*", name), action);
        boto.call("ec2", "create_vpc", tagged(name)).await.unwrap_err();
        assert_eq!(fault.hits(), 1);
        assert_eq!(found(name).await, effects, "{name}");
    }
}

#[tokio::test]
async fn delays_and_holds() {
    let (proxy, boto) = world().await;
    proxy.fault(Match::op("CreateVpc").times(1), Action::Delay(Duration::from_millis(300)));
    let start = Instant::now();
    create_vpc(&boto).await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(300));

    let hold = proxy.fault(Match::op("CreateVpc"), Action::Hold);
    let call = tokio::spawn(async move { create_vpc(&boto).await });
    assert!(hold.reached(1, Duration::from_secs(10)).await);
    assert!(!proxy.calls().last().unwrap().forwarded && !call.is_finished());
    hold.release();
    call.await.unwrap().unwrap();
}

#[tokio::test]
async fn reads_lag_behind_creates() {
    let (proxy, boto) = world().await;
    proxy.lag(Duration::from_secs(2));
    let id = vpc_id(&create_vpc(&boto).await.unwrap());
    let role = json!({"RoleName": "lagging", "AssumeRolePolicyDocument": "{}"});
    boto.call("iam", "create_role", role).await.unwrap();
    let listed = async || {
        let vpcs = boto.call("ec2", "describe_vpcs", json!({})).await.unwrap();
        let roles = boto.call("iam", "list_roles", json!({})).await.unwrap();
        (vpcs.to_string().contains(&id), roles.to_string().contains("lagging"))
    };

    assert_eq!(code(describe_vpc(&boto, &id).await), "InvalidVpcID.NotFound");
    assert_eq!(code(boto.call("iam", "get_role", json!({"RoleName": "lagging"})).await), "NoSuchEntity");
    assert_eq!(listed().await, (false, false));
    tokio::time::sleep(Duration::from_secs(2)).await;
    describe_vpc(&boto, &id).await.unwrap();
    boto.call("iam", "get_role", json!({"RoleName": "lagging"})).await.unwrap();
    assert_eq!(listed().await, (true, true));
}

#[tokio::test]
async fn honours_tokens() {
    let (proxy, boto) = world().await;
    let network = network(&boto).await;
    proxy.fault(Match::op("CreateNatGateway").times(1), Action::ResetAfter);
    create_nat(&boto, &network, "t1").await.unwrap_err();
    let first = nat_id(&create_nat(&boto, &network, "t1").await.unwrap());
    assert_eq!(nat_id(&create_nat(&boto, &network, "t1").await.unwrap()), first);
    assert_eq!(
        proxy.calls().iter().filter(|call| call.operation == "CreateNatGateway" && call.forwarded).count(),
        1
    );

    let other = json!({"SubnetId": network.subnet, "ConnectivityType": "private", "ClientToken": "t1"});
    assert_eq!(code(boto.call("ec2", "create_nat_gateway", other).await), "IdempotentParameterMismatch");
    let filter = json!({"Filter": [{"Name": "vpc-id", "Values": [network.vpc]}]});
    let found = boto.call("ec2", "describe_nat_gateways", filter).await.unwrap();
    assert_eq!(found["NatGateways"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn pages() {
    let (proxy, boto) = world().await;
    let network = network(&boto).await;
    for n in 2..5 {
        let subnet = json!({"VpcId": network.vpc, "CidrBlock": format!("10.0.{n}.0/24")});
        boto.call("ec2", "create_subnet", subnet).await.unwrap();
        let policy = json!({"RoleName": "paged", "PolicyName": format!("p{n}"), "PolicyDocument": "{}"});
        if n == 2 {
            let role = json!({"RoleName": "paged", "AssumeRolePolicyDocument": "{}"});
            boto.call("iam", "create_role", role).await.unwrap();
        }
        boto.call("iam", "put_role_policy", policy).await.ok();
    }
    proxy.paginate(3);
    let filter = json!([{"Name": "vpc-id", "Values": [network.vpc]}]);
    let first = boto.call("ec2", "describe_subnets", json!({"Filters": filter})).await.unwrap();
    let next = json!({"Filters": filter, "NextToken": first["NextToken"]});
    let second = boto.call("ec2", "describe_subnets", next).await.unwrap();
    let count = |page: &Value| page["Subnets"].as_array().unwrap().len();
    assert_eq!((count(&first), count(&second)), (3, 1));
    assert!(second.get("NextToken").is_none());

    proxy.paginate(1);
    let mut names = Vec::new();
    let mut page = boto.call("iam", "list_roles", json!({})).await.unwrap();
    loop {
        names.extend(page["Roles"].as_array().unwrap().iter().map(|role| role["RoleName"].clone()));
        if page["IsTruncated"] == json!(false) {
            break;
        }
        page = boto.call("iam", "list_roles", json!({"Marker": page["Marker"]})).await.unwrap();
    }
    assert!(names.contains(&json!("paged")), "{names:?}");
    assert_eq!(code(boto.call("ec2", "describe_vpcs", json!({"NextToken": "x"})).await), "InvalidNextToken");
}

#[tokio::test]
async fn states_take_time() {
    let (proxy, boto) = world().await;
    let network = network(&boto).await;
    proxy.slow("CreateNatGateway", 2);
    proxy.slow("DeleteNatGateway", 2);
    let nat = create_nat(&boto, &network, "slow").await.unwrap();
    let id = nat_id(&nat);
    assert_eq!(nat["NatGateway"]["State"], "pending");
    for expected in ["pending", "pending", "available", "available"] {
        assert_eq!(nat_state(&boto, &id).await, expected);
    }
    boto.call("ec2", "delete_nat_gateway", json!({"NatGatewayId": id})).await.unwrap();
    let release = || boto.call("ec2", "release_address", json!({"AllocationId": network.address}));
    let delete_subnet = || boto.call("ec2", "delete_subnet", json!({"SubnetId": network.subnet}));
    assert_eq!(nat_state(&boto, &id).await, "deleting");
    assert_eq!(code(release().await), "InvalidIPAddress.InUse");
    assert_eq!(code(delete_subnet().await), "DependencyViolation");
    assert_eq!(nat_state(&boto, &id).await, "deleting");
    assert_eq!(nat_state(&boto, &id).await, "deleted");
    release().await.unwrap();
    delete_subnet().await.unwrap();
}

#[tokio::test]
async fn mends_what_emulators_get_wrong() {
    let (_proxy, boto) = world().await;
    let unknown = json!({"NatGatewayIds": ["nat-00000000000000000"]});
    assert_eq!(code(boto.call("ec2", "describe_nat_gateways", unknown).await), "NatGatewayNotFound");
    let unknown = json!({"NatGatewayId": "nat-00000000000000000"});
    assert_eq!(code(boto.call("ec2", "delete_nat_gateway", unknown).await), "NatGatewayNotFound");

    let vpc = vpc_id(&create_vpc(&boto).await.unwrap());
    let group = json!({"GroupName": "g", "Description": "d", "VpcId": vpc});
    let group = boto.call("ec2", "create_security_group", group).await.unwrap();
    let port = |port: u16| json!({"IpProtocol": "tcp", "FromPort": port, "ToPort": port, "IpRanges": [{"CidrIp": "10.0.0.0/8"}]});
    let rules = json!({"GroupId": group["GroupId"], "IpPermissions": [port(80), port(81)]});
    let made = boto.call("ec2", "authorize_security_group_ingress", rules).await.unwrap();
    assert_eq!(made["SecurityGroupRules"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn mends_what_ministack_gets_wrong() {
    let ministack = Emulator::ministack().await.unwrap();
    let proxy = AwsProxy::start(&ministack.endpoint());
    let boto = Boto::new(proxy.endpoint());
    let unknown = json!({"AllocationIds": ["eipalloc-00000000000000000"]});
    assert_eq!(code(boto.call("ec2", "describe_addresses", unknown).await), "InvalidAllocationID.NotFound");
    let network = network(&boto).await;
    for (value, expected) in [(network.address.as_str(), 1), ("eipalloc-0", 0)] {
        let filter = json!({"Filters": [{"Name": "allocation-id", "Values": [value]}]});
        let found = boto.call("ec2", "describe_addresses", filter).await.unwrap();
        assert_eq!(found["Addresses"].as_array().unwrap().len(), expected);
    }
    let nat = create_nat(&boto, &network, "t").await.unwrap();
    assert_eq!(nat["NatGateway"]["NatGatewayAddresses"][0]["AllocationId"], json!(network.address));
    let subnet = json!({"SubnetId": network.subnet});
    assert_eq!(code(boto.call("ec2", "delete_subnet", subnet).await), "DependencyViolation");
    let release = json!({"AllocationId": network.address});
    boto.call("ec2", "release_address", release).await.unwrap_err();
}

#[tokio::test]
async fn hooks_stop_calls_at_both_stages() {
    let (proxy, boto) = world().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let stop = Arc::new(Mutex::new(None));
    let (record, at) = (seen.clone(), stop.clone());
    proxy.on_call(move |stage, call| {
        record.lock().push((stage, call.operation, call.status));
        let verdict = if *at.lock() == Some(stage) { Verdict::Drop } else { Verdict::Continue };
        async move { verdict }
    });
    create_vpc(&boto).await.unwrap();
    let create = "CreateVpc".to_owned();
    let expected = [(Stage::Before, create.clone(), None), (Stage::After, create, Some(200))];
    assert_eq!(*seen.lock(), expected);

    for (stage, forwarded) in [(Stage::Before, false), (Stage::After, true)] {
        *stop.lock() = Some(stage);
        create_vpc(&boto).await.unwrap_err();
        assert_eq!(proxy.calls().last().unwrap().forwarded, forwarded);
    }
    proxy.clear_hook();
    create_vpc(&boto).await.unwrap();
}
