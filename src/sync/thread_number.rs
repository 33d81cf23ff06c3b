//! The number of a thread, which says which shard is the thread's (`Core::hold_own`): always
//! the same one, shared with as few other threads as possible.
//!
//! Threads get numbers in the order of their first call. A thread that ends leaves its
//! number to a new one; otherwise short-lived threads would crowd into one shard. In a model,
//! no number is given back.

#[cfg(any(loom, shuttle))]
pub(crate) use model::{known_number, thread_number};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use real::{known_number, thread_number};

#[cfg(not(any(loom, shuttle)))]
mod real {
    use std::cell::Cell;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;
    use std::sync::{Mutex, PoisonError};

    struct Numbers {
        free: BinaryHeap<Reverse<usize>>,
        next: usize,
    }

    static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers { free: BinaryHeap::new(), next: 0 });

    const NONE: usize = usize::MAX;

    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(NONE) };
        static HOLDER: Holder = const { Holder };
    }

    /// Gives back the thread's number when the thread ends.
    struct Holder;

    impl Drop for Holder {
        fn drop(&mut self) {
            let number = NUMBER.replace(NONE);
            if number != NONE {
                let mut numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
                numbers.free.push(Reverse(number));
            }
        }
    }

    /// Returns the calling thread's number, or a huge one if it has none yet.
    #[inline]
    pub(crate) fn known_number() -> usize {
        NUMBER.get()
    }

    /// Returns the calling thread's number, which is small and differs from those of
    /// all other living threads.
    pub(crate) fn thread_number() -> usize {
        match known_number() {
            NONE => take_number(),
            number => number,
        }
    }

    #[cold]
    fn take_number() -> usize {
        // A thread that is ending could not give a number back, so it takes none and
        // uses the first shard.
        if HOLDER.try_with(|_| ()).is_err() {
            return 0;
        }
        let mut numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        let number = match numbers.free.pop() {
            Some(Reverse(number)) => number,
            None => {
                numbers.next += 1;
                numbers.next - 1
            }
        };
        NUMBER.set(number);
        number
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use std::thread;

        #[test]
        fn living_threads_differ_and_ended_ones_are_replaced() {
            let mine = thread_number();
            assert_eq!(mine, thread_number());
            let mut highest = 0;
            for _ in 0..200 {
                let other = thread::spawn(thread_number).join().unwrap();
                assert_ne!(other, mine);
                highest = highest.max(other);
            }
            assert!(highest < 150, "numbers are not given back");
        }
    }
}

#[cfg(any(loom, shuttle))]
mod model {
    use crate::sync::primitives::{AtomicUsize, Ordering, lazy_static, thread_local};

    lazy_static! {
        static ref NEXT: AtomicUsize = AtomicUsize::new(0);
    }

    thread_local! {
        static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn thread_number() -> usize {
        NUMBER.with(|number| *number)
    }

    pub(crate) fn known_number() -> usize {
        thread_number()
    }
}
