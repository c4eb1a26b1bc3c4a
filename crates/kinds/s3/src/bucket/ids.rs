//! Ids that AWS makes up for what was written without one.

/// Takes the id off each live item that is wanted without one: there, the id is AWS's own.
pub(super) fn without_made_up<T: Clone + PartialEq>(
    mut live: Vec<T>,
    wanted: &[T],
    id: fn(&mut T) -> &mut Option<String>,
) -> Vec<T> {
    let mut wanted = wanted.to_vec();
    let named: Vec<_> = wanted.iter_mut().filter_map(|item| id(item).clone()).collect();
    wanted.retain_mut(|item| id(item).is_none());
    for item in &mut live {
        if id(item).as_ref().is_some_and(|id| named.contains(id)) {
            continue;
        }
        let mut anonymous = item.clone();
        *id(&mut anonymous) = None;
        if let Some(at) = wanted.iter().position(|wanted| *wanted == anonymous) {
            wanted.swap_remove(at);
            *item = anonymous;
        }
    }
    live
}

#[cfg(test)]
mod tests {
    use super::*;

    type Item = (Option<String>, u8);

    fn item(id: &str, value: u8) -> Item {
        (Some(id.to_owned()).filter(|id| !id.is_empty()), value)
    }

    #[test]
    fn only_ids_that_aws_made_up_are_taken_off() {
        let seen =
            |live: &[Item], wanted: &[Item]| without_made_up(live.to_vec(), wanted, |item| &mut item.0);
        assert_eq!(seen(&[item("x", 1)], &[item("", 1)]), [item("", 1)]);
        assert_eq!(seen(&[item("x", 1)], &[item("mine", 1)]), [item("x", 1)]);
        assert_eq!(seen(&[item("x", 2)], &[item("", 1)]), [item("x", 2)]);
        // A second one that is alike is one too many.
        assert_eq!(seen(&[item("x", 1), item("y", 1)], &[item("", 1)]), [item("", 1), item("y", 1)]);
        // One that bears a wanted id is that one.
        assert_eq!(
            seen(&[item("a", 1), item("x", 1)], &[item("a", 1), item("", 1)]),
            [item("a", 1), item("", 1)]
        );
    }
}
