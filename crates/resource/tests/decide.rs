//! `decide` as a table: what is known, and what follows from it.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use resource::condition::Reason;
use resource::decide::{Allowed, Claimed, Decision, Facts, Ground, Sight, Until, decide};
use resource::diff::{Difference, diff};
use resource::record::{Creation, Record};
use resource::tags::{OWNER_TAG, Ownership, Tags, UID_TAG};
use resource::{Candidate, Live, Phase, Protection, Role};
use serde_json::json;

const EIP: Role = Role("eip");
const MAIN: Role = Role::MAIN;
const SETTLE: Duration = Duration::from_secs(60);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn me() -> Ownership {
    Ownership::new("lab", "ns", "VPC", "main", "uid-1")
}

fn creation(id: Option<&str>, started: i64) -> Creation {
    Creation {
        token: "token".to_owned(),
        started_at: at(started),
        attempt: 1,
        since: None,
        refused: false,
        account_id: "123456789012".to_owned(),
        region: "eu-west-1".to_owned(),
        id: id.map(str::to_owned),
        request: None,
    }
}

fn claim(owner: &str, uid: &str) -> Tags {
    [(OWNER_TAG.to_owned(), owner.to_owned()), (UID_TAG.to_owned(), uid.to_owned())].into()
}

fn live(phase: Phase, tags: Tags) -> Sight {
    Sight::Live(Live { spec: json!({}), status: json!({}), phase, tags })
}

fn found(id: &str, tags: Tags, by_name: bool) -> Claimed {
    Claimed { candidate: Candidate { id: id.to_owned(), tags, by_name }, void: false }
}

/// What a row of a table starts from: an object that is wanted, long settled, unprotected.
struct Case {
    deleting: bool,
    record: Record,
    roles: Vec<Role>,
    sights: BTreeMap<Role, Sight>,
    difference: Difference,
    protection: Protection,
    now: i64,
    allowed: Allowed<'static>,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            deleting: false,
            record: Record::default(),
            roles: vec![MAIN],
            sights: BTreeMap::new(),
            difference: Difference::default(),
            protection: Protection::None,
            now: 1000,
            allowed: Allowed { adopt_unowned: true, recreate: true, ..Allowed::default() },
        }
    }
}

impl Case {
    fn made(mut self, role: Role, creation: Creation) -> Self {
        self.record.creation.insert(role.0.to_owned(), creation);
        self
    }

    fn synced(mut self) -> Self {
        self.record.last_sync = Some(at(0));
        self
    }

    fn sees(mut self, role: Role, sight: Sight) -> Self {
        self.sights.insert(role, sight);
        self
    }

    fn finds(self, found: Vec<Claimed>) -> Self {
        self.sees(MAIN, Sight::Unmade(found))
    }

    fn decide(&self) -> Decision {
        decide(&Facts {
            deleting: self.deleting,
            me: &me(),
            record: &self.record,
            roles: &self.roles,
            sights: &self.sights,
            difference: &self.difference,
            protection: &|_| self.protection,
            now: at(self.now),
            settle: SETTLE,
            allowed: self.allowed,
        })
    }

    /// The reason and message of a wait.
    fn waits(&self) -> (Reason, String, Until) {
        match self.decide() {
            Decision::Wait(wait) => (wait.reason, wait.message, wait.until),
            other => panic!("not a wait: {other:?}"),
        }
    }
}

fn gone(deleted_by_us: bool) -> Sight {
    Sight::Absent { deleted_by_us }
}

fn claims(id: &str, ground: Ground) -> Decision {
    Decision::Claim { role: MAIN, id: id.to_owned(), ground }
}

fn creates(attempt: u32) -> Decision {
    Decision::Create { role: MAIN, attempt }
}

