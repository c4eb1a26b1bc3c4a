//! Changes that AWS has accepted and not yet made: they count as made.

/// The one that never waits for the maintenance window.
pub(crate) const LOGS: &str = "/enabledCloudwatchLogsExports";

/// What is pending, by path in the spec.
#[derive(Default)]
pub(crate) struct Pending(Vec<String>);

impl Pending {
    /// Puts what is pending of a field, if anything is, into the spec.
    pub(crate) fn put<T>(&mut self, path: &str, field: &mut Option<T>, value: Option<T>) {
        if value.is_some() {
            *field = value;
            self.0.push(path.to_owned());
        }
    }

    /// Whether anything may wait for the maintenance window.
    pub(crate) fn may_wait(&self) -> bool {
        self.0.iter().any(|path| path != LOGS)
    }

    /// The paths, if there are any.
    pub(crate) fn into_paths(self) -> Option<Vec<String>> {
        (!self.0.is_empty()).then_some(self.0)
    }
}
