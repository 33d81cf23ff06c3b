//! Threads that schedule and cancel, one for each shard.
//!
//! A thread schedules into the shard that belongs to its number. A scratch engine with as
//! many shards shows which shard that is. Each shard thus gets the same calls in every run,
//! and a virtual engine shows the same frames.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use tickwheel::{Engine, StartError, Time, Timer, TimerId};

use crate::playground::Settings;

/// The number of ids that a loader remembers, in order to cancel them.
const REMEMBERED: usize = 1 << 20;

/// Work for all loaders together.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// Schedule so many timers.
    Schedule(usize),
    /// Cancel so many timers.
    Cancel(usize),
}

impl Work {
    /// Returns one loader's share.
    fn share(&self, loader: usize, loaders: usize) -> Work {
        let part = |count: usize| count / loaders + usize::from(loader < count % loaders);
        match *self {
            Work::Schedule(count) => Work::Schedule(part(count)),
            Work::Cancel(count) => Work::Cancel(part(count)),
        }
    }
}

enum Request {
    Work(Engine<Time>, Work),
    TakeOver(Engine<Time>, Vec<Duration>),
}

/// Where a loader's requests go, and its answers come from.
#[derive(Debug)]
struct Line {
    requests: Sender<Request>,
    answers: Receiver<usize>,
}

/// The threads, sorted by their shards. They end when this is dropped.
#[derive(Debug)]
pub(super) struct Loaders {
    lines: Vec<Line>,
}

impl Loaders {
    /// Starts threads until each shard has one.
    pub(super) fn start(settings: &Settings) -> Result<Loaders, StartError> {
        let builder = Engine::builder().shards(settings.shards);
        let (scratch, _clock) = builder.start_virtual()?;
        let shards = scratch.inspect(1).shards.len();
        let mut lines: Vec<Option<Line>> = (0..shards).map(|_| None).collect();
        // Threads that are not needed keep their numbers until all others have theirs.
        let mut surplus = Vec::new();
        while lines.iter().any(Option::is_none) {
            let (shard, line) = start_one(settings, &scratch);
            match &mut lines[shard] {
                Some(_) => surplus.push(line),
                free => *free = Some(line),
            }
        }
        Ok(Loaders { lines: lines.into_iter().flatten().collect() })
    }

    /// Divides work among the threads, and waits for them. Returns how much they did.
    pub(super) fn work(&self, engine: &Engine<Time>, work: Work) -> usize {
        let loaders = self.lines.len();
        self.request(|loader| Request::Work(engine.clone(), work.share(loader, loaders)))
    }

    /// Schedules timers with these delays.
    pub(super) fn take_over(&self, engine: &Engine<Time>, delays: Vec<Duration>) {
        let part = delays.len().div_ceil(self.lines.len()).max(1);
        let mut parts = delays.chunks(part);
        self.request(|_| {
            let delays = parts.next().unwrap_or_default();
            Request::TakeOver(engine.clone(), delays.to_vec())
        });
    }

    fn request(&self, mut request: impl FnMut(usize) -> Request) -> usize {
        for (loader, line) in self.lines.iter().enumerate() {
            line.requests.send(request(loader)).expect("a loader ends last");
        }
        let answers = self.lines.iter().map(|line| line.answers.recv());
        answers.map(|done| done.expect("a loader answers")).sum()
    }
}

/// Starts a thread. Returns the shard into which it schedules.
fn start_one(settings: &Settings, scratch: &Engine<Time>) -> (usize, Line) {
    let (requests, to_do) = channel();
    let (done, answers) = channel();
    let (settings, scratch) = (settings.clone(), scratch.clone());
    thread::spawn(move || {
        let shard = own_shard(&scratch);
        drop(scratch);
        let sent = done.send(shard);
        let mut loader = Loader::new(settings, shard);
        for request in to_do {
            if sent.is_err() || done.send(loader.act(request)).is_err() {
                return;
            }
        }
    });
    let shard = answers.recv().expect("a loader says its shard");
    (shard, Line { requests, answers })
}

/// Returns the shard into which the calling thread schedules.
fn own_shard(scratch: &Engine<Time>) -> usize {
    let accepted = || {
        let shards = scratch.inspect(1).shards.into_iter();
        shards.map(|shard| shard.ledger.accepted).collect::<Vec<_>>()
    };
    let before = accepted();
    let scheduled = scratch.schedule(Timer::at(Time::MAX, Time::MAX));
    scheduled.expect("a scratch engine accepts all");
    let mut pairs = before.into_iter().zip(accepted());
    pairs.position(|(before, after)| before != after).expect("one shard has more")
}

struct Loader {
    settings: Settings,
    random: Rng,
    /// Timers that may still be live.
    ids: Vec<TimerId>,
}

impl Loader {
    fn new(settings: Settings, shard: usize) -> Loader {
        Loader { random: Rng::with_seed(settings.seed + shard as u64), settings, ids: Vec::new() }
    }

    fn act(&mut self, request: Request) -> usize {
        match request {
            Request::Work(engine, Work::Schedule(count)) => {
                let delays = (0..count).map(|_| self.delay()).collect();
                self.schedule(&engine, delays)
            }
            Request::Work(engine, Work::Cancel(count)) => self.cancel(&engine, count),
            Request::TakeOver(engine, delays) => self.schedule(&engine, delays),
        }
    }

    fn schedule(&mut self, engine: &Engine<Time>, delays: Vec<Duration>) -> usize {
        let count = delays.len();
        for delay in delays {
            let queue = self.random.usize(0..self.settings.queues);
            let due = engine.now() + delay;
            if let Ok(id) = engine.schedule(Timer::at(due, due).queue(queue)) {
                self.remember(id);
            }
        }
        count
    }

    fn remember(&mut self, id: TimerId) {
        if self.ids.len() < REMEMBERED {
            self.ids.push(id)
        } else {
            let place = self.random.usize(0..REMEMBERED);
            self.ids[place] = id;
        }
    }

    /// Cancels `count` of the live timers that it remembers, at random.
    fn cancel(&mut self, engine: &Engine<Time>, count: usize) -> usize {
        let mut cancelled = 0;
        while cancelled < count && !self.ids.is_empty() {
            let place = self.random.usize(0..self.ids.len());
            let id = self.ids.swap_remove(place);
            cancelled += usize::from(engine.cancel(id).is_cancelled());
        }
        cancelled
    }

    /// Returns a delay of at least a tick. Each order of magnitude is as likely as any other.
    fn delay(&mut self) -> Duration {
        let (tick, longest) = (self.settings.tick, self.settings.longest);
        let range = longest.div_duration_f64(tick).max(1.0);
        tick.mul_f64(range.powf(self.random.f64()))
    }
}
