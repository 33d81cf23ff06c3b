//! A round of closures on the engine's own workers: panics, handles that are
//! dropped from inside a task, tasks that are notified of their end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tickwheel::{Cancel, CloseReason, Driver, Firing, Refusal, Task, TaskEngine, Timer, TimerId};

use crate::accounts;
use crate::actor::Scene;
use crate::board::{Board, Known};
use crate::book::Book;
use crate::disturb;
use crate::event_loop::EventLoop;
use crate::fault::Fault;
use crate::mover::{Mover, TimeLine};
use crate::plan::{Drive, Ending, Plan};
use crate::progress::Tally;
use crate::random::Random;
use crate::record::{Asked, End, Firings, Record, Token};
use crate::watchdog::Watchdog;

pub fn run(plan: &Plan, book: &Book, tally: &Arc<Tally>, watchdog: &Watchdog) {
    let (tasks, mover) = start(plan);
    let (board, time_line) = (Board::new(), mover.time_line());
    let over = AtomicBool::new(false);
    let scene = Scene {
        plan,
        book,
        board: &board,
        tally,
        time_line: &time_line,
    };
    if plan.ending != Ending::Dropped {
        let seen = tasks.clone();
        watchdog.describe(move || format!("{:#?}", seen.engine().snapshot()));
    }
    thread::scope(|scope| {
        disturb::start(plan, &over, scope);
        mover.start(plan, &over, scope);
        let submitters: Vec<_> = (0..plan.submitters as u64)
            .map(|thread| {
                let submitter = Submitter {
                    scene,
                    tasks: tasks.clone(),
                    thread,
                };
                scope.spawn(move || submitter.submit())
            })
            .collect();
        if plan.ending == Ending::InTheMiddle {
            thread::sleep(plan.random(99).micros(100_000));
            shut_down(&tasks, book);
        }
        for submitter in submitters {
            submitter.join().expect("planned panics are caught");
        }
        end(scene, tasks);
        // Tasks that hold a handle keep the engine alive until they have run.
        accounts::wait_until_dropped(book);
        over.store(true, Ordering::Relaxed);
    });
    accounts::check_records(book, false);
}

/// There is no portable ticker to ask for.
fn start(plan: &Plan) -> (TaskEngine, Mover<Task>) {
    let builder = TaskEngine::builder()
        .tick(plan.tick)
        .workers(plan.workers_per_queue);
    match plan.drive {
        Drive::TimerFd | Drive::Portable => (builder.start().expect("in range"), Mover::Ticker),
        Drive::Virtual => {
            let (tasks, clock) = builder.start_virtual().expect("in range");
            (tasks, Mover::of_clock(clock))
        }
        Drive::Loop(waits) => {
            let (tasks, driver) = builder.start_driven().expect("in range");
            let event_loop = EventLoop::new(driver, waits, Driver::run_due);
            (tasks, Mover::Loop(event_loop))
        }
    }
}

fn end(scene: Scene<'_>, tasks: TaskEngine) {
    match scene.plan.ending {
        Ending::Dropped => return,
        Ending::Settled => {
            accounts::wait_until_fired(scene.book, || tasks.engine().snapshot());
        }
        Ending::Drained | Ending::InTheMiddle => {}
    }
    shut_down(&tasks, scene.book);
    accounts::check_balance(scene.book, &tasks.ledger());
}

/// The closures come back, and with them their tokens; whose ids these are is
/// looked up later, when all are known.
fn shut_down(tasks: &TaskEngine, book: &Book) {
    let closed = tasks.shutdown();
    let mut ids: Vec<TimerId> = closed.iter().map(|closed| closed.id).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    if ids.len() != count {
        book.broke("shutdown returned a task twice".into());
    }
}

struct Submitter<'a> {
    scene: Scene<'a>,
    tasks: TaskEngine,
    thread: u64,
}

