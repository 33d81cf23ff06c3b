//! Promises 3, 5 and 6: each timer ends exactly once, its id ends with it, and its
//! memory is free at once. Timers of every kind, in whichever states, the oracle compares.

use super::*;

#[test]
fn promise_03_a_return_completes_a_task_and_a_panic_fails_it() {
    let (tasks, clock) = virtual_tasks();
    // Only a task with a name needs a record.
    for (before, named) in [(0, false), (1, true)] {
        let (running, (go_on, may_go_on)) = (told(), channel());
        let tell = running.tell();
        let slow = move |_: Firing| {
            tell.send(()).unwrap();
            may_go_on.recv().unwrap();
        };
        let timer = Timer::after(MS, slow);
        let timer = if named { timer.named("slow") } else { timer };
        tasks.run(timer).unwrap();
        clock.advance(MS);
        running.next();
        assert_eq!(ends(&tasks), [1, before, 0, 0, 0]);
        go_on.send(()).unwrap();
        clock.run_until(tasks.now());
        assert_eq!(ends(&tasks), [0, before + 1, 0, 0, 0]);
    }
    tasks.run_after(MS, || panic!("on purpose")).unwrap();
    // It fails, which it is not notified of.
    let twice = Timer::every(MS, |_| panic!("on purpose")).times(2);
    tasks.run(twice.notified()).unwrap();
    clock.run_until(at(12));
    assert_eq!(ends(&tasks), [0, 2, 0, 0, 2]);
    assert_eq!(tasks.snapshot().panics, 3);
    let mut ledger = tasks.ledger();
    // A ledger may come from anywhere: its sum is more than a u64 holds.
    for completed in [0, u64::MAX] {
        ledger.completed = completed;
        assert!(!ledger.is_balanced());
    }
}

/// Does something when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        self.0();
    }
}

fn panic_with<T>(_held: T) {
    panic!("on purpose");
}

#[test]
fn promise_03_only_a_panic_while_it_is_held_fails_a_firing() {
    let (engine, clock) = virtual_engine();
    let take = || {
        let id = engine.put(Timer::every(MS, ()).times(1));
        clock.advance(MS);
        // A last firing ends as it does, whoever cancels it.
        let firing = engine.next();
        assert_eq!(engine.cancel(id), Cancel::Running);
        firing
    };
    assert!(panics(|| panic_with(take())));
    assert_eq!(ends(&engine), [0, 0, 0, 0, 1]);
    // Taken and let go of by a destructor, for all that a panic unwinds.
    assert!(panics(|| panic_with(OnDrop(|| drop(take())))));
    assert_eq!(ends(&engine), [0, 1, 0, 0, 1]);
    // Taken by that, and let go of in the panic of another thread.
    let in_another = || {
        let firing = take();
        thread::scope(|scope| assert!(scope.spawn(|| panic_with(firing)).join().is_err()));
    };
    assert!(panics(|| panic_with(OnDrop(in_another))));
    assert_eq!(ends(&engine), [0, 1, 0, 0, 2]);
}

/// A closure that runs once has every setting of a one-shot, and what it holds is gone
/// when its timer has ended, however it ended. It sees its firing, may be notified of its
/// end, and cannot be re-armed.
#[test]
fn promise_03_a_closure_that_runs_once_is_run_or_dropped() {
    let (tasks, clock) = virtual_tasks();
    let (held, told) = (Arc::new(()), told());
    let once = || {
        let (held, tell) = (Arc::clone(&held), told.tell());
        let task = move |firing: Firing| {
            drop(held); // moved out: the closure can run only once
            let refused = firing.rearm(MS) == Err(Refusal::NotRearmable);
            tell.send((firing.outcome(), refused)).unwrap();
        };
        Timer::after(MS, task).named("once")
    };
    tasks.run_once(once()).unwrap();
    clock.run_until(at(9));
    assert_eq!(told.all(), [(CloseReason::Completed, true)]);
    tasks.run_once(once()).unwrap();
    assert_eq!(tasks.cancel_by_name("once", None).len(), 1);
    let id = tasks.run_once(once().notified()).unwrap();
    assert!(tasks.cancel(id).is_cancelled());
    assert_eq!(told.next().0, CloseReason::Cancelled);
    clock.run_until(at(20));
    assert_eq!((Arc::strong_count(&held), told.all().len()), (1, 0));
    assert_eq!(ends(&tasks), [0, 1, 2, 0, 0]);
}

