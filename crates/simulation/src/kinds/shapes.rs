//! What the kinds are like.

use std::time::Duration;

use resource::schema::{CLEARABLE, DEFAULT, IMMUTABLE, REF, SECRET, TAGS};
use resource::{Deletion, Meta, Polling, Protection, Reads, Role};
use serde_json::{Value, json};

/// What AWS takes for `mode` if nobody says.
pub const DEFAULT_MODE: &str = "plain";

/// How AWS works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// It is done when the answer comes.
    Immediate,
    /// The resource shows that AWS is at it.
    Background,
    /// The answer is the handle of a request.
    Requests,
}

/// A kind.
#[derive(Debug)]
pub struct Shape {
    /// What is fixed about it.
    pub meta: Meta,
    /// Its resources: what protects their creation, and how it goes.
    pub roles: &'static [(Role, Protection, Pace)],
    /// How changes and deletions go.
    pub pace: Pace,
    /// The answer to a create call shows what was made.
    pub answers_in_full: bool,
    /// It bears a unique name.
    pub named: bool,
    /// It lies in a network.
    pub in_network: bool,
    /// It has a password.
    pub has_password: bool,
}

const META: Meta = Meta {
    kind: "",
    plural: "",
    short_names: &[],
    about: "A kind of the model.",
    identifier: "id",
    deletion: Deletion::Immediate,
    reads: Reads::OneByOne,
    polling: Polling(Duration::from_secs(5)),
    precious: false,
    woken_by: &[],
    permissions: &[],
};

const PLAIN: Shape = Shape {
    meta: META,
    roles: &[(Role::MAIN, Protection::Token, Pace::Immediate)],
    pace: Pace::Immediate,
    answers_in_full: false,
    named: false,
    in_network: false,
    has_password: false,
};

/// All of them.
pub static SHAPES: &[Shape] = &[
    // Like a VPC: read in batches, not deleted while something lies in it.
    Shape {
        meta: Meta {
            kind: "Network",
            plural: "networks",
            deletion: Deletion::Blockable,
            reads: Reads::Batched,
            ..META
        },
        ..PLAIN
    },
    // Like an instance: it takes its time to come and to go.
    Shape {
        meta: Meta { kind: "Host", plural: "hosts", deletion: Deletion::Asynchronous, ..META },
        roles: &[(Role::MAIN, Protection::Token, Pace::Background)],
        pace: Pace::Background,
        in_network: true,
        ..PLAIN
    },
    // Like an Elastic IP, read in batches, too: nothing keeps AWS from making a second one.
    Shape {
        meta: Meta { kind: "Address", plural: "addresses", reads: Reads::Batched, ..META },
        roles: &[(Role::MAIN, Protection::None, Pace::Immediate)],
        answers_in_full: true,
        ..PLAIN
    },
    // Like a NAT gateway: two resources, the first of them unprotected.
    Shape {
        meta: Meta { kind: "Gateway", plural: "gateways", deletion: Deletion::Asynchronous, ..META },
        roles: &[
            (Role("eip"), Protection::None, Pace::Immediate),
            (Role::MAIN, Protection::Token, Pace::Background),
        ],
        pace: Pace::Background,
        in_network: true,
        ..PLAIN
    },
    // Like a role: a unique name, under which something may exist already.
    Shape {
        meta: Meta { kind: "Policy", plural: "policies", reads: Reads::Batched, ..META },
        roles: &[(Role::MAIN, Protection::UniqueName, Pace::Immediate)],
        answers_in_full: true,
        named: true,
        ..PLAIN
    },
    // Like a database: a unique name, a password, and nothing that is made anew by itself.
    Shape {
        meta: Meta {
            kind: "Database",
            plural: "databases",
            deletion: Deletion::Asynchronous,
            precious: true,
            ..META
        },
        roles: &[(Role::MAIN, Protection::UniqueName, Pace::Background)],
        pace: Pace::Background,
        named: true,
        has_password: true,
        ..PLAIN
    },
    // Like what Cloud Control makes: everything is a request.
    Shape {
        meta: Meta { kind: "Stack", plural: "stacks", deletion: Deletion::Asynchronous, ..META },
        roles: &[(Role::MAIN, Protection::Token, Pace::Requests)],
        pace: Pace::Requests,
        ..PLAIN
    },
];

/// The shape of a resource's plural.
pub fn shape_of(plural: &str) -> Option<&'static Shape> {
    SHAPES.iter().find(|shape| shape.meta.plural == plural)
}

impl Shape {
    /// What protects the creation of a role.
    pub fn protection(&self, role: Role) -> Protection {
        self.role(role).map_or(Protection::None, |(_, protection, _)| *protection)
    }

    /// How the creation of a role goes.
    pub fn pace(&self, role: Role) -> Pace {
        self.role(role).map_or(Pace::Immediate, |(_, _, pace)| *pace)
    }

    fn role(&self, role: Role) -> Option<&(Role, Protection, Pace)> {
        self.roles.iter().find(|(name, _, _)| *name == role)
    }

    /// What a call is named: `CreateGateway`, `CreateGatewayEip`.
    pub fn operation(&self, verb: &str, role: Role) -> String {
        let kind = self.meta.kind;
        if role == Role::MAIN { format!("{verb}{kind}") } else { format!("{verb}{kind}{}", role.0) }
    }

    /// The annotated schema of its spec.
    pub fn schema(&self) -> Value {
        let mut properties = json!({
            "size": {"type": "integer", IMMUTABLE: true},
            "mode": {"type": "string", DEFAULT: DEFAULT_MODE},
            "note": {"type": "string", CLEARABLE: true},
            "tags": {"type": "object", "additionalProperties": {"type": "string"}, TAGS: true},
        });
        if self.named {
            properties["name"] = json!({"type": "string", IMMUTABLE: true});
        }
        if self.in_network {
            let reference = json!({"kind": "Network", "yields": "/status/id", "direct": "id"});
            properties["networkRef"] = json!({"type": "object", REF: reference, IMMUTABLE: true});
        }
        if self.has_password {
            properties["passwordRef"] = json!({"type": "object", SECRET: true});
        }
        json!({"type": "object", "properties": properties})
    }
}
