//! The bound on live timers, shared by all shards without a shared lock.
//!
//! The pool is one counter. A shard borrows from it in batches and therefore touches it
//! only once per batch. The bound is never exceeded. While other shards hold unused
//! credits, a timer may be refused a little before the bound is reached.

use crate::sync::{Arc, AtomicUsize, Ordering};

const LARGEST_BATCH: usize = 64;

/// The credits that no shard has borrowed.
pub(crate) struct Pool(AtomicUsize);

/// The credits that one shard has borrowed and not used.
pub(crate) struct Credit {
    pool: Option<Arc<Pool>>,
    batch: usize,
    unused: usize,
    /// If `unused` exceeds this number, a batch goes back to the pool.
    most: usize,
}

impl Pool {
    /// Returns a source of credits for `shards` shards, which together allow
    /// `max` timers.
    pub(crate) fn share(max: Option<usize>, shards: usize) -> impl FnMut() -> Credit {
        let pool = max.map(|max| Arc::new(Pool(AtomicUsize::new(max))));
        let batch = match max {
            Some(max) => (max / (32 * shards)).clamp(1, LARGEST_BATCH),
            None => 0,
        };
        move || Credit {
            unused: 0,
            // If the bound is very small, no shard may keep unused credits.
            most: if batch > 1 { 2 * batch } else { 0 },
            pool: pool.clone(),
            batch,
        }
    }
}

impl Credit {
    /// Takes one credit. Returns `false` if none is available.
    #[inline]
    pub(crate) fn take(&mut self) -> bool {
        if self.pool.is_none() {
            return true;
        }
        if self.unused == 0 && !self.borrow() {
            return false;
        }
        self.unused -= 1;
        true
    }

    /// Gives one credit back.
    #[inline]
    pub(crate) fn put(&mut self) {
        self.put_many(1);
    }

    /// Gives many credits back.
    #[inline]
    pub(crate) fn put_many(&mut self, credits: usize) {
        if self.pool.is_none() {
            return;
        }
        self.unused += credits;
        while self.unused > self.most {
            self.repay();
        }
    }

    #[cold]
    #[allow(deprecated)] // Rust 1.99 gave `fetch_update` a new name
    fn borrow(&mut self) -> bool {
        let Some(Pool(left)) = self.pool.as_deref() else {
            return false;
        };
        let batch = self.batch;
        let update = |left: usize| Some(left - left.min(batch));
        let before = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, update).unwrap_or(0);
        self.unused = before.min(batch);
        self.unused > 0
    }

    #[cold]
    fn repay(&mut self) {
        if let Some(Pool(left)) = self.pool.as_deref() {
            left.fetch_add(self.batch, Ordering::Relaxed);
            self.unused -= self.batch;
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn idle_shards_keep_next_to_nothing_of_a_small_bound() {
        let mut share = Pool::share(Some(10), 16);
        let mut credits: Vec<Credit> = (0..16).map(|_| share()).collect();
        for credit in &mut credits {
            assert!(credit.take());
            credit.put();
        }
        assert_eq!((0..20).filter(|_| credits[0].take()).count(), 10);
    }

    #[test]
    fn idle_shards_sit_on_a_sixteenth_of_the_bound_at_most() {
        for (max, shards) in [(1_000, 16), (8_000, 4), (100_000, 16)] {
            let mut share = Pool::share(Some(max), shards);
            let mut credits: Vec<Credit> = (0..shards).map(|_| share()).collect();
            for credit in &mut credits {
                let taken = (0..max).take_while(|_| credit.take()).count();
                let (one_by_one, at_once) = (taken / 2, taken - taken / 2);
                (0..one_by_one).for_each(|_| credit.put());
                credit.put_many(at_once);
            }
            let left = (0..max).filter(|_| credits[0].take()).count();
            assert!(left >= max - max / 16, "{left} of {max} for {shards}");
        }
    }

    #[test]
    fn shards_together_never_exceed_the_bound_and_lose_nothing_of_it() {
        for max in [1, 2, 7, 100, 10_000] {
            let mut share = Pool::share(Some(max), 4);
            let mut credits = [share(), share(), share(), share()];
            for _ in 0..3 {
                let mut taken = [0; 4];
                for (credit, taken) in credits.iter_mut().zip(&mut taken) {
                    while credit.take() {
                        *taken += 1;
                    }
                }
                let all: usize = taken.iter().sum();
                assert!(all <= max && all + 3 * 2 * LARGEST_BATCH >= max);
                for (credit, taken) in credits.iter_mut().zip(taken) {
                    (0..taken).for_each(|_| credit.put());
                }
            }
        }
    }
}
