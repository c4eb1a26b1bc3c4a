//! What an update of an EKS cluster comes to, and what AWS refuses: pure, from AWS's API reference
//! and the words of its refusals.

use serde_json::{Value, json};

/// A refusal, as AWS words it.
#[derive(Debug, PartialEq)]
pub(super) struct Refusal {
    pub status: u16,
    pub code: &'static str,
    pub message: String,
}

/// An update that AWS accepts.
#[derive(Debug, PartialEq)]
pub(super) struct Plan {
    /// AWS's type of the update.
    pub kind: &'static str,
    /// As DescribeUpdate lists them.
    pub params: Vec<(&'static str, String)>,
    /// What it changes in the cluster.
    pub changes: Value,
}

fn invalid(message: impl Into<String>) -> Refusal {
    Refusal { status: 400, code: "InvalidParameterException", message: message.into() }
}

/// Reads the request of an update operation against the cluster as it is.
pub(super) fn plan(operation: &str, body: &Value, cluster: &Value) -> Result<Plan, Refusal> {
    match operation {
        "UpdateClusterVersion" => version(body, cluster),
        "AssociateEncryptionConfig" => encryption(body, cluster),
        _ => config(body, cluster),
    }
}

fn version(body: &Value, cluster: &Value) -> Result<Plan, Refusal> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (from, to) = (text(&cluster["version"]), text(&body["version"]));
    let minor = |version: &str| version.strip_prefix("1.").and_then(|minor| minor.parse::<u32>().ok());
    match (minor(&from), minor(&to)) {
        (Some(has), Some(wanted)) if wanted == has + 1 => Ok(Plan {
            kind: "VersionUpdate",
            params: vec![("Version", to.clone())],
            changes: json!({"version": to}),
        }),
        (_, None) => Err(invalid("unsupported Kubernetes version")),
        _ => Err(invalid(format!("Unsupported Kubernetes minor version update from {from} to {to}"))),
    }
}

fn encryption(body: &Value, cluster: &Value) -> Result<Plan, Refusal> {
    let configs = body["encryptionConfig"].as_array().filter(|configs| configs.len() == 1);
    let Some(configs) = configs else {
        return Err(invalid("encryptionConfig must have exactly one element"));
    };
    if configs[0]["resources"] != json!(["secrets"]) || !configs[0]["provider"]["keyArn"].is_string() {
        return Err(invalid("encryptionConfig needs a provider's keyArn, and secrets as its resources"));
    }
    if cluster["encryptionConfig"].as_array().is_some_and(|configs| !configs.is_empty()) {
        return Err(invalid("Encryption is already enabled for this cluster"));
    }
    Ok(Plan {
        kind: "AssociateEncryptionConfig",
        params: vec![("EncryptionConfig", json!(configs).to_string())],
        changes: json!({"encryptionConfig": configs}),
    })
}

/// AWS takes one type of update in a call.
fn config(body: &Value, cluster: &Value) -> Result<Plan, Refusal> {
    let vpc = &body["resourcesVpcConfig"];
    let has = |fields: &[&str]| fields.iter().any(|field| !vpc[*field].is_null());
    let types = [
        has(&["subnetIds", "securityGroupIds"]).then_some(network as Planner),
        has(&["endpointPublicAccess", "endpointPrivateAccess", "publicAccessCidrs"]).then_some(endpoint),
        body.get("logging").map(|_| logging as Planner),
        body.get("accessConfig").map(|_| access as Planner),
        body.get("upgradePolicy").map(|_| policy as Planner),
    ];
    let types: Vec<Planner> = types.into_iter().flatten().collect();
    match types[..] {
        [planner] => planner(body, cluster),
        [] => Err(invalid("Invalid type for cluster update.")),
        _ => Err(invalid(
            "Only one type of update - VpcConfigUpdate, LoggingUpdate or EndpointAccessUpdate can be allowed",
        )),
    }
}

type Planner = fn(&Value, &Value) -> Result<Plan, Refusal>;

fn network(body: &Value, cluster: &Value) -> Result<Plan, Refusal> {
    let (vpc, has) = (&body["resourcesVpcConfig"], &cluster["resourcesVpcConfig"]);
    let list = |field: &str| vpc[field].as_array().or(has[field].as_array()).cloned().unwrap_or_default();
    let (subnets, groups) = (list("subnetIds"), list("securityGroupIds"));
    if subnets.len() < 2 {
        return Err(invalid("Subnets specified must be in at least two different AZs"));
    }
    if groups.len() > 5 {
        return Err(invalid("At most five security groups can be specified"));
    }
    if json!(subnets) == has["subnetIds"] && json!(groups) == has["securityGroupIds"] {
        return Err(invalid(
            "Provided subnets and securityGroups already match the current cluster configuration",
        ));
    }
    Ok(Plan {
        kind: "VpcConfigUpdate",
        params: vec![("Subnets", json!(subnets).to_string()), ("SecurityGroups", json!(groups).to_string())],
        changes: json!({"resourcesVpcConfig": {"subnetIds": subnets, "securityGroupIds": groups}}),
    })
}

