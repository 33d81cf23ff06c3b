//! What a thread knows of itself: its shard, the tasks that it runs, the engines that it
//! drives.
//!
//! A thread's shard is always the same one, shared with as few other threads as possible.
//! Threads get numbers in the order of their first call. A thread that ends leaves its
//! number to a new one; otherwise short-lived threads would crowd into one shard.

#[cfg(any(loom, shuttle))]
pub(crate) use model::{known_number, thread_number};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use real::{known_number, thread_number};

use std::cell::{Cell, RefCell};

use crate::id::{TimerId, WheelNumber};
use crate::sync::thread_local;

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

    static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers {
        free: BinaryHeap::new(),
        next: 0,
    });

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
    use crate::sync::{AtomicUsize, Ordering, lazy_static, thread_local};

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

// The tasks that the calling thread is running.
//
// A task may drive another engine, whose tasks then run inside it, and so on. A thread
// can therefore be running any number of tasks, and cannot wait for any of them.

thread_local! {
    /// The timer of the innermost task that this thread is running.
    // Loom's macro does not know `const`.
    #[allow(clippy::missing_const_for_thread_local)]
    static INNERMOST: Cell<Option<TimerId>> = Cell::new(None);
    /// The timers of the other tasks, the outermost first.
    #[allow(clippy::missing_const_for_thread_local)]
    static OUTER: RefCell<Vec<TimerId>> = RefCell::new(Vec::new());
}

/// Returns whether the calling thread is running a task of this timer.
pub(crate) fn is_running_here(id: TimerId) -> bool {
    is_any_here(|running| running.is_same_timer(id))
}

/// Returns whether the calling thread is running a task of a timer for which `is_it`.
pub(crate) fn is_any_here(is_it: impl Fn(TimerId) -> bool) -> bool {
    let innermost = INNERMOST.try_with(Cell::get).ok().flatten();
    innermost.is_some_and(&is_it)
        || with_outer(|outer| outer.iter().any(|&id| is_it(id))).unwrap_or(false)
}

/// Notes that the calling thread is running a task of this timer, until the guard
/// is dropped.
#[inline]
pub(crate) fn enter_task(id: TimerId) -> Running {
    let outer = replace_innermost(Some(id));
    if let Some(outer) = outer {
        with_outer(|others| others.push(outer));
    }
    Running {
        is_nested: outer.is_some(),
    }
}

#[must_use = "the task counts as running until this is dropped"]
pub(crate) struct Running {
    is_nested: bool,
}

impl Drop for Running {
    #[inline]
    fn drop(&mut self) {
        let outer = match self.is_nested {
            true => with_outer(Vec::pop).flatten(),
            false => None,
        };
        replace_innermost(outer);
    }
}

/// Returns `None` if the thread is ending and its variables are gone.
#[inline]
fn replace_innermost(id: Option<TimerId>) -> Option<TimerId> {
    INNERMOST.try_with(|innermost| innermost.replace(id)).ok()?
}

/// Returns `None` if the thread is ending and its variables are gone.
#[cold]
fn with_outer<R>(f: impl FnOnce(&mut Vec<TimerId>) -> R) -> Option<R> {
    OUTER.try_with(|outer| f(&mut outer.borrow_mut())).ok()
}

// The engines that the calling thread is driving.
//
// A task may drive another engine, whose tasks then run inside it, and so on. A task
// that drives an engine which its thread is driving already would run the next task
// inside itself. Such a call is refused, so no stack is deeper than the number of
// engines.

thread_local! {
    /// The first wheels of the engines that this thread is driving, the outermost first.
    // Loom's macro does not know `const`.
    #[allow(clippy::missing_const_for_thread_local)]
    static DRIVEN: RefCell<Vec<WheelNumber>> = RefCell::new(Vec::new());
}

/// Notes that the calling thread is driving this engine, until the guard is dropped.
/// Returns `None` if it is driving the engine already.
pub(super) fn enter_loop(engine: WheelNumber) -> Option<Driving> {
    let is_first = with(|driven| {
        let is_first = !driven.contains(&engine);
        if is_first {
            driven.push(engine);
        }
        is_first
    });
    is_first.unwrap_or(true).then(|| Driving(()))
}

#[must_use = "the engine counts as driven until this is dropped"]
pub(crate) struct Driving(());

impl Drop for Driving {
    fn drop(&mut self) {
        with(Vec::pop);
    }
}

/// Returns `None` if the thread is ending and its variables are gone.
fn with<R>(f: impl FnOnce(&mut Vec<WheelNumber>) -> R) -> Option<R> {
    DRIVEN.try_with(|driven| f(&mut driven.borrow_mut())).ok()
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_task_runs_here_whatever_index_a_forged_id_of_it_has() {
        let id = |sequence, index| TimerId::new(7.into(), sequence, index);
        let _running = enter_task(id(5, 3));
        assert!(is_running_here(id(5, 3)) && is_running_here(id(5, 4)));
        assert!(!is_running_here(id(6, 3)));
    }

    #[test]
    fn a_task_that_drives_another_engine_goes_on_running() {
        let ids = [1, 2, 3].map(|sequence| TimerId::new(7.into(), sequence, 0));
        let running = ids.map(enter_task);
        assert!(ids.into_iter().all(is_running_here));
        for (running, id) in running.into_iter().zip(ids).rev() {
            assert!(is_running_here(id));
            drop(running);
            assert!(!is_running_here(id));
        }
    }
}
