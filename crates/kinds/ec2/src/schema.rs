//! What EC2's schemas add to the common annotations.

use ipnet::{Ipv4Net, Ipv6Net};
use resource::schema::{matches, rule};
use resource::{Error, Result};
use schemars::Schema;
use schemars::transform::Transform;

/// The range has a size that AWS allows for VPCs and subnets.
pub(crate) fn vpc_size(schema: &mut Schema) {
    rule(
        "!isCIDR(self) || (cidr(self).prefixLength() >= 16 && cidr(self).prefixLength() <= 28)",
        "AWS allows sizes from /16 (65536 addresses) to /28 (16 addresses)",
    )
    .transform(schema);
}

/// The characters that AWS takes in names and descriptions of security groups and their rules.
pub(crate) fn group_text(schema: &mut Schema) {
    matches(
        r"^[a-zA-Z0-9 ._:/()#,@\[\]+=&;{}!$*-]*$",
        "may hold letters, digits, spaces and ._-:/()#,@[]+=&;{}!$* only: AWS takes no others here",
    )
    .transform(schema);
}

/// An IPv4 range as AWS writes it: without host bits.
pub(crate) fn masked(cidr: &str) -> Result<String> {
    let range: Ipv4Net = cidr.parse().map_err(|_| {
        Error::invalid("spec", format!("{cidr} is no IPv4 range; write one such as 10.0.0.0/16"))
    })?;
    Ok(range.trunc().to_string())
}

/// An IPv6 range as AWS writes it: without host bits, in the short form.
pub(crate) fn masked_v6(cidr: &str) -> Result<String> {
    let range: Ipv6Net = cidr.parse().map_err(|_| {
        Error::invalid("spec", format!("{cidr} is no IPv6 range; write one such as 2001:db8::/56"))
    })?;
    Ok(range.trunc().to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn ranges_are_written_as_aws_writes_them() {
        assert_eq!(masked("10.1.2.3/16").unwrap(), "10.1.0.0/16");
        assert_eq!(masked("10.1.0.0/16").unwrap(), "10.1.0.0/16");
        assert_eq!(masked_v6("2001:DB8:0:0::1/56").unwrap(), "2001:db8::/56");
        assert_eq!(masked_v6("::/0").unwrap(), "::/0");
    }

    #[test]
    fn what_is_no_range_is_refused_with_an_example() {
        for wrong in ["", "10.0.0.0", "10.0.0.0/33", "2001:db8::/56", "ten"] {
            assert!(masked(wrong).unwrap_err().message.contains("10.0.0.0/16"), "{wrong}");
        }
        assert!(masked_v6("10.0.0.0/16").unwrap_err().message.contains("2001:db8::/56"));
    }
}