#[test]
fn what_is_not_there_is_created_once() {
    let refused = Creation { refused: true, ..creation(None, 990) };
    let unclear = creation(None, 990);
    for (case, what, decision) in [
        (Case::default().finds(vec![]), "never tried", creates(1)),
        (Case::default().finds(vec![]).made(MAIN, refused), "refused for certain", creates(2)),
        (
            Case { protection: Protection::Token, ..Case::default() }
                .finds(vec![])
                .made(MAIN, unclear.clone()),
            "unclear, with a token: the same attempt again",
            creates(1),
        ),
        (
            Case { protection: Protection::UniqueName, ..Case::default() }
                .finds(vec![])
                .made(MAIN, unclear.clone()),
            "unclear, with a unique name: the same attempt again",
            creates(1),
        ),
        (
            Case { now: 1051, ..Case::default() }.finds(vec![]).made(MAIN, unclear.clone()),
            "unclear, unprotected, past the settle window",
            creates(2),
        ),
    ] {
        assert_eq!(case.decide(), decision, "{what}");
    }
    let waiting = Case::default().finds(vec![]).made(MAIN, unclear);
    let (reason, _, until) = waiting.waits();
    assert_eq!(
        (reason, until),
        (Reason::Creating, Until::Settled(at(1050))),
        "unclear, unprotected, within it"
    );
}

#[test]
fn what_only_its_token_leads_to_is_never_made_twice_nor_let_go() {
    let day = Duration::from_secs(24 * 3600);
    let hidden =
        |deleting, now| Case { deleting, protection: Protection::TokenFor(day), now, ..Case::default() };
    let sent = || creation(None, 0);
    // The settle window is long over: only the token tells.
    for deleting in [false, true] {
        let within = hidden(deleting, 86_400).finds(vec![]).made(MAIN, sent());
        assert_eq!(within.decide(), creates(1), "the same attempt again, deleting: {deleting}");
        // It counts from the first time that the attempt was sent.
        let resent = Creation { since: Some(at(0)), ..creation(None, 86_000) };
        let (reason, message, until) = hidden(deleting, 86_401).finds(vec![]).made(MAIN, resent).waits();
        assert_eq!((reason, until), (Reason::Error, Until::Changed));
        let help = if deleting { "deletion-policy: abandon" } else { "external-id" };
        assert!(message.contains("AWS has forgotten its token") && message.contains(help), "{message}");
    }
    let refused = Creation { refused: true, ..sent() };
    assert_eq!(hidden(true, 10).finds(vec![]).made(MAIN, refused).decide(), Decision::Forget(MAIN));
    // What shows itself needs no token.
    let shown = hidden(true, 100_000).finds(vec![found("vpc-1", claim(&me().owner, "uid-1"), false)]);
    assert_eq!(shown.made(MAIN, sent()).decide(), claims("vpc-1", Ground::Recovered));
    let abandoned = Allowed { release: true, ..Allowed::default() };
    let abandoned = Case { allowed: abandoned, ..hidden(true, 100_000) };
    assert_eq!(abandoned.finds(vec![]).made(MAIN, sent()).decide(), Decision::Abandon);
}

