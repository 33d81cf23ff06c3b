//! The name of an engine, and the names of its threads.
//!
//! Linux keeps the first 15 bytes of a thread's name. The part that tells threads of an
//! engine apart comes last, so the engine's name is cut to leave room for it.

use core::fmt;
// Not the `Arc` of `crate::sync`, because no thread waits for another through a name.
use std::sync::Arc;

/// The length in bytes of the name of an engine within the name of a thread: what the
/// longest role, `-w4095`, leaves of 15 bytes.
const PREFIX_MAX: usize = 9;

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct EngineName(Arc<str>);

/// The task of a thread.
pub(crate) enum Role {
    Ticker,
    /// The worker with this number.
    Worker(usize),
}

impl EngineName {
    pub(crate) fn new(name: Arc<str>) -> EngineName {
        EngineName(name)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn to_arc(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    /// Returns whether the name can be part of a thread's name.
    pub(crate) fn is_valid(&self) -> bool {
        !self.0.is_empty() && !self.0.contains('\0')
    }

    /// Returns the name of the engine's thread with this role.
    pub(crate) fn of_thread(&self, role: Role) -> String {
        let prefix = self.prefix();
        match role {
            Role::Ticker => format!("{prefix}-tick"),
            Role::Worker(n) => format!("{prefix}-w{n}"),
        }
    }

    /// Returns as much of the name as every thread's name has room for.
    fn prefix(&self) -> &str {
        let mut end = PREFIX_MAX.min(self.0.len());
        while !self.0.is_char_boundary(end) {
            end -= 1;
        }
        &self.0[..end]
    }
}

impl Default for EngineName {
    fn default() -> EngineName {
        EngineName("tickwheel".into())
    }
}

impl fmt::Debug for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// The number of bytes of a thread's name that Linux keeps.
    const KEPT: usize = 15;
    /// The highest number of a worker: see `MOST_WORKERS`.
    const LAST: usize = 4_095;

    const NAMES: [&str; 8] = [
        "a",
        "tickwheel",
        "tickwheels",
        "session-cache of the second region",
        "éééééé",
        "1234567é",
        "12345678é",
        "時計の輪と時計の輪",
    ];

    fn roles() -> impl Iterator<Item = Role> {
        let workers = (0..=LAST).map(Role::Worker);
        workers.chain([Role::Ticker])
    }

    #[test]
    fn names_of_threads_fit_into_what_linux_keeps_and_differ() {
        for name in NAMES {
            let name = EngineName::new(name.into());
            let threads: HashSet<_> = roles().map(|role| name.of_thread(role)).collect();
            assert_eq!(threads.len(), LAST + 2);
            for thread in threads {
                assert!(thread.len() <= KEPT, "{thread}");
                assert!(thread.starts_with(name.prefix()), "{thread}");
            }
        }
    }

    #[test]
    fn a_name_is_cut_between_two_characters_and_no_more_than_necessary() {
        let prefix = |name: &str| EngineName::new(name.into()).prefix().to_owned();
        for name in NAMES {
            let kept = prefix(name);
            let next = name[kept.len()..].chars().next();
            assert!(next.is_none_or(|next| kept.len() + next.len_utf8() > PREFIX_MAX));
        }
        assert_eq!(prefix("1234567é"), "1234567é");
        assert_eq!(prefix("12345678é"), "12345678");
    }

    #[test]
    fn the_usual_name_is_not_cut() {
        let usual = EngineName::default();
        assert_eq!(usual.of_thread(Role::Ticker), "tickwheel-tick");
        assert_eq!(usual.of_thread(Role::Worker(LAST)), "tickwheel-w4095");
    }

    #[test]
    fn a_name_without_characters_or_with_nul_is_invalid() {
        for (name, valid) in [("a", true), ("", false), ("\0", false), ("a\0b", false)] {
            assert_eq!(EngineName::new(name.into()).is_valid(), valid, "{name:?}");
        }
    }
}