impl Submitter<'_> {
    fn submit(&self) {
        let plan = self.scene.plan;
        for step in 0..plan.steps / 2 {
            let mut random = Random::of(&[plan.seed, plan.round, self.thread, step]);
            self.scene.tally.operations.fetch_add(1, Ordering::Relaxed);
            match random.below(10) {
                0..4 => self.run_once(&mut random),
                4 => self.run_repeating(&mut random),
                5..7 if random.once_in(8) => self.cancel_many(&mut random),
                5..7 => self.cancel(&mut random),
                7 => self.cancel_and_wait(&mut random),
                8 => self.run_told(&mut random),
                _ => thread::sleep(random.micros(300)),
            }
        }
    }

    fn asked(firings: Firings, period: Duration) -> Asked {
        Asked {
            firings,
            period: period.as_nanos() as u64,
            reported: false,
            far: false,
        }
    }

    fn record(&self, asked: Asked, delay: Duration) -> Arc<Record> {
        Record::new(asked, self.scene.now() + delay.as_nanos() as u64)
    }

    fn run_once(&self, random: &mut Random) {
        let delay = random.micros(20_000);
        let record = self.record(Self::asked(Firings::Once, Duration::ZERO), delay);
        let task = self.task(&record, random);
        let scheduled = self.tasks.run_after(delay, task);
        self.scheduled(scheduled, record, random);
    }

    fn run_repeating(&self, random: &mut Random) {
        let period = Duration::from_micros(500) + random.micros(10_000);
        let times = 1 + random.below(5);
        let asked = Self::asked(Firings::Times(times as u32), period);
        let record = self.record(asked, period);
        let mut task = self.task(&record, random);
        let timer = Timer::every(period, move |_| task()).times(times);
        self.scheduled(self.tasks.run(timer), record, random);
    }

    /// A one-shot that is run exactly once, whatever becomes of it: nobody else
    /// says how it ended.
    fn run_told(&self, random: &mut Random) {
        let delay = random.micros(20_000);
        let asked = Self::asked(Firings::Once, Duration::ZERO);
        let record = self.record(asked, delay);
        let (token, scene_now) = (Token::new(&record, self.scene.book), self.time_line());
        let book = self.scene.book.clone();
        let task = move |firing: Firing| match firing.outcome() {
            CloseReason::Cancelled => token.record.ends(End::Cancelled, &book),
            CloseReason::ShutDown => token.record.ends(End::ShutDown, &book),
            _ => {
                token.record.deliver(scene_now(), &book);
                token.record.let_go();
            }
        };
        let scheduled = self.tasks.run(Timer::after(delay, task).notified());
        match scheduled {
            Ok(id) => self.told_scheduled(id, record, random.once_in(3)),
            refused => self.scheduled(refused, record, random),
        }
    }

    /// No other thread gets the id: a cancel there would count the ending
    /// twice.
    fn told_scheduled(&self, id: TimerId, record: Arc<Record>, cancelled: bool) {
        record.accept();
        self.scene.book.enter(Known { id, record });
        if cancelled {
            let _ = self.tasks.cancel(id);
        }
    }

    fn time_line(&self) -> TimeLine {
        TimeLine::clone(self.scene.time_line)
    }

    /// What a task does: judge its firing, and now and then sleep, panic, or
    /// drop the last handle.
    fn task(&self, record: &Arc<Record>, random: &mut Random) -> impl FnMut() + Send + 'static {
        let plan = self.scene.plan;
        let token = Token::new(record, self.scene.book);
        let (now, book) = (self.time_line(), self.scene.book.clone());
        let sleep = (plan.has(Fault::Sleepers) && random.once_in(40)).then(|| random.micros(5_000));
        let panics = plan.has(Fault::Panics) && random.once_in(20);
        let handle = (plan.has(Fault::Dropped) && random.once_in(5)).then(|| self.tasks.clone());
        let mut handle = handle;
        move || {
            token.record.deliver(now(), &book);
            if let Some(sleep) = sleep {
                thread::sleep(sleep);
            }
            drop(handle.take());
            token.record.let_go();
            if panics {
                panic!("as planned");
            }
        }
    }

    fn scheduled(
        &self,
        scheduled: Result<TimerId, impl Into<Refusal>>,
        record: Arc<Record>,
        random: &mut Random,
    ) {
        match scheduled.map_err(Into::into) {
            Ok(id) => {
                record.accept();
                let known = Known { id, record };
                self.scene.book.enter(known.clone());
                self.scene.board.leave(known, random.index(1 << 20));
            }
            Err(Refusal::ShutDown) if self.scene.plan.ending == Ending::InTheMiddle => {}
            Err(refusal) => self.scene.book.broke(format!("refused: {refusal}")),
        }
    }

    fn cancel(&self, random: &mut Random) {
        if let Some(known) = self.scene.board.find(random.index(1 << 20)) {
            let answer = self.tasks.cancel(known.id);
            self.cancelled(answer, &known.record);
        }
    }

    fn cancel_many(&self, random: &mut Random) {
        let many = self.scene.board.find_some(random);
        let ids: Vec<TimerId> = many.iter().map(|known| known.id).collect();
        let answers = self.tasks.engine().cancel_many(&ids);
        for (known, answer) in many.iter().zip(answers) {
            self.cancelled(without_task(answer), &known.record);
        }
    }

    fn cancel_and_wait(&self, random: &mut Random) {
        if let Some(known) = self.scene.board.find(random.index(1 << 20)) {
            let answer = self.tasks.cancel_and_wait(known.id);
            let in_hand = known.record.in_hand.load(Ordering::Acquire);
            if answer == Cancel::Running && in_hand > 0 {
                let broken = format!("waited for, and still runs: {:?}", known.record);
                self.scene.book.broke(broken);
            }
            self.cancelled(answer, &known.record);
        }
    }

    fn cancelled(&self, answer: Cancel<()>, record: &Record) {
        match answer {
            Cancel::Cancelled(()) => {
                self.scene.tally.cancelled.fetch_add(1, Ordering::Relaxed);
                record.ends(End::Cancelled, self.scene.book);
            }
            Cancel::Running => record.runs_for_the_last_time(),
            // No other thread has the id of a task that is notified.
            Cancel::Notified | Cancel::Gone => {}
        }
    }
}

fn without_task(answer: Cancel<Task>) -> Cancel<()> {
    match answer {
        Cancel::Cancelled(_) => Cancel::Cancelled(()),
        Cancel::Notified => Cancel::Notified,
        Cancel::Running => Cancel::Running,
        Cancel::Gone => Cancel::Gone,
    }
}