#[test]
fn what_is_found_is_judged_by_its_tags() {
    let ours = claim(&me().owner, "uid-1");
    let dead = Claimed { void: true, ..found("vpc-2", claim(&me().owner, "uid-0"), false) };
    let foreign = found("vpc-3", claim("other/ns/VPC/main", "uid-9"), true);
    let untagged = found("vpc-4", Tags::new(), true);
    let unnamed = found("vpc-5", Tags::new(), false);
    let case = || Case::default();
    let never = || Case { allowed: Allowed { adopt_unowned: false, ..case().allowed }, ..case() };
    let from =
        || Case { allowed: Allowed { adopt_from: Some("other/ns/VPC/main"), ..case().allowed }, ..case() };
    for (case, what, decision) in [
        (case().finds(vec![found("vpc-1", ours.clone(), false)]), "ours", claims("vpc-1", Ground::Recovered)),
        (case().finds(vec![dead.clone()]), "a dead claim", claims("vpc-2", Ground::TakenOver)),
        (
            case().finds(vec![dead.clone(), found("vpc-1", ours.clone(), false)]),
            "ours before a dead claim",
            claims("vpc-1", Ground::Recovered),
        ),
        (case().finds(vec![untagged.clone()]), "unowned, by name", claims("vpc-4", Ground::Adopted)),
        (
            case().finds(vec![untagged.clone()]).made(MAIN, creation(None, 0)),
            "unowned, under an intent of ours",
            claims("vpc-4", Ground::Recovered),
        ),
        (
            case().finds(vec![untagged.clone()]).made(MAIN, Creation { refused: true, ..creation(None, 0) }),
            "unowned, after a refusal",
            claims("vpc-4", Ground::Adopted),
        ),
        (
            from().finds(vec![foreign.clone()]),
            "another cluster's, named by adopt-from",
            claims("vpc-3", Ground::Adopted),
        ),
        (case().finds(vec![unnamed]), "something with neither our tag nor our name", creates(1)),
    ] {
        assert_eq!(case.decide(), decision, "{what}");
    }
    for (case, what, says) in [
        (never().finds(vec![untagged]), "--adopt never", vec!["vpc-4", "external-id"]),
        (
            case().finds(vec![foreign]),
            "another's",
            vec!["other/ns/VPC/main", "lab/ns/VPC/main", "adopt-from"],
        ),
        (
            case().finds(vec![found("vpc-1", ours.clone(), false), found("vpc-6", ours, false)]),
            "several of ours",
            vec!["vpc-1", "vpc-6"],
        ),
    ] {
        let (reason, message, until) = case.waits();
        assert_eq!((reason, until), (Reason::Error, Until::Changed), "{what}");
        says.iter().for_each(|says| assert!(message.contains(says), "{what}: {message}"));
    }
}

#[test]
fn what_is_live_is_kept_as_the_spec_says() {
    let ours = || claim(&me().owner, "uid-1");
    let made = || Case::default().made(MAIN, creation(Some("vpc-1"), 0)).synced();
    let schema = json!({"properties": {"a": {"type": "boolean"}}});
    let none = Default::default();
    let differs = diff(&schema, &json!({"a": true}), &json!({"a": false}), &none, &none);
    let drifted = Case { difference: differs, ..made() };
    assert_eq!(made().sees(MAIN, live(Phase::Ready, ours())).decide(), Decision::Nothing);
    assert_eq!(
        made().sees(MAIN, live(Phase::Ready, Tags::new())).decide(),
        Decision::Nothing,
        "no claim at all"
    );
    assert_eq!(drifted.sees(MAIN, live(Phase::Ready, ours())).decide(), Decision::Update);

    let busy = made().sees(MAIN, live(Phase::Busy("x".to_owned()), ours())).waits();
    assert_eq!((busy.0, busy.2), (Reason::Updating, Until::Polled));
    let new = Case::default().made(MAIN, creation(Some("vpc-1"), 0));
    assert_eq!(new.sees(MAIN, live(Phase::Busy("x".to_owned()), ours())).waits().0, Reason::Creating);

    let (reason, message, _) = made().sees(MAIN, live(Phase::Ready, claim("b/ns/VPC/x", "uid-2"))).waits();
    assert_eq!(reason, Reason::Error);
    assert!(message.contains("b/ns/VPC/x") && message.contains(&me().owner), "{message}");

    let failed = |replace| live(Phase::Failed { why: "quota".to_owned(), replace }, ours());
    assert_eq!(made().sees(MAIN, failed(true)).decide(), Decision::Delete(MAIN));
    assert_eq!(made().sees(MAIN, failed(false)).waits().1, "quota");
    let mut adopted = made();
    adopted.record.adopted = true;
    let (reason, message, _) = adopted.sees(MAIN, failed(true)).waits();
    assert_eq!(reason, Reason::Error);
    assert!(message.contains("quota") && message.contains("is not replaced"), "{message}");
}

#[test]
fn absence_counts_only_when_it_is_certain() {
    let made = |started| Case::default().made(MAIN, creation(Some("vpc-1"), started)).synced();
    assert_eq!(made(900).sees(MAIN, gone(false)).decide(), Decision::Forget(MAIN), "long made");
    assert_eq!(made(990).sees(MAIN, gone(false)).waits().2, Until::Settled(at(1050)), "just made");
    assert_eq!(made(990).sees(MAIN, gone(true)).decide(), Decision::Forget(MAIN), "just made, deleted by us");
    let adopted = Creation { token: String::new(), ..creation(Some("vpc-1"), 990) };
    let adopted = Case::default().made(MAIN, adopted).synced().sees(MAIN, gone(false));
    assert_eq!(adopted.decide(), Decision::Forget(MAIN), "adopted: it was seen, not made");
    let precious = Case { allowed: Allowed::default(), ..made(900) }.sees(MAIN, gone(false));
    let (reason, message, _) = precious.waits();
    assert_eq!(reason, Reason::Error);
    assert!(message.contains("aws.konfig.io/recreate"), "{message}");
}

