//! The master user's password on its way to AWS.

use resource::{Call, Error, Result};

/// The field that refers to its Secret.
const FIELD: &str = "/masterUserPasswordRef";

/// The longest that any engine takes (Db2); AWS knows the others' limits.
const LONGEST: usize = 255;

/// The password for this call. What is longer than any can be is not sent at all: a Secret may hold a
/// megabyte.
pub(crate) fn password(call: &Call) -> Result<&str> {
    let password = call.secret(FIELD)?.expose();
    if password.chars().nth(LONGEST).is_some() {
        let message = format!("the password is longer than the {LONGEST} characters that any engine takes");
        return Err(Error::invalid("masterUserPasswordRef", message));
    }
    Ok(password)
}