fn endpoint(body: &Value, cluster: &Value) -> Result<Plan, Refusal> {
    let (vpc, has) = (&body["resourcesVpcConfig"], &cluster["resourcesVpcConfig"]);
    let flag = |field: &str| vpc[field].as_bool().or(has[field].as_bool()).unwrap_or_default();
    let (public, private) = (flag("endpointPublicAccess"), flag("endpointPrivateAccess"));
    let current = |value: &&Value| value.as_array().is_some_and(|cidrs| !cidrs.is_empty());
    let cidrs =
        Some(&vpc["publicAccessCidrs"]).filter(current).or(Some(&has["publicAccessCidrs"]).filter(current));
    let cidrs = cidrs.cloned().unwrap_or_else(|| json!(["0.0.0.0/0"]));
    if !public && !private {
        return Err(invalid("Private and public endpoint access cannot be false"));
    }
    if !public && !vpc["publicAccessCidrs"].is_null() {
        return Err(invalid("publicAccessCidrs cannot be specified when endpointPublicAccess is false"));
    }
    let is_same = json!(public) == has["endpointPublicAccess"]
        && json!(private) == has["endpointPrivateAccess"]
        && (!public || cidrs == has["publicAccessCidrs"]);
    if is_same {
        return Err(invalid(format!(
            "Cluster is already at the desired configuration with endpointPrivateAccess: {private} , \
             endpointPublicAccess: {public}, and Public Endpoint Restrictions: {cidrs}"
        )));
    }
    Ok(Plan {
        kind: "EndpointAccessUpdate",
        params: vec![
            ("EndpointPublicAccess", public.to_string()),
            ("EndpointPrivateAccess", private.to_string()),
            ("PublicAccessCidrs", cidrs.to_string()),
        ],
        changes: json!({"resourcesVpcConfig": {
            "endpointPublicAccess": public, "endpointPrivateAccess": private, "publicAccessCidrs": cidrs,
        }}),
    })
}

/// The types of logs.
const LOGS: [&str; 5] = ["api", "audit", "authenticator", "controllerManager", "scheduler"];

fn logging(body: &Value, cluster: &Value) -> Result<Plan, Refusal> {
    let mut enabled = enabled_logs(&cluster["logging"]);
    let before = enabled;
    for setup in body["logging"]["clusterLogging"].as_array().into_iter().flatten() {
        for kind in setup["types"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let Some(place) = LOGS.iter().position(|known| *known == kind) else {
                return Err(invalid(format!("Unknown log type {kind}")));
            };
            enabled[place] = setup["enabled"] == true;
        }
    }
    if enabled == before {
        return Err(invalid("No changes needed for the logging config provided"));
    }
    let types = |on: bool| -> Vec<&str> {
        LOGS.iter().zip(enabled).filter(|(_, enabled)| *enabled == on).map(|(kind, _)| *kind).collect()
    };
    let setups: Vec<_> = [true, false]
        .into_iter()
        .filter(|on| !types(*on).is_empty())
        .map(|on| json!({"types": types(on), "enabled": on}))
        .collect();
    let logging = json!({"clusterLogging": setups});
    Ok(Plan {
        kind: "LoggingUpdate",
        params: vec![("ClusterLogging", logging.to_string())],
        changes: json!({"logging": logging}),
    })
}

fn enabled_logs(logging: &Value) -> [bool; 5] {
    let setups = || logging["clusterLogging"].as_array().into_iter().flatten();
    let is_on = |kind: &str| {
        let names =
            |setup: &Value| setup["types"].as_array().is_some_and(|types| types.contains(&json!(kind)));
        setups().any(|setup| setup["enabled"] == true && names(setup))
    };
    LOGS.map(is_on)
}

fn access(body: &Value, cluster: &Value) -> Result<Plan, Refusal> {
    let text =
        |value: &Value| value["accessConfig"]["authenticationMode"].as_str().unwrap_or_default().to_owned();
    let (from, to) = (text(cluster), text(body));
    if !matches!((&*from, &*to), ("CONFIG_MAP", "API_AND_CONFIG_MAP") | ("API_AND_CONFIG_MAP", "API")) {
        return Err(invalid(format!("Unsupported authentication mode update from {from} to {to}")));
    }
    Ok(Plan {
        kind: "AccessConfigUpdate",
        params: vec![("AuthenticationMode", to.clone())],
        changes: json!({"accessConfig": {"authenticationMode": to}}),
    })
}

fn policy(body: &Value, cluster: &Value) -> Result<Plan, Refusal> {
    let support = &body["upgradePolicy"]["supportType"];
    if !matches!(support.as_str(), Some("STANDARD" | "EXTENDED")) {
        return Err(invalid("supportType must be STANDARD or EXTENDED"));
    }
    if *support == cluster["upgradePolicy"]["supportType"] {
        return Err(invalid("No changes needed for the upgrade policy provided"));
    }
    Ok(Plan {
        kind: "UpgradePolicyUpdate",
        params: vec![("UpgradePolicy", support.to_string())],
        changes: json!({"upgradePolicy": {"supportType": support}}),
    })
}
