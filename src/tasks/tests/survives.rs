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
    let timers = TaskEngine::builder().shards(1).start().unwrap();
    let broken = Timer::after(LATER, |_| ()).named("broken");
    let broken = timers.run(broken).unwrap();
    break_records(&timers);
    let ((tell, told), (end, ended), (begin, begun)) = (channel(), channel::<()>(), channel());
    let first = move || {
        begin.send(()).unwrap();
        assert!(ended.recv().is_err());
    };
    timers.run_after(NOW, first).unwrap();
    assert_eq!(begun.recv_timeout(PATIENCE), Ok(()));
    timers.reschedule(broken, NOW).unwrap();
    timers.run_after(NOW, move || tell.send(()).unwrap()).unwrap();
    while timers.queue(0).len() < 2 {
        std::thread::yield_now();
    }
    drop(end);
    assert_eq!(told.recv_timeout(PATIENCE), Ok(()));
    assert_survived(&timers);
}
