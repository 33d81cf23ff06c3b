//! One thread of callers: makes the calls, step by step, that any program may
//! make.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use tickwheel::{Cancel, Engine, MissedTicks, Refusal, Refused, Timer, TimerId};

use crate::board::{Board, Known};
use crate::book::Book;
use crate::fault::Fault;
use crate::mover::TimeLine;
use crate::plan::{Ending, Plan};
use crate::progress::Tally;
use crate::random::Random;
use crate::record::{Asked, End, Firings, Record, Token};

const NAMES: [&str; 5] = ["lease", "session", "buff", "retry", "beat"];
const FAR: [Duration; 2] = [Duration::from_secs(3_600), Duration::MAX];

/// What all threads of a round share.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    pub plan: &'a Plan,
    pub book: &'a Book,
    pub board: &'a Board,
    pub tally: &'a Tally,
    pub time_line: &'a TimeLine,
}

impl Scene<'_> {
    /// Now, on the time line by which deliveries are judged.
    pub fn now(&self) -> u64 {
        (self.time_line)()
    }
}

pub struct Actor<'a> {
    scene: Scene<'a>,
    engine: Engine<Token>,
    thread: u64,
}

impl<'a> Actor<'a> {
    pub fn new(scene: Scene<'a>, engine: Engine<Token>, thread: u64) -> Actor<'a> {
        Actor {
            scene,
            engine,
            thread,
        }
    }

    /// Does the first `count` steps of this thread's plan.
    pub fn act(&self, count: u64) {
        for step in 0..count {
            // Of its own, so that what comes of one step changes no other.
            let plan = self.scene.plan;
            self.step(Random::of(&[plan.seed, plan.round, self.thread, step]));
        }
    }

    fn step(&self, mut random: Random) {
        self.scene.tally.operations.fetch_add(1, Ordering::Relaxed);
        match random.below(100) {
            0..38 => self.schedule_once(&mut random),
            38..44 => self.schedule_repeating(&mut random),
            44..60 => self.cancel(&mut random),
            60..64 => self.cancel_many(&mut random),
            64..67 => self.cancel_by_name(&mut random),
            67..77 => self.reschedule(&mut random),
            77..80 => self.replace(&mut random),
            80..82 => self.cancel_and_wait(&mut random),
            82..88 => self.create(&mut random),
            88..90 => self.look(),
            _ => thread::sleep(random.micros(300)),
        }
    }

    fn schedule_once(&self, random: &mut Random) {
        let far = random.once_in(8);
        let delay = match far {
            true => random.one_of(&FAR),
            false => near(random),
        };
        let asked = Asked {
            firings: Firings::Once,
            period: 0,
            reported: random.once_in(8),
            far,
        };
        let record = Record::new(asked, self.after(delay));
        let token = self.token(&record, random);
        let timer = match random.once_in(3) {
            true => Timer::at(self.engine.now() + delay, token),
            false => Timer::after(delay, token),
        };
        self.schedule(self.dress(timer, asked, random), record, random);
    }

    fn schedule_repeating(&self, random: &mut Random) {
        let period = Duration::from_micros(200) + random.micros(20_000);
        let times = random.below(6);
        let asked = Asked {
            firings: match times {
                0 => Firings::Forever,
                times => Firings::Times(times as u32),
            },
            period: period.as_nanos() as u64,
            reported: random.once_in(3),
            far: false,
        };
        let record = Record::new(asked, self.after(period));
        let missed = [MissedTicks::CatchUp, MissedTicks::Skip, MissedTicks::Delay];
        let timer = Timer::every(period, Token::new(&record, self.scene.book))
            .times(times)
            .missed(random.one_of(&missed));
        self.schedule(self.dress(timer, asked, random), record, random);
    }

    fn after(&self, delay: Duration) -> u64 {
        let delay = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        self.scene.now().saturating_add(delay)
    }

    /// A payload, which may hold a handle to the engine: then that is dropped
    /// wherever the payload is.
    fn token(&self, record: &Arc<Record>, random: &mut Random) -> Token {
        let token = Token::new(record, self.scene.book);
        let holds = random.once_in(4) && !record.asked.far;
        match holds && self.scene.plan.has(Fault::Dropped) {
            true => token.holding(self.engine.clone()),
            false => token,
        }
    }

    fn dress(&self, timer: Timer<Token>, asked: Asked, random: &mut Random) -> Timer<Token> {
        let mut timer = timer.queue(random.index(self.scene.plan.queues));
        // A cancel by name does not say which of them were running, and so how
        // often those were to fire.
        let counted = matches!(asked.firings, Firings::Times(_));
        if random.once_in(10) && !counted {
            timer = timer.named(random.one_of(&NAMES));
        }
        if random.once_in(16) {
            timer = timer.tolerance(random.micros(30_000));
        }
        match asked.reported {
            true => timer.reported(),
            false => timer,
        }
    }

    fn schedule(&self, timer: Timer<Token>, record: Arc<Record>, random: &mut Random) {
        match self.engine.schedule(timer) {
            Ok(id) => self.accepted(id, record, random),
            Err(refused) => self.refused(refused, &record),
        }
    }

    fn accepted(&self, id: TimerId, record: Arc<Record>, random: &mut Random) {
        record.accept();
        let known = Known { id, record };
        self.scene.book.enter(known.clone());
        self.scene.board.leave(known, random.index(1 << 20));
    }

    fn refused(&self, refused: Refused<Token>, record: &Record) {
        let expected = match refused.reason() {
            Refusal::Full => self.scene.plan.max_timers.is_some(),
            Refusal::ShutDown => self.scene.plan.ending != Ending::Settled,
            _ => false,
        };
        if !expected {
            self.scene.book.broke(format!("refused: {refused}"));
        }
        self.ended(refused.into_payload(), record, End::Refused);
    }

    /// A payload came back.
    fn ended(&self, token: Token, record: &Record, end: End) {
        if !std::ptr::eq(&*token.record, record) {
            let broken = format!("{:?} came back for {record:?}", token.record);
            self.scene.book.broke(broken);
        }
        token.record.ends(end, self.scene.book);
    }

    fn known(&self, random: &mut Random) -> Option<Known> {
        self.scene.board.find(random.index(1 << 20))
    }

    fn cancel(&self, random: &mut Random) {
        if let Some(known) = self.known(random) {
            let answer = self.engine.cancel(known.id);
            self.cancelled(answer, &known.record);
        }
    }

    /// Each answer must be that to the id in its place.
    fn cancel_many(&self, random: &mut Random) {
        let many = self.scene.board.find_some(random);
        let ids: Vec<TimerId> = many.iter().map(|known| known.id).collect();
        let answers = self.engine.cancel_many(&ids);
        if answers.len() != ids.len() {
            let broken = format!("{} answers for {} ids", answers.len(), ids.len());
            self.scene.book.broke(broken);
        }
        for (known, answer) in many.iter().zip(answers) {
            self.cancelled(answer, &known.record);
        }
    }

    fn cancelled(&self, answer: Cancel<Token>, record: &Record) {
        match answer {
            Cancel::Cancelled(token) => {
                self.scene.tally.cancelled.fetch_add(1, Ordering::Relaxed);
                self.ended(token, record, End::Cancelled);
            }
            Cancel::Running => record.runs_for_the_last_time(),
            // Only tasks are notified.
            Cancel::Notified | Cancel::Gone => {}
        }
    }

    fn cancel_and_wait(&self, random: &mut Random) {
        let Some(known) = self.known(random) else {
            return;
        };
        let answer = self.engine.cancel_and_wait(known.id);
        let waited = matches!(answer, Cancel::Running);
        let in_hand = known.record.in_hand.load(Ordering::Acquire);
        if waited && in_hand > 0 {
            let broken = format!(
                "waited for, and still in a worker's hands: {:?}",
                known.record
            );
            self.scene.book.broke(broken);
        }
        self.cancelled(answer, &known.record);
    }

    fn cancel_by_name(&self, random: &mut Random) {
        let max = 1 + random.index(3);
        let cancelled = self.engine.cancel_by_name(random.one_of(&NAMES), max);
        if cancelled.ids.len() > max || cancelled.payloads.len() > cancelled.ids.len() {
            self.scene.book.broke(format!("max {max}: {cancelled:?}"));
        }
        for token in cancelled.payloads {
            token.record.ends(End::Cancelled, self.scene.book);
        }
    }

    fn reschedule(&self, random: &mut Random) {
        if let Some(known) = self.known(random) {
            let delay = near(random);
            let mut not_before = known.record.not_before();
            let due = self.after(delay);
            if self.engine.reschedule(known.id, delay).is_ok() {
                *not_before = due;
            }
        }
    }

    fn replace(&self, random: &mut Random) {
        if let Some(known) = self.known(random) {
            let token = Token::new(&known.record, self.scene.book);
            let old = match self.engine.replace(known.id, token) {
                Ok(old) => old,
                Err((_, new)) => new,
            };
            if !Arc::ptr_eq(&old.record, &known.record) {
                self.scene.book.broke(format!("replaced {:?}", old.record));
            }
        }
    }

    /// Creates a timer, lets others know it, and starts it or gives it up.
    fn create(&self, random: &mut Random) {
        let delay = near(random);
        let asked = Asked {
            firings: Firings::Once,
            period: 0,
            // Whether one that was cancelled before ever was accepted is open
            // where it is started during a shutdown.
            reported: random.once_in(3) && self.scene.plan.ending == Ending::Settled,
            far: false,
        };
        let record = Record::new(asked, 0);
        let token = Token::new(&record, self.scene.book);
        let timer = self.dress(Timer::after(delay, token), asked, random);
        let unstarted = match self.engine.create(timer) {
            Ok(unstarted) => unstarted,
            Err(refused) => return self.refused(refused, &record),
        };
        let known = Known {
            id: unstarted.id(),
            record,
        };
        self.scene.board.leave(known.clone(), random.index(1 << 20));
        self.scene.book.enter(known.clone());
        match random.below(8) {
            0 => drop(unstarted),
            1 => {
                if let Some(token) = unstarted.dismiss() {
                    self.ended(token, &known.record, End::Dismissed);
                }
            }
            _ => {
                let mut not_before = known.record.not_before();
                *not_before = self.after(delay);
                match unstarted.start() {
                    Ok(_) => known.record.accept(),
                    Err(refused) => {
                        drop(not_before);
                        self.refused(refused, &known.record);
                    }
                }
            }
        }
    }

    /// The ledger is read shard by shard, each under its lock: it balances
    /// whatever the others do meanwhile.
    fn look(&self) {
        let snapshot = self.engine.snapshot();
        if !snapshot.ledger.is_balanced() {
            self.scene.book.broke(format!("unbalanced: {snapshot:?}"));
        }
        let live = self.engine.live().count() as u64;
        self.scene.tally.live.store(live, Ordering::Relaxed);
    }
}

/// A delay that a round can wait for.
fn near(random: &mut Random) -> Duration {
    match random.below(8) {
        0 => Duration::ZERO,
        1 => random.micros(300),
        2 => random.micros(150_000),
        _ => random.micros(20_000),
    }
}
