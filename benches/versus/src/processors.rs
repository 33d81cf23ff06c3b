//! The processors of this process: on which its threads run, and how long they
//! waited for one.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Keeps the calling thread to one processor, and the threads that it starts
/// later. Threads take the processors in turn.
pub fn keep_to_next() {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let allowed = allowed();
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let count = allowed.len().max(1);
    if let Some(&processor) = allowed.get(next % count) {
        keep_to(processor);
    }
}

/// Returns the processors on which the calling thread may run.
fn allowed() -> Vec<usize> {
    // SAFETY: all zeroes is a value of this plain structure.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    let size = size_of_val(&set);
    // SAFETY: `set` is valid for writes of its size.
    unsafe { libc::sched_getaffinity(0, size, &mut set) };
    // SAFETY: the set has this many processors.
    let is_in = |&processor: &usize| unsafe { libc::CPU_ISSET(processor, &set) };
    (0..libc::CPU_SETSIZE as usize).filter(is_in).collect()
}

fn keep_to(processor: usize) {
    // SAFETY: all zeroes is a value of this plain structure.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the processor is from a set of the same size.
    unsafe { libc::CPU_SET(processor, &mut set) };
    // SAFETY: `set` is valid for reads of its size. A refusal leaves the thread free.
    unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) };
}

/// Returns how long all threads together have waited for a processor, although
/// they could run, or `None` if the kernel does not count it.
pub fn waited() -> Option<Duration> {
    let threads = fs::read_dir("/proc/self/task").ok()?;
    let of_thread = |thread: fs::DirEntry| {
        // A thread that has ended meanwhile has no file.
        let line = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        waited_of(&line)
    };
    let waits: Vec<Duration> = threads.flatten().filter_map(of_thread).collect();
    (!waits.is_empty()).then(|| waits.iter().sum())
}

/// Returns the processor time of the threads whose names end with `suffix`.
pub fn used_by(suffix: &str) -> Duration {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten();
    let of_thread = |thread: fs::DirEntry| {
        let name = fs::read_to_string(thread.path().join("comm")).ok()?;
        let line = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        let nanos = line.split_whitespace().next()?.parse().ok()?;
        let is_one = name.trim_end().ends_with(suffix);
        is_one.then_some(Duration::from_nanos(nanos))
    };
    threads.flatten().filter_map(of_thread).sum()
}

/// Returns the second number of a thread's `schedstat`.
fn waited_of(line: &str) -> Option<Duration> {
    let nanos = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_is_the_wait() {
        assert_eq!(
            waited_of("870826 69483 2\n"),
            Some(Duration::from_nanos(69_483))
        );
        assert_eq!(waited_of(""), None);
    }
}
