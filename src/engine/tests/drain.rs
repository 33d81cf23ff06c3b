//! The timers that a drain waits for, and the limit of its wait.

use std::thread;
use std::time::Duration;

use crate::engine::Engine;
use crate::engine::shutdown::{GRACE, grace};
use crate::shard::{CELLS_PER_HOLD, CELLS_PER_TIMER};
use crate::tick::Tick;
use crate::timer::{Refusal, Timer};
use crate::wheel::Cursor;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_drain_waits_for_its_limit_and_its_grace() {
    let engine = Engine::<()>::builder().start().unwrap();
    assert_eq!(engine.core.patience(3 * SECOND), 4 * SECOND);
    assert_eq!(engine.core.patience(SECOND / 4), SECOND + SECOND / 4);
    assert_eq!(engine.core.patience(Duration::MAX), Duration::MAX);
    let (engine, _clock) = Engine::<()>::builder().start_virtual().unwrap();
    assert_eq!(engine.core.patience(3 * SECOND), SECOND);
}

#[test]
fn the_grace_has_room_for_the_shutdown() {
    assert_eq!(grace(0), GRACE);
    assert_eq!(grace(1_000_000), GRACE - Duration::from_millis(100));
    assert_eq!(grace(u64::MAX), Duration::ZERO);
    let (engine, _clock) = Engine::builder().start_virtual().unwrap();
    for n in 0..1_000 {
        engine.schedule(Timer::after(SECOND, n)).unwrap();
    }
    assert_eq!(engine.core.patience(SECOND), grace(1_000));
}

/// Passes a shard as a drain does. Returns whether it has stopped before a timer.
fn stops(engine: &Engine<usize>, cursor: &mut Cursor, last: Tick) -> bool {
    let mut stopped = false;
    engine
        .core
        .walk(&engine.core.shards[0], |shard| shard.pass_drained(cursor, last, &mut stopped));
    stopped
}

/// The drain goes on behind what has left, and signals tell it when.
#[test]
fn a_drain_stops_at_what_is_due_until_it_has_left() {
    const TIMERS: usize = 2 * CELLS_PER_HOLD / CELLS_PER_TIMER;
    let builder = Engine::builder().shards(1);
    let (engine, clock) = builder.start_virtual().unwrap();
    let last = engine.current_tick().after(50);
    let due = |n: usize| Duration::from_millis(if n % TIMERS < 3 { 1 } else { 100 });
    let ids: Vec<_> =
        (0..TIMERS + 2).map(|n| engine.schedule(Timer::after(due(n), n)).unwrap()).collect();
    let shard = || engine.core.shards[0].lock();
    shard().begin_drain(last);
    let (mut cursor, mut stop) = (Cursor::START, 0);
    let mut others = [Cursor::START; 2];
    while stops(&engine, &mut cursor, last) {
        assert!(others.iter_mut().all(|other| stops(&engine, other, last)));
        assert!(!shard().has_signals());
        let told = || engine.core.waiters.with(|(), changes| changes);
        let before = told();
        match stop {
            0 => drop(engine.cancel(ids[0])),
            1 => drop(engine.reschedule(ids[1], SECOND)),
            2 => drop(engine.cancel_many(&[ids[2], ids[3]])),
            3 => clock.advance(Duration::from_millis(1)),
            4 => drop(engine.queue(0).try_recv().unwrap()),
            _ => drop(engine.queue(0).try_recv_many(&mut Vec::new(), 9)),
        }
        assert!(told() > before || stop == 3, "{stop}");
        stop += 1;
    }
    assert_eq!(stop, 6);
    assert_eq!(shard().moved, 0);
    // What is moved to where the walk has been is found by the next one.
    for moves in 1..3 {
        engine.reschedule(ids[1], Duration::ZERO).unwrap();
        assert_eq!(shard().moved, moves);
    }
    assert!(!stops(&engine, &mut cursor, last));
    assert!(stops(&engine, &mut Cursor::START.clone(), last));
}

#[test]
fn a_drain_waits_for_what_is_brought_forward_behind_its_walk() {
    let engine = Engine::builder().shards(2).start().unwrap();
    let (queue, other, core) = (engine.queue(0), engine.clone(), &engine.core);
    // Both are in the second shard.
    let mut names = (0..).map(|n: u32| n.to_string());
    let name = names.find(|name| core.cell_of_name(core.hash(name)).index == 1).unwrap();
    let schedule = |delay, payload| {
        let timer = Timer::after(delay, payload).named(name.as_str());
        engine.schedule(timer).unwrap()
    };
    let far = schedule(3_600 * SECOND, "far");
    schedule(Duration::ZERO, "near");
    let drain = thread::spawn(move || other.drain(60 * SECOND));
    while engine.schedule(Timer::after(3_600 * SECOND, "refused")).is_ok() {}
    // The walk comes to the timer that is due, and waits.
    thread::sleep(Duration::from_millis(50));
    engine.reschedule(far, Duration::from_millis(100)).unwrap();
    let taken = [(); 2].map(|()| queue.recv().map(|expired| expired.into_payload()));
    assert_eq!(taken, [Ok("near"), Ok("far")]);
    let left = drain.join().unwrap();
    assert!(left.iter().all(|closed| closed.payload == Some("refused")));
}

/// A chain that is re-armed fires like a repeating timer, which no drain awaits.
#[test]
fn a_drain_waits_for_the_first_firing_of_a_chain_only() {
    const MS: Duration = Duration::from_millis(1);
    let builder = Engine::builder().shards(1);
    let (engine, clock) = builder.start_virtual().unwrap();
    let last = engine.current_tick().after(50);
    let id = engine.schedule(Timer::after(MS, 0).rearmable()).unwrap();
    engine.core.shards[0].lock().begin_drain(last);
    assert!(stops(&engine, &mut Cursor::START.clone(), last));
    for _ in 0..3 {
        clock.advance(MS);
        let due = engine.queue(0).try_recv().unwrap();
        assert!(!stops(&engine, &mut Cursor::START.clone(), last));
        due.rearm(MS).unwrap();
        assert!(!stops(&engine, &mut Cursor::START.clone(), last));
        engine.reschedule(id, 2 * MS).unwrap();
        engine.reschedule(id, MS).unwrap();
        assert!(!stops(&engine, &mut Cursor::START.clone(), last));
    }
}

#[test]
fn a_drain_refuses_what_is_started_and_changes_what_is_live() {
    let (engine, _clock) = Engine::builder().shards(1).start_virtual().unwrap();
    let unstarted = engine.create(Timer::after(SECOND, 7)).unwrap();
    let live = engine.schedule(Timer::after(SECOND, 8)).unwrap();
    let reported = engine.schedule(Timer::after(SECOND, 8).reported()).unwrap();
    engine.core.shards[0].lock().begin_drain(Tick(50));
    assert_eq!(engine.replace(live, 9).ok(), Some(8));
    let refused = unstarted.start().unwrap_err();
    assert_eq!((refused.reason(), refused.into_payload()), (Refusal::ShutDown, 7));
    // In one hold of the lock: the second keeps nobody from hearing of the first.
    engine.cancel_many(&[reported, live]);
    assert!(engine.reports().try_recv().is_ok());
}
