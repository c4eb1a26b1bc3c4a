//! Creating exactly one (R1 to R8): lost answers, reads that lag, tokens, an API server that is
//! in the way, a stale cache, an old CRD, a stop in the middle.

mod answers;
mod api_server;
mod made;
mod old_crd;
mod settling;

use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);
/// The settle window and AWS's longest lag, scaled as the operator is.
const SETTLE: Duration = Duration::from_millis(1200);
const LAG: Duration = Duration::from_millis(600);
