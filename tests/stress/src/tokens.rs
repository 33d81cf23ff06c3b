//! Typed payloads that count themselves, and the workers that take them.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tickwheel::{Engine, Expired, MissedTicks, Queue, RecvError, Refused, Timer, Unstarted};

use crate::account::{Asked, End, Record, broke};
use crate::drive::{self, Mover};
use crate::plan::{Fault, Plan, Random};
use crate::round::{Round, Side};
use crate::watchdog::PLANNED;

const NAMES: [&str; 5] = ["lease", "session", "buff", "retry", "beat"];

#[derive(Debug)]
pub struct Token {
    pub record: Arc<Record>,
    /// Dropped with the token, wherever that is.
    handle: Option<Engine<Token>>,
}

impl Token {
    pub fn new(record: &Arc<Record>) -> Token {
        record.state().tokens += 1;
        Token { record: Arc::clone(record), handle: None }
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.record.state().tokens -= 1;
        if thread::current().name() == Some(drive::TICKER) {
            broke("the ticker dropped a payload".into());
        }
    }
}

impl Side for Engine<Token> {
    type Payload = Token;

    fn start(plan: &Plan) -> (Engine<Token>, Mover<Token>) {
        let builder = Engine::builder().tick(plan.tick).queues(plan.queues);
        let builder = builder.wheel_size(plan.wheel_size);
        let mut builder = builder.max_levels(plan.max_levels).shards(plan.shards);
        if let Some(max) = plan.max_timers {
            builder = builder.max_timers(max);
        }
        drive::start(builder, plan.drive)
    }

    fn engine(&self) -> &Engine<Token> {
        self
    }

    fn work(&self, round: &Arc<Round>) -> Vec<JoinHandle<()>> {
        let plan = &round.plan;
        let start = |n: usize| {
            let mut random = plan.random(&[500 + n as u64]);
            let worker = Worker {
                round: Arc::clone(round),
                queue: self.queue(n % plan.queues),
                hold_max: random.index(9),
                held: VecDeque::new(),
                random,
            };
            thread::spawn(|| worker.work())
        };
        let count = plan.queues * plan.workers_per_queue;
        (0..count).map(start).collect()
    }

    fn call(&self, round: &Round, random: &mut Random) {
        match (random.below(20), round.book.find(random)) {
            (0, _) => {
                let max = 1 + random.index(3);
                let cancelled = self.cancel_by_name(random.one_of(&NAMES), max);
                let tokens = cancelled.into_iter();
                let tokens: Vec<_> = tokens.filter_map(|(_, it)| it.into_payload()).collect();
                if tokens.len() > max {
                    broke(format!("max {max}: {tokens:?}"));
                }
                for token in tokens {
                    token.record.state().ends(End::Cancelled);
                }
            }
            (1, Some(known)) => {
                let old = self.replace(known.id, Token::new(&known.record));
                let old = old.unwrap_or_else(Refused::into_inner);
                if !Arc::ptr_eq(&old.record, &known.record) {
                    broke(format!("replaced {:?}", old.record));
                }
            }
            _ => schedule(self, round, random),
        }
    }
}

/// Schedules a timer of any kind, or creates and starts it.
fn schedule(engine: &Engine<Token>, round: &Round, random: &mut Random) {
    let mut asked = Asked { reported: random.once_in(6), ..Asked::default() };
    let (record, timer) = if random.once_in(7) {
        let period = Duration::from_micros(200) + random.micros(20_000);
        let times = random.below(6);
        asked.period = period.as_nanos() as u64;
        asked.times = Some(if times == 0 { u32::MAX } else { times as u32 });
        let record = Record::new(asked, round.after(period));
        let missed = [MissedTicks::CatchUp, MissedTicks::Skip, MissedTicks::Delay];
        let timer = Timer::every(period, Token::new(&record)).times(times);
        (record, timer.missed(random.one_of(&missed)))
    } else {
        asked.far = random.once_in(8);
        let delay = if asked.far {
            random.one_of(&[Duration::from_secs(3_600), Duration::MAX])
        } else {
            random.near()
        };
        let record = Record::new(asked, round.after(delay));
        let mut token = Token::new(&record);
        if round.plan.has(Fault::Dropped) && !asked.far && random.once_in(4) {
            token.handle = Some(engine.clone());
        }
        let timer = if random.once_in(3) {
            Timer::at(engine.now() + delay, token)
        } else {
            Timer::after(delay, token)
        };
        (record, timer)
    };
    let mut timer = timer.queue(random.index(round.plan.queues));
    // A cancel by name does not say which of them were running, and so how often those were to
    // fire.
    if random.once_in(10) && matches!(asked.times, None | Some(u32::MAX)) {
        timer = timer.named(random.one_of(&NAMES));
    }
    if random.once_in(16) {
        timer = timer.tolerance(random.micros(30_000));
    }
    if asked.reported {
        timer = timer.reported();
    }
    let scheduled = if random.once_in(8) {
        engine.create(timer).and_then(Unstarted::start)
    } else {
        engine.schedule(timer)
    };
    // The payload came back, or else is dropped here.
    round.note(scheduled.map_err(|refused| refused.reason()), record);
}

/// Takes what has expired, in whichever way, and keeps it for as long as it likes.
struct Worker {
    round: Arc<Round>,
    queue: Queue<Token>,
    random: Random,
    /// How many firings it keeps at a time.
    hold_max: usize,
    held: VecDeque<Expired<Token>>,
}

impl Worker {
    /// Works until the engine is shut down.
    fn work(mut self) {
        let mut payloads = Vec::new();
        loop {
            let (way, most) = (self.random.below(4), 1 + self.random.index(100));
            if way < 2 {
                self.keep(0); // who waits without a limit holds nothing that others wait for
            }
            let taken = match way {
                0 => self.queue.recv().map(Some),
                1 => self.queue.recv_many(&mut payloads, most),
                2 => self.queue.try_recv().map(Some),
                _ => self.queue.recv_timeout(self.random.micros(3_000)).map(Some),
            };
            for token in payloads.drain(..) {
                let mut state = token.record.state();
                state.deliver((self.round.now)(), 1);
                state.in_hand -= 1;
            }
            match taken {
                Ok(expired) => expired.into_iter().for_each(|expired| self.hold(expired)),
                Err(RecvError::ShutDown) => break self.keep(0),
                Err(RecvError::Empty) => {
                    self.keep(0);
                    thread::sleep(Duration::from_micros(200));
                }
            }
        }
    }

    fn hold(&mut self, expired: Expired<Token>) {
        let (now, record) = ((self.round.now)(), &expired.payload().record);
        record.state().deliver(now, expired.number());
        if self.round.plan.has(Fault::Sleepers) && self.random.once_in(50) {
            thread::sleep(self.random.micros(5_000));
        }
        self.held.push_back(expired);
        self.keep(self.hold_max);
    }

    /// Lets go of the oldest until only `max` are left.
    fn keep(&mut self, max: usize) {
        while self.held.len() > max
            && let Some(expired) = self.held.pop_front()
        {
            expired.payload().record.state().in_hand -= 1;
            if self.round.plan.has(Fault::Panics) && self.random.once_in(40) {
                let panics = move || {
                    let _expired = expired;
                    std::panic::panic_any(PLANNED)
                };
                drop(catch_unwind(AssertUnwindSafe(panics)));
            } else if self.random.once_in(10) {
                expired.payload().record.state().stop(0);
                drop(expired.into_payload());
            }
        }
    }
}
