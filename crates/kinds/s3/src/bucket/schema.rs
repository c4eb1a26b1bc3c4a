//! What S3's schemas add to the common annotations.

use resource::schema::{immutable, matches, rule};
use schemars::Schema;
use schemars::transform::Transform;

/// A bucket's name, as S3's rules have it.
pub(super) fn bucket_name(schema: &mut Schema) {
    matches(
        r"^[a-z0-9][a-z0-9.-]*[a-z0-9]$",
        "must be 3 to 63 lower-case letters, digits, hyphens and dots, with a letter or digit at both ends",
    )
    .transform(schema);
    rule("!self.contains('..')", "must not hold two dots in a row").transform(schema);
    rule(
        r"!self.matches(r'^[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+$')",
        "must not look like an IP address; choose a name with a letter",
    )
    .transform(schema);
    rule(
        "!['xn--', 'sthree-', 'amzn-s3-demo-'].exists(p, self.startsWith(p)) && \
         !['-s3alias', '--ol-s3', '.mrap', '--x-s3', '--table-s3'].exists(s, self.endsWith(s))",
        "AWS keeps names that begin with xn--, sthree- or amzn-s3-demo-, or end in -s3alias, --ol-s3, .mrap, \
         --x-s3 or --table-s3, for itself; choose another",
    )
    .transform(schema);
    immutable(schema);
}

/// A day, at whose midnight (UTC) S3 acts.
pub(super) fn day(schema: &mut Schema) {
    schema.insert("maxLength".to_owned(), 32.into());
    matches(
        r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(T00:00:00([.]0+)?Z)?$",
        "must be a day, such as 2030-01-31: AWS acts at midnight UTC only",
    )
    .transform(schema);
}

/// Texts of at most this length.
pub(super) fn at_most(length: u32) -> impl Transform {
    move |schema: &mut Schema| {
        schema.insert("maxLength".to_owned(), length.into());
    }
}

/// One of these texts.
pub(super) fn one_of(texts: &'static [&'static str]) -> impl Transform {
    move |schema: &mut Schema| {
        schema.insert("enum".to_owned(), texts.into());
        let longest = texts.iter().map(|text| text.len()).max();
        schema.insert("maxLength".to_owned(), longest.into());
    }
}
