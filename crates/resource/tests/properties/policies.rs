//! Policy documents: what is written otherwise is the same, what means something else is not.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use resource::policy::equal;
use serde_json::{Map, Value, json};

const ACTIONS: [&str; 5] = ["s3:GetObject", "s3:Put*", "sts:AssumeRole", "ec2:Describe*", "*"];
const ACCOUNTS: [&str; 3] = ["123456789012", "arn:aws:iam::210987654321:root", "AROAEXAMPLEID"];

/// Texts of one element; there is always one.
fn some(of: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
    subsequence(of, 1..=of.len())
}

#[derive(Debug, Clone)]
struct Statement {
    allow: bool,
    sid: Option<String>,
    actions: Vec<&'static str>,
    accounts: Vec<&'static str>,
    condition: Option<String>,
}

fn statement() -> impl Strategy<Value = Statement> {
    let sid = prop::option::of("[A-Za-z0-9]{1,8}");
    (any::<bool>(), sid, some(&ACTIONS), some(&ACCOUNTS), prop::option::of(any::<String>())).prop_map(
        |(allow, sid, actions, accounts, condition)| Statement { allow, sid, actions, accounts, condition },
    )
}

fn statements() -> impl Strategy<Value = Vec<Statement>> {
    prop::collection::vec(statement(), 1..5)
}

/// One of several ways to write it.
#[derive(Debug, Clone, Copy)]
struct Hand {
    /// Values in another order, one alone without a list, twice where that is harmless.
    loose: bool,
    /// Actions and condition keys in another case, accounts as the other form.
    other_spelling: bool,
    pretty: bool,
}

fn hand() -> impl Strategy<Value = Hand> {
    any::<(bool, bool, bool)>().prop_map(|(loose, other_spelling, pretty)| Hand {
        loose,
        other_spelling,
        pretty,
    })
}

impl Hand {
    fn write(self, statements: &[Statement]) -> String {
        let mut written: Vec<Value> = statements.iter().map(|statement| self.statement(statement)).collect();
        if self.loose {
            written.reverse();
        }
        let statements = if self.loose && written.len() == 1 { written.remove(0) } else { written.into() };
        let document = json!({"Version": "2012-10-17", "Statement": statements});
        if self.pretty { format!("{document:#}\n") } else { document.to_string() }
    }

    fn statement(self, statement: &Statement) -> Value {
        let mut fields = Map::new();
        fields.insert("Effect".into(), json!(if statement.allow { "Allow" } else { "Deny" }));
        fields.extend(statement.sid.iter().map(|sid| ("Sid".into(), json!(sid))));
        let action =
            |action: &&str| if self.other_spelling { action.to_uppercase() } else { (*action).to_owned() };
        fields.insert("Action".into(), self.list(statement.actions.iter().map(action).collect()));
        let account = |account: &&str| match (self.other_spelling, *account) {
            (true, "123456789012") => "arn:aws:iam::123456789012:root".to_owned(),
            (true, "arn:aws:iam::210987654321:root") => "210987654321".to_owned(),
            (_, account) => account.to_owned(),
        };
        let accounts = self.list(statement.accounts.iter().map(account).collect());
        fields.insert("Principal".into(), json!({"AWS": accounts}));
        if let Some(value) = &statement.condition {
            let key = if self.other_spelling { "AWS:PrincipalTag/x" } else { "aws:principaltag/X" };
            fields.insert("Condition".into(), json!({"StringEquals": {key: self.list(vec![value.clone()])}}));
        }
        Value::Object(fields)
    }

    fn list(self, mut values: Vec<String>) -> Value {
        match (self.loose, values.len()) {
            (false, _) => values.into(),
            (true, 1) => values.remove(0).into(),
            (true, _) => {
                values.reverse();
                values.extend(values.first().cloned());
                values.into()
            }
        }
    }
}

proptest! {
    #[test]
    fn another_hand_writes_the_same(statements in statements(), one in hand(), other in hand()) {
        let (one, other) = (one.write(&statements), other.write(&statements));
        prop_assert!(equal(&one, &other), "{one}\n{other}");
        prop_assert!(equal(&other, &one));
    }

    #[test]
    fn another_meaning_is_another_policy(
        statements in statements(), at: prop::sample::Index, change in select(vec![0, 1, 2]), hand in hand(),
    ) {
        let mut other = statements.clone();
        let changed = at.get_mut(&mut other);
        match change {
            0 => changed.allow = !changed.allow,
            1 => changed.actions = vec!["iam:PassRole"],
            _ => changed.accounts = vec!["999999999999"],
        }
        // One statement more or less of several that are alike would not be another policy.
        prop_assume!(statements.len() == 1 || change > 0);
        prop_assert!(!equal(&hand.write(&statements), &hand.write(&other)));
    }

    #[test]
    fn any_two_texts_can_be_compared(one in any::<String>(), other in any::<String>()) {
        prop_assert!(equal(&one, &one));
        prop_assert_eq!(equal(&one, &other), equal(&other, &one));
    }

    #[test]
    fn any_two_documents_can_be_compared(one in crate::diffs::json(), other in crate::diffs::json()) {
        let document = |statement: &Value| json!({"Statement": statement}).to_string();
        let (one, other) = (document(&one), document(&other));
        prop_assert!(equal(&one, &one));
        prop_assert_eq!(equal(&one, &other), equal(&other, &one));
    }
}