/// Every call that takes an id, and none of them finds a timer.
fn is_gone(engine: &Engine<u32>, id: TimerId) {
    assert_eq!(engine.deadline(id), None);
    assert_eq!(engine.find(id), None);
    assert_eq!(engine.reschedule(id, MS), Err(Refusal::Gone));
    assert_eq!(parts(engine.replace(id, 7)), Err((Refusal::Gone, 7)));
    assert_eq!(engine.cancel(id), Cancel::Gone);
    assert_eq!(engine.cancel_many(&[id]), [(id, Cancel::Gone)]);
    assert_eq!(engine.cancel_and_wait(id), Cancel::Gone);
}

#[test]
fn promise_05_a_stale_id_is_harmless() {
    let (engine, clock) = virtual_engine();
    let stale = engine.after(MS, 0);
    clock.advance(MS);
    assert_eq!(payloads(&engine), [0]);
    for n in 1..100_000 {
        let id = engine.after(SECOND, n);
        assert_ne!(id, stale);
        if n % 1_000 == 0 {
            is_gone(&engine, stale);
        }
        assert_eq!(engine.cancel(id), Cancel::Cancelled(n));
    }
    let (other, _clock) = virtual_engine();
    let foreign = other.after(SECOND, 1);
    let own = engine.after(SECOND, 2);
    is_gone(&engine, foreign);
    is_gone(&other, own);
    assert_eq!((engine.ledger().live, other.ledger().live), (1, 1));
}

#[test]
fn promise_05_a_forged_id_is_harmless() {
    let (engine, clock) = virtual_engine();
    let [id, lent, ended] = [0, 1, 2].map(|n| engine.every(SECOND, n));
    clock.advance(SECOND);
    let held = engine.queue(0).try_iter().nth(1).unwrap();
    assert_eq!(engine.cancel(ended), Cancel::Cancelled(2));
    let real = [id, lent, ended].map(u128::from);
    let bits = (0..3 * 128).map(|n| real[n / 128] ^ 1 << (n % 128));
    let numbers = bits.filter(|number| !real.contains(number));
    let forged: Vec<_> = numbers.flat_map(TimerId::try_from).collect();
    assert!(forged.len() > 300);
    forged.into_iter().for_each(|id| is_gone(&engine, id));
    drop(held);
    let [id, lent, ended] = real.map(|real| TimerId::try_from(real).unwrap());
    assert_eq!(engine.cancel(id), Cancel::Cancelled(0));
    assert_eq!(engine.cancel(lent), Cancel::Cancelled(1));
    assert_eq!(engine.cancel(ended), Cancel::Gone);
}

#[test]
fn promise_06_an_expired_timer_gives_its_room_back() {
    let bounded = Engine::builder().shards(1).max_timers(2);
    let (engine, clock) = bounded.start_virtual().unwrap();
    type Take = fn(&Engine<u32>, [TimerId; 2]);
    let takes: [Take; 3] = [
        |engine, ids| ids.iter().for_each(|&id| assert!(engine.cancel(id).is_cancelled())),
        |engine, _| drop(take_all(engine)),
        |engine, _| _ = engine.queue(0).recv_many(&mut Vec::new(), 2).unwrap(),
    ];
    for take in takes.into_iter().cycle().take(9) {
        let ids = [1, 2].map(|n| engine.after(MS, n));
        assert!(engine.schedule(Timer::after(MS, 3)).is_err());
        clock.advance(MS);
        take(&engine, ids);
    }
}

#[test]
fn promise_06_cancel_gives_the_memory_back_at_once() {
    let (payload, far) = (Arc::new(()), 9_000 * HOUR);
    // A thousand entries in all, ever: the bound says so.
    let bounded = Engine::builder().shards(1).max_timers(1_000);
    let engine = bounded.start().unwrap();
    for _ in 0..200 {
        let one = |_| engine.after(far, Arc::clone(&payload));
        let ids: Vec<_> = (0..1_000).map(one).collect();
        let cancelled = ids.into_iter().filter_map(|id| engine.cancel(id).into_payload());
        assert_eq!(cancelled.count(), 1_000);
        assert_eq!(Arc::strong_count(&payload), 1);
    }
    assert_eq!(engine.live().count(), 0);
    // And the index of an id, which is the entry, stays small.
    let (engine, _clock) = virtual_engine();
    let index = || {
        let id = engine.after(far, ());
        engine.cancel(id).into_payload().unwrap();
        format!("{id:?}").split('.').nth(1).unwrap().to_string()
    };
    let first = index();
    (0..100_000).for_each(|_| assert_eq!(index(), first));
}
