//! The hash of a key, and the map from hashes to timers.
//!
//! With `std`, each wheel hashes with a random key of its own, and the map is a
//! hash map. `core` has no source of randomness, and `alloc` has no hash map.
//! Without `std`, all wheels therefore hash with the same key, and the map is
//! sorted: an attacker cannot make it slower with keys whose hashes are
//! different, but can with keys that share a hash.

#[cfg(feature = "std")]
pub(super) use hashed::{ByHash, Entry, HashKey, shrink};
#[cfg(not(feature = "std"))]
pub(super) use sorted::{ByHash, Entry, HashKey, shrink};

#[cfg(feature = "std")]
mod hashed {
    use core::hash::{BuildHasherDefault, Hasher};
    use std::collections::HashMap;

    pub(in super::super) use std::collections::hash_map::{Entry, RandomState as HashKey};

    pub(in super::super) type ByHash<V> = HashMap<u64, V, BuildHasherDefault<HashedAlready>>;

    pub(in super::super) fn shrink<V>(map: &mut ByHash<V>) {
        map.shrink_to_fit();
    }

    /// A hasher for keys that are hashes already. It returns them unchanged.
    #[derive(Default)]
    pub(in super::super) struct HashedAlready(u64);

    impl Hasher for HashedAlready {
        fn write_u64(&mut self, hash: u64) {
            self.0 = hash;
        }

        fn write(&mut self, _: &[u8]) {
            unreachable!("only hashes are looked up");
        }

        fn finish(&self) -> u64 {
            self.0
        }
    }
}

#[cfg(not(feature = "std"))]
mod sorted {
    use alloc::collections::BTreeMap;
    use core::hash::BuildHasherDefault;

    pub(in super::super) use alloc::collections::btree_map::Entry;

    // Deprecated in favour of the hasher of `std`, which is the same.
    #[allow(deprecated)]
    pub(in super::super) type HashKey = BuildHasherDefault<core::hash::SipHasher>;

    pub(in super::super) type ByHash<V> = BTreeMap<u64, V>;

    /// Does nothing, because the map frees memory whenever a timer is removed.
    pub(in super::super) fn shrink<V>(_: &mut ByHash<V>) {}
}
