//! Waiting for the end of a notified timer: for the run that tells its task of the end.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::*;
use crate::CloseReason;

/// A notified timer whose task says at the start of each run why it runs. The run at the
/// end waits for a word, and takes a while.
struct Told {
    timers: TaskEngine,
    id: TimerId,
    began: Receiver<CloseReason>,
    go_on: Sender<()>,
    has_ended: Arc<Mutex<bool>>,
}

impl Told {
    fn new(timer: Timer<()>) -> Told {
        let timers = TaskEngine::builder().start().unwrap();
        let ((tell, began), (go_on, word)) = (channel(), channel());
        let has_ended = Arc::new(Mutex::new(false));
        let ended = Arc::clone(&has_ended);
        let task = move |firing: Firing| {
            tell.send(firing.outcome()).unwrap();
            word.recv().unwrap();
            thread::sleep(Duration::from_millis(20));
            *ended.lock().unwrap() = firing.outcome() == CloseReason::Cancelled;
        };
        let id = timers.run(timer.map(|()| task).notified()).unwrap();
        Told { timers, id, began, go_on, has_ended }
    }

    #[track_caller]
    fn assert_waits(&self, answer: Cancel<()>) {
        assert_eq!(self.timers.cancel_and_wait(self.id), answer);
        assert!(*self.has_ended.lock().unwrap(), "has not waited");
        assert_eq!(self.timers.snapshot().held, 0);
    }
}

#[test]
fn a_wait_includes_the_run_that_tells_of_the_end() {
    let told = Told::new(Timer::after(LATER, ()));
    told.go_on.send(()).unwrap();
    told.assert_waits(Cancel::Cancelled(()));

    let told = Told::new(Timer::after(LATER, ()));
    assert!(matches!(Engine::cancel(&told.timers, told.id), Cancel::Notified));
    assert_eq!(told.began.recv(), Ok(CloseReason::Cancelled));
    told.go_on.send(()).unwrap();
    told.assert_waits(Cancel::Gone);
}

#[test]
fn a_wait_for_a_run_includes_the_one_that_tells_of_the_end() {
    let told = Told::new(Timer::every(LATER, ()).starting(NOW));
    assert_eq!(told.began.recv(), Ok(CloseReason::Completed));
    (0..2).for_each(|_| told.go_on.send(()).unwrap());
    told.assert_waits(Cancel::Running);
    assert_eq!(told.began.try_recv(), Ok(CloseReason::Cancelled));
}

#[test]
fn a_report_appears_when_the_task_has_been_told() {
    let told = Told::new(Timer::after(LATER, ()).reported());
    let reports = told.timers.reports();
    told.timers.cancel(told.id);
    assert_eq!(told.began.recv(), Ok(CloseReason::Cancelled));
    assert!(reports.try_recv().is_err());
    told.go_on.send(()).unwrap();
    told.assert_waits(Cancel::Gone);
    assert_eq!(reports.try_recv().unwrap().reason, CloseReason::Cancelled);
}

#[test]
fn a_task_does_not_wait_for_a_run_that_may_need_its_worker() {
    let timers = TaskEngine::builder().start().unwrap();
    let far = timers.run(Timer::after(LATER, |_| ()).notified()).unwrap();
    let ((tell, told), inner) = (channel(), timers.clone());
    let task = move || tell.send(inner.cancel_and_wait(far)).unwrap();
    timers.run_after(NOW, task).unwrap();
    assert_eq!(told.recv(), Ok(Cancel::Cancelled(())));
}

#[test]
fn a_loop_does_not_wait_for_the_run_that_is_its_own() {
    let here = Here::new(8);
    let told = Timer::after(LATER, |_| add(&RUNS)).notified();
    let id = here.timers.run(told).unwrap();
    assert_eq!(here.timers.cancel_and_wait(id), Cancel::Cancelled(()));
    let before = RUNS.get();
    here.run();
    assert_eq!(RUNS.get() - before, 1);
}

#[test]
fn a_wait_includes_the_run_that_a_loop_has_begun() {
    let Here { timers, driver } = Here::new(8);
    let ((tell, began), (go_on, word)) = (channel(), channel::<()>());
    let task = move |_| {
        tell.send(()).unwrap();
        let _ = word.recv();
    };
    let id = timers.run(Timer::after(LATER, task).notified()).unwrap();
    assert_eq!(timers.cancel(id), Cancel::Cancelled(()));
    thread::scope(|scope| {
        scope.spawn(|| driver.process_due(9));
        began.recv().unwrap();
        let waits = scope.spawn(|| timers.cancel_and_wait(id));
        let of_shard = |shard: usize| timers.core().shards[shard].lock();
        let is_awaited = |shard| of_shard(shard).records.iter().any(|it| it.1.awaited);
        let mut shards = (0..timers.core().shards.len()).cycle();
        let waited = shards.find(|&shard| is_awaited(shard) || waits.is_finished());
        let has_waited = waited.is_some_and(is_awaited);
        drop(go_on);
        assert!(has_waited && waits.join().unwrap() == Cancel::Gone);
    });
}

/// Even if its timer has fired before, and it is told of the end after a long run.
#[test]
fn a_task_that_is_told_of_the_end_is_not_late() {
    let (timers, driver) = TaskEngine::builder().start_driven().unwrap();
    let (inner, (tell, told)) = (timers.clone(), channel());
    let task = move |firing: Firing| {
        inner.cancel(firing.id());
        thread::sleep(Duration::from_millis(2));
        tell.send((firing.outcome(), firing.lateness() > Duration::ZERO)).unwrap();
    };
    timers.run(Timer::every(LATER, task).starting(NOW).notified()).unwrap();
    (0..2).for_each(|_| _ = driver.process_due(1));
    let runs = [(CloseReason::Completed, true), (CloseReason::Cancelled, false)];
    assert!(told.try_iter().eq(runs));
}
