//! Who is told of what happens to the objects of a bucket.

use async_trait::async_trait;
use aws_sdk_s3::types::{
    self, Event, EventBridgeConfiguration, FilterRule, FilterRuleName, NotificationConfiguration,
    NotificationConfigurationFilter, S3KeyFilter,
};
use resource::schema::{clearable, default_to, each, set};
use resource::{Class, Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::Spec;
use super::access::{Bucket, ask};
use super::schema::at_most;
use super::{ids, parts};

/// Who is told of what happens to the bucket's objects. Each list that is set is the full list.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NotificationConfig {
    /// Lambda functions that are called.
    #[schemars(length(max = 100), transform = set, transform = clearable)]
    pub(super) lambda_function_configurations: Option<Vec<ToFunction>>,
    /// SQS queues that get a message.
    #[schemars(length(max = 100), transform = set, transform = clearable)]
    pub(super) queue_configurations: Option<Vec<ToQueue>>,
    /// SNS topics that get a message.
    #[schemars(length(max = 100), transform = set, transform = clearable)]
    pub(super) topic_configurations: Option<Vec<ToTopic>>,
    /// Tell EventBridge of everything.
    #[schemars(transform = default_to(false))]
    pub(super) event_bridge_enabled: Option<bool>,
}

/// One kind of target: the same but for the name of the field that holds its ARN.
macro_rules! target {
    ($(#[$doc:meta])* $name:ident, $(#[$arn_doc:meta])* $arn:ident as $field:literal, $sdk:ident) => {
        $(#[$doc])*
        #[skip_serializing_none]
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase")]
        pub(super) struct $name {
            /// The name of the configuration. Left out, AWS makes one up, and it is known by what it
            /// says.
            #[schemars(length(min = 1, max = 255))]
            pub(super) id: Option<String>,
            $(#[$arn_doc])*
            #[serde(rename = $field)]
            #[schemars(length(min = 1, max = 2048))]
            pub(super) $arn: String,
            /// The events, such as s3:ObjectCreated:* or s3:ObjectRemoved:Delete.
            #[schemars(length(min = 1, max = 50), transform = set, transform = each(at_most(128)))]
            pub(super) events: Vec<String>,
            /// Only objects whose names begin with this.
            #[schemars(length(max = 1024))]
            pub(super) filter_prefix: Option<String>,
            /// Only objects whose names end in this.
            #[schemars(length(max = 1024))]
            pub(super) filter_suffix: Option<String>,
        }

        impl $name {
            /// As [`Self::from_s3`] would write it.
            fn canonical(mut self) -> Self {
                self.events.sort();
                self.events.dedup();
                self.filter_prefix = self.filter_prefix.filter(|text| !text.is_empty());
                self.filter_suffix = self.filter_suffix.filter(|text| !text.is_empty());
                self
            }

            fn from_s3(target: &types::$sdk) -> Self {
                let rule = |name| filter_rule(target.filter(), name);
                Self {
                    id: target.id.clone(),
                    $arn: target.$arn.clone(),
                    events: target.events().iter().map(|event| event.as_str().to_owned()).collect(),
                    filter_prefix: rule(FilterRuleName::Prefix),
                    filter_suffix: rule(FilterRuleName::Suffix),
                }
                .canonical()
            }

            fn to_s3(&self) -> Result<types::$sdk> {
                types::$sdk::builder()
                    .set_id(self.id.clone())
                    .$arn(&self.$arn)
                    .set_events(Some(self.events.iter().map(|event| Event::from(event.as_str())).collect()))
                    .set_filter(filter(self.filter_prefix.as_deref(), self.filter_suffix.as_deref()))
                    .build()
                    .map_err(|error| Error::invalid("spec.notificationConfig", error.to_string()))
            }
        }
    };
}

target!(
    /// A Lambda function that is called. It must allow s3.amazonaws.com to do so.
    ToFunction,
    /// The ARN of the function.
    lambda_function_arn as "lambdaFunctionARN",
    LambdaFunctionConfiguration
);
target!(
    /// An SQS queue that gets a message. Its policy must allow s3.amazonaws.com to send.
    ToQueue,
    /// The ARN of the queue.
    queue_arn as "queueARN",
    QueueConfiguration
);
target!(
    /// An SNS topic that gets a message. Its policy must allow s3.amazonaws.com to publish.
    ToTopic,
    /// The ARN of the topic.
    topic_arn as "topicARN",
    TopicConfiguration
);

pub(super) struct Part;

#[async_trait]
impl parts::Part for Part {
    fn field(&self) -> &'static str {
        "notificationConfig"
    }

    async fn read(&self, bucket: &Bucket, wanted: &Spec, live: &mut Spec) -> Result<()> {
        let answer = bucket.answer(ask!(bucket, get_bucket_notification_configuration))?;
        let configuration = NotificationConfiguration::builder()
            .set_lambda_function_configurations(answer.lambda_function_configurations)
            .set_queue_configurations(answer.queue_configurations)
            .set_topic_configurations(answer.topic_configurations)
            .set_event_bridge_configuration(answer.event_bridge_configuration)
            .build();
        let wanted = wanted.notification_config.clone().unwrap_or_default();
        live.notification_config = Some(in_terms_of(&wanted, from_s3(&configuration)));
        Ok(())
    }

    async fn write(&self, bucket: &Bucket, after: &Spec) -> Result<()> {
        let configuration = to_s3(&after.notification_config.clone().unwrap_or_default())?;
        let answer =
            ask!(bucket, put_bucket_notification_configuration, notification_configuration = configuration);
        bucket.answer(answer).map_err(no_target).map(drop)
    }
}

/// S3 asks each target first: it, or its policy, may come later.
fn no_target(error: Error) -> Error {
    let is_about_targets =
        error.message.contains("Unable to validate the following destination configurations");
    if is_about_targets { error.class(Class::Dependency) } else { error }
}

/// The configuration as [`from_s3`] would write it.
pub(super) fn canonical(config: NotificationConfig) -> NotificationConfig {
    NotificationConfig {
        lambda_function_configurations: config
            .lambda_function_configurations
            .map(|list| list.into_iter().map(ToFunction::canonical).collect()),
        queue_configurations: config
            .queue_configurations
            .map(|list| list.into_iter().map(ToQueue::canonical).collect()),
        topic_configurations: config
            .topic_configurations
            .map(|list| list.into_iter().map(ToTopic::canonical).collect()),
        event_bridge_enabled: config.event_bridge_enabled,
    }
}

fn in_terms_of(wanted: &NotificationConfig, live: NotificationConfig) -> NotificationConfig {
    fn of<T: Clone + PartialEq>(
        live: Option<Vec<T>>,
        wanted: Option<&Vec<T>>,
        id: fn(&mut T) -> &mut Option<String>,
    ) -> Option<Vec<T>> {
        live.map(|live| ids::without_made_up(live, wanted.map(Vec::as_slice).unwrap_or_default(), id))
    }
    NotificationConfig {
        lambda_function_configurations: of(
            live.lambda_function_configurations,
            wanted.lambda_function_configurations.as_ref(),
            |target| &mut target.id,
        ),
        queue_configurations: of(live.queue_configurations, wanted.queue_configurations.as_ref(), |target| {
            &mut target.id
        }),
        topic_configurations: of(live.topic_configurations, wanted.topic_configurations.as_ref(), |target| {
            &mut target.id
        }),
        event_bridge_enabled: live.event_bridge_enabled,
    }
}

fn from_s3(configuration: &NotificationConfiguration) -> NotificationConfig {
    let functions = configuration.lambda_function_configurations().iter().map(ToFunction::from_s3);
    let queues = configuration.queue_configurations().iter().map(ToQueue::from_s3);
    let topics = configuration.topic_configurations().iter().map(ToTopic::from_s3);
    NotificationConfig {
        lambda_function_configurations: Some(functions.collect()),
        queue_configurations: Some(queues.collect()),
        topic_configurations: Some(topics.collect()),
        event_bridge_enabled: Some(configuration.event_bridge_configuration().is_some()),
    }
}

fn to_s3(config: &NotificationConfig) -> Result<NotificationConfiguration> {
    let functions = config.lambda_function_configurations.iter().flatten().map(ToFunction::to_s3);
    let queues = config.queue_configurations.iter().flatten().map(ToQueue::to_s3);
    let topics = config.topic_configurations.iter().flatten().map(ToTopic::to_s3);
    let bridge = config.event_bridge_enabled == Some(true);
    Ok(NotificationConfiguration::builder()
        .set_lambda_function_configurations(Some(functions.collect::<Result<_>>()?))
        .set_queue_configurations(Some(queues.collect::<Result<_>>()?))
        .set_topic_configurations(Some(topics.collect::<Result<_>>()?))
        .set_event_bridge_configuration(bridge.then(|| EventBridgeConfiguration::builder().build()))
        .build())
}

/// S3 writes the names of filter rules in either case.
fn filter_rule(filter: Option<&NotificationConfigurationFilter>, name: FilterRuleName) -> Option<String> {
    let rules = filter.and_then(NotificationConfigurationFilter::key).map(S3KeyFilter::filter_rules);
    let is = |rule: &&FilterRule| {
        rule.name().is_some_and(|this| this.as_str().eq_ignore_ascii_case(name.as_str()))
    };
    rules.unwrap_or_default().iter().find(is)?.value.clone()
}

fn filter(prefix: Option<&str>, suffix: Option<&str>) -> Option<NotificationConfigurationFilter> {
    let rule = |name, value: &str| FilterRule::builder().name(name).value(value).build();
    let prefix = prefix.map(|value| rule(FilterRuleName::Prefix, value));
    let rules: Vec<_> =
        prefix.into_iter().chain(suffix.map(|value| rule(FilterRuleName::Suffix, value))).collect();
    if rules.is_empty() {
        return None;
    }
    let key = S3KeyFilter::builder().set_filter_rules(Some(rules)).build();
    Some(NotificationConfigurationFilter::builder().key(key).build())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::{Value, json};

    const QUEUE: &str = "arn:aws:sqs:eu-west-1:123456789012:q";

    fn config(value: Value) -> NotificationConfig {
        canonical(serde_json::from_value(value).unwrap())
    }

    #[test]
    fn the_configuration_converts_both_ways() {
        let full = config(json!({
            "lambdaFunctionConfigurations": [{
                "id": "f", "lambdaFunctionARN": "arn:aws:lambda:eu-west-1:123456789012:function:f",
                "events": ["s3:ObjectRemoved:*", "s3:ObjectCreated:*"], "filterPrefix": "in/", "filterSuffix": ".jpg",
            }],
            "queueConfigurations": [{"queueARN": QUEUE, "events": ["s3:ObjectCreated:*"], "filterSuffix": ".png"}],
            "topicConfigurations": [{
                "topicARN": "arn:aws:sns:eu-west-1:123456789012:t", "events": ["s3:TestOfTomorrow"],
            }],
            "eventBridgeEnabled": true,
        }));
        assert_eq!(from_s3(&to_s3(&full).unwrap()), full);
        let none = from_s3(&to_s3(&NotificationConfig::default()).unwrap());
        assert_eq!(none.event_bridge_enabled, Some(false));
        assert_eq!(none.queue_configurations, Some(Vec::new()));
    }

    #[test]
    fn filter_rules_are_named_in_either_case() {
        let rule = FilterRule::builder().name("Prefix".into()).value("in/").build();
        let key = S3KeyFilter::builder().filter_rules(rule).build();
        let filter = NotificationConfigurationFilter::builder().key(key).build();
        assert_eq!(filter_rule(Some(&filter), FilterRuleName::Prefix).as_deref(), Some("in/"));
        assert_eq!(filter_rule(Some(&filter), FilterRuleName::Suffix), None);
    }

    #[test]
    fn an_id_that_aws_made_up_is_no_difference() {
        let of = |id: Value| {
            let target = json!({"id": id, "queueARN": QUEUE, "events": ["s3:ObjectCreated:*"]});
            config(json!({"queueConfigurations": [target]}))
        };
        assert_eq!(in_terms_of(&of(json!(null)), of(json!("made-up"))), of(json!(null)));
        assert_eq!(in_terms_of(&of(json!("mine")), of(json!("other"))), of(json!("other")));
    }

    #[test]
    fn a_target_that_is_not_there_yet_is_waited_for() {
        let error = |message: &str| Error::invalid("PutBucketNotificationConfiguration", message);
        let missing = "Unable to validate the following destination configurations";
        assert_eq!(no_target(error(missing)).class, Class::Dependency);
        assert_eq!(no_target(error("The event is not supported")).class, Class::Invalid);
    }
}
