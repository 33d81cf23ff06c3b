//! A worker that panics outside every task, as only a fault of this crate can make it.

use std::sync::mpsc::channel;

use super::*;

/// Takes the payloads of all timers with a record, so that whoever takes one panics.
fn break_records(timers: &TaskEngine) {
    let shard = &mut timers.core().shards[0].lock();
    let broken = shard.records.iter_mut();
    assert_eq!(broken.filter_map(|(_, record)| record.payload.take()).count(), 1);
}

const PATIENCE: Duration = Duration::from_secs(60);

fn assert_survived(timers: &TaskEngine) {
    assert_eq!(timers.workers(), 1);
    assert_eq!(timers.snapshot().panics, 1);
    timers.shutdown();
    timers.join();
}

#[test]
fn a_worker_that_panics_on_its_way_to_a_task_runs_the_next() {
    let builder = TaskEngine::builder().shards(1);
    let (timers, clock) = builder.start_virtual().unwrap();
    timers.run(Timer::after(LATER, |_| ()).named("broken")).unwrap();
    let (tell, told) = channel();
    timers.run_after(LATER, move || tell.send(()).unwrap()).unwrap();
    break_records(&timers);
    // One bell leads to both tasks, and the worker panics with it.
    clock.advance(LATER);
    assert_eq!(told.recv_timeout(PATIENCE), Ok(()));
    assert_survived(&timers);
}

#[test]
fn a_worker_that_panics_between_two_tasks_runs_the_next() {
    let builder = TaskEngine::builder().shards(1);
    let (timers, clock) = builder.start_virtual().unwrap();
    let ((tell, told), (end, ended), (begin, begun)) = (channel(), channel::<()>(), channel());
    let first = move || {
        begin.send(()).unwrap();
        assert!(ended.recv().is_err());
    };
    let first = timers.run_after(LATER, first).unwrap();
    timers.run(Timer::after(LATER, |_| ()).named("broken")).unwrap();
    timers.run_after(LATER, move || tell.send(()).unwrap()).unwrap();
    break_records(&timers);
    clock.advance(LATER);
    assert_eq!(begun.recv_timeout(PATIENCE), Ok(()));
    let (waits, (done, is_done)) = (timers.clone(), channel());
    std::thread::spawn(move || done.send(waits.cancel_and_wait(first)));
    let is_awaited = || timers.core().shards[0].lock().records.iter().any(|it| it.1.awaited);
    while !is_awaited() {
        std::thread::yield_now();
    }
    // The worker takes the next along with the return of the first.
    drop(end);
    assert_eq!(told.recv_timeout(PATIENCE), Ok(()));
    assert_eq!(is_done.recv_timeout(PATIENCE), Ok(Cancel::Running));
    assert_survived(&timers);
}