#[test]
fn roles_are_made_in_order_and_unmade_in_reverse() {
    let both = || Case { roles: vec![EIP, MAIN], ..Case::default() };
    let ours = || claim(&me().owner, "uid-1");
    let first = both().sees(EIP, Sight::Unmade(vec![]));
    assert_eq!(first.decide(), Decision::Create { role: EIP, attempt: 1 });
    let second = both()
        .made(EIP, creation(Some("eip-1"), 0))
        .sees(EIP, live(Phase::Ready, ours()))
        .sees(MAIN, Sight::Unmade(vec![]));
    assert_eq!(second.decide(), Decision::Create { role: MAIN, attempt: 1 });

    let made = || {
        let both = Case { deleting: true, ..both() };
        both.made(EIP, creation(Some("eip-1"), 0)).made(MAIN, creation(Some("nat-1"), 0))
    };
    let going = |main| made().sees(EIP, live(Phase::Ready, ours())).sees(MAIN, main);
    assert_eq!(going(live(Phase::Ready, ours())).decide(), Decision::Delete(MAIN));
    assert_eq!(going(live(Phase::Deleting, ours())).waits().0, Reason::Deleting);
    assert_eq!(going(gone(true)).decide(), Decision::Forget(MAIN));
    let last = Case { deleting: true, ..both() }.made(EIP, creation(Some("eip-1"), 0));
    assert_eq!(last.sees(EIP, live(Phase::Ready, ours())).decide(), Decision::Delete(EIP));
}

#[test]
fn an_object_goes_only_when_nothing_of_it_is_left() {
    let ours = || claim(&me().owner, "uid-1");
    let leaving = || Case { deleting: true, ..Case::default() };
    let made = |started| leaving().made(MAIN, creation(Some("vpc-1"), started));
    assert_eq!(leaving().decide(), Decision::Release, "nothing was ever begun");
    assert_eq!(made(0).sees(MAIN, live(Phase::Ready, ours())).decide(), Decision::Delete(MAIN));
    assert_eq!(
        made(0).sees(MAIN, live(Phase::Ready, Tags::new())).decide(),
        Decision::Delete(MAIN),
        "tag taken off"
    );
    assert_eq!(made(0).sees(MAIN, gone(false)).decide(), Decision::Forget(MAIN));
    let settling = made(990).sees(MAIN, gone(false)).waits();
    assert_eq!((settling.0, settling.2), (Reason::Deleting, Until::Settled(at(1050))));

    let (reason, message, _) = made(0).sees(MAIN, live(Phase::Ready, claim("b", "uid-2"))).waits();
    assert_eq!(reason, Reason::Error);
    assert!(message.contains("deletion-policy"), "{message}");

    let intent = |started| leaving().made(MAIN, creation(None, started));
    let lost = found("vpc-1", ours(), false);
    assert_eq!(intent(990).finds(vec![lost]).decide(), claims("vpc-1", Ground::Recovered));
    assert_eq!(intent(990).finds(vec![]).waits().0, Reason::Deleting);
    assert_eq!(intent(0).finds(vec![]).decide(), Decision::Forget(MAIN));
    let foreign = found("vpc-2", claim("b", "uid-2"), true);
    assert_eq!(
        intent(0).finds(vec![foreign]).decide(),
        Decision::Forget(MAIN),
        "another's is not ours to delete"
    );

    let released = Case { allowed: Allowed { release: true, ..Allowed::default() }, ..made(0) };
    assert_eq!(released.sees(MAIN, live(Phase::Ready, ours())).decide(), Decision::Abandon);
}
