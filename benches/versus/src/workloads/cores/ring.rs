//! Threads that take turns, so that a trace is the same every time.

use std::sync::mpsc::channel;
use std::thread;

/// Runs `laps` turns on each thread, one thread after the other. A thread's state is made
/// in its first turn, and stays on that thread.
pub fn ring<S>(
    threads: usize,
    laps: usize,
    make: impl Fn(usize) -> S + Sync,
    turn: impl Fn(&mut S, usize) + Sync,
) {
    let (tokens, turns): (Vec<_>, Vec<_>) = (0..threads).map(|_| channel()).unzip();
    let _ = tokens[0].send(());
    thread::scope(|scope| {
        for (me, turns) in turns.into_iter().enumerate() {
            let next = tokens[(me + 1) % threads].clone();
            let (make, turn) = (&make, &turn);
            scope.spawn(move || {
                let mut state = None;
                for lap in 0..laps {
                    turns.recv().expect("this scope keeps the senders");
                    turn(state.get_or_insert_with(|| make(me)), lap);
                    // The first thread has ended when the last one passes the turn on.
                    let _ = next.send(());
                }
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn threads_take_turns() {
        let seen = Mutex::new(Vec::new());
        let make = |me| me;
        ring(3, 2, make, |me, lap| seen.lock().unwrap().push((lap, *me)));
        let seen = seen.into_inner().unwrap();
        assert_eq!(seen, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
    }
}
