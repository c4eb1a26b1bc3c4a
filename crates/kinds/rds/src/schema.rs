//! What RDS's schemas add to the common annotations.

use resource::schema::{matches, rule};
use schemars::Schema;
use schemars::transform::Transform;

/// The identifier of an instance or a cluster.
pub(crate) fn identifier(schema: &mut Schema) {
    schema.insert("minLength".to_owned(), 1.into());
    schema.insert("maxLength".to_owned(), 63.into());
    matches(
        r"^[a-zA-Z](-?[a-zA-Z0-9])*$",
        "must be letters, digits and single hyphens, begin with a letter and not end with a hyphen",
    )
    .transform(schema);
}

/// The name of a cluster's object, or the identifier of a cluster.
pub(crate) fn cluster(schema: &mut Schema) {
    matches(
        r"^[a-zA-Z0-9]([-.a-zA-Z0-9]*[a-zA-Z0-9])?$",
        "must be the name of a DBCluster object, or the identifier of a cluster in AWS",
    )
    .transform(schema);
}

/// A daily window: 03:00-04:00.
pub(crate) fn backup_window(schema: &mut Schema) {
    schema.insert("maxLength".to_owned(), 11.into());
    matches(
        r"^([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9]$",
        "must be two times of day in UTC, 30 minutes apart at least, such as 03:00-04:00",
    )
    .transform(schema);
}

/// A weekly window: sun:05:00-sun:06:00.
pub(crate) fn maintenance_window(schema: &mut Schema) {
    schema.insert("maxLength".to_owned(), 19.into());
    matches(
        r"^(?i:(mon|tue|wed|thu|fri|sat|sun):([01][0-9]|2[0-3]):[0-5][0-9]-(mon|tue|wed|thu|fri|sat|sun):([01][0-9]|2[0-3]):[0-5][0-9])$",
        "must be two times in the week in UTC, 30 minutes apart at least, such as sun:05:00-sun:06:00",
    )
    .transform(schema);
}

/// How long Performance Insights keeps its data.
pub(crate) fn insights_retention(schema: &mut Schema) {
    rule(
        "self == 7 || self == 731 || (self >= 31 && self <= 713 && self % 31 == 0)",
        "must be 7, 731, or a number of months times 31, such as 93",
    )
    .transform(schema);
}

/// A KMS key.
pub(crate) fn kms_key(schema: &mut Schema) {
    schema.insert("minLength".to_owned(), 1.into());
    schema.insert("maxLength".to_owned(), 2048.into());
}

/// The names of logs, each once.
pub(crate) fn log_types(schema: &mut Schema) {
    schema.insert("maxItems".to_owned(), 16.into());
    if let Some(items) = schema.get_mut("items").and_then(|items| <&mut Schema>::try_from(items).ok()) {
        items.insert("maxLength".to_owned(), 64.into());
    }
}
