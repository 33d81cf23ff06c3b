//! A search for calls that break a pass of shrinking.
//!
//! A pass stands still between two steps, and any call may come there. The wheel gets
//! calls of every kind, and a step of a pass after almost each of them. Like the wheel of
//! a shard, it has timers on a list of its owner, and a timer that is set aside.
//!
//! The oracle of the wheel compares results, but few of its calls are steps of a pass.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::super::super::{Expired, Step};
use super::*;

/// More timers than a slot with one lane is for.
const MANY: u64 = 17;

/// The tag bit of a timer that is on the list of the owner, or set aside.
const ELSEWHERE: u16 = 1 << 5;

#[derive(Clone, Copy, Debug)]
enum Delay {
    Overdue,
    Near,
    NextLevel,
    Far,
}

#[derive(Clone, Copy, Debug)]
enum Which {
    Oldest,
    Youngest,
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Schedule(Delay),
    ScheduleMany(Delay),
    Cancel(Which),
    CancelHalf,
    Move(Which, Delay),
    Disarm(Which),
    Pop,
    /// Takes the timers that are found with this budget.
    Take(usize),
    Rearm(Delay),
    /// Moves the next due timer to the list of the owner.
    Ready,
    /// Sets the first timer of that list aside.
    Lend,
    Return(Delay),
    Shrink(usize),
    StopGathering,
    Reserve,
    Clear,
}

use Call::{Cancel, CancelHalf, Move, Pop, Ready, Schedule, ScheduleMany, Shrink, Take};
use Delay::{Far, Near, NextLevel, Overdue};
use Which::{Oldest, Youngest};

/// Calls of the exhaustive search. A step of a pass follows each.
const CALLS: [Call; 12] = [
    Schedule(Near),
    Schedule(Far),
    ScheduleMany(Overdue),
    ScheduleMany(NextLevel),
    Cancel(Oldest),
    Cancel(Youngest),
    CancelHalf,
    Move(Oldest, Overdue),
    Move(Youngest, Far),
    Pop,
    Take(1),
    Ready,
];

/// Budgets of the steps.
const STEPS: [usize; 4] = [0, 1, 9, usize::MAX];

const STARTS: [&[Call]; 3] = [
    &[],
    &[Schedule(Near), Pop],
    &[
        ScheduleMany(NextLevel),
        Schedule(Far),
        CancelHalf,
        CancelHalf,
        Take(3),
    ],
];

struct Search {
    wheel: Wheel<u64>,
    live: Vec<(TimerId, u64)>,
    scheduled: u64,
    popped: Option<Expired<u64>>,
    /// The list of the owner, and the timer that is set aside.
    list: EntryIndex,
    aside: Option<TimerId>,
}

fn linkage(wheel: &Wheel<u64>, at: EntryIndex) -> Linkage {
    match wheel.tag(at) & ELSEWHERE {
        0 => Linkage::InWheel,
        _ => Linkage::Elsewhere,
    }
}

impl Search {
    /// Begins before a tick at which an outer slot has its turn.
    fn new(size: usize) -> Search {
        let mut wheel = Wheel::starting_at(Tick(size as u64 - 1), size);
        Search {
            list: wheel.add_list(),
            wheel,
            live: Vec::new(),
            scheduled: 0,
            popped: None,
            aside: None,
        }
    }

    fn run(&mut self, call: Call) {
        match call {
            Schedule(delay) => self.schedule(delay),
            ScheduleMany(delay) => (0..MANY).for_each(|_| self.schedule(delay)),
            Cancel(Oldest) => self.cancel(0),
            Cancel(Youngest) => self.cancel(self.live.len().wrapping_sub(1)),
            CancelHalf => (0..self.live.len() / 2).for_each(|at| self.cancel(at)),
            Move(which, delay) => self.reschedule(which, self.at(delay)),
            Call::Disarm(which) => self.reschedule(which, Tick::MAX),
            Pop => self.pop(),
            Take(budget) => self.take(budget),
            Call::Rearm(delay) => self.rearm(delay),
            Ready => self.ready(),
            Call::Lend => self.lend(),
            Call::Return(delay) => self.give_back(delay),
            Shrink(budget) => _ = self.shrink(budget),
            Call::StopGathering => self.wheel.stop_gathering(),
            Call::Reserve => self.wheel.reserve(self.live.len() + MANY as usize),
            Call::Clear => self.clear(),
        }
    }

    fn at(&self, delay: Delay) -> Tick {
        let (now, size) = (self.wheel.now(), self.wheel.geometry().size() as u64);
        match delay {
            Overdue => Tick(now.0 - 1),
            Near => now.after(1),
            NextLevel => now.after(size + self.scheduled % 2),
            Far => now.after(size * size * size + self.scheduled % 3),
        }
    }

    fn schedule(&mut self, delay: Delay) {
        let (at, n) = (self.at(delay), self.scheduled);
        self.live.push((self.wheel.schedule_at(at, n), n));
        self.scheduled += 1;
    }

    fn cancel(&mut self, at: usize) {
        if at < self.live.len() {
            let (id, n) = self.live.remove(at);
            let cancelled = match self.aside.take_if(|aside| *aside == id) {
                // It is on no list that it could be taken off.
                Some(_) => self.wheel.find(id).map(|at| self.wheel.remove(at)),
                None => self.wheel.cancel(id),
            };
            assert_eq!(cancelled, Some(n));
            assert_eq!(self.wheel.cancel(id), None);
        }
    }

    /// Reschedules a timer that the wheel itself fires.
    fn reschedule(&mut self, which: Which, to: Tick) {
        let ids = self.live.iter().map(|&(id, _)| id);
        let mut of_wheel = ids.filter(|&id| !self.is_elsewhere(id));
        let chosen = match which {
            Oldest => of_wheel.next(),
            Youngest => of_wheel.next_back(),
        };
        assert!(chosen.is_none_or(|id| self.wheel.reschedule(id, to)));
    }

    fn is_elsewhere(&self, id: TimerId) -> bool {
        let at = self.wheel.find(id).expect("a live timer");
        linkage(&self.wheel, at) == Linkage::Elsewhere
    }

    fn pop(&mut self) {
        let next = self.wheel.next_wakeup();
        let to = next.unwrap_or_default().max(self.wheel.now().after(1));
        if let Some(expired) = self.wheel.pop_due(to) {
            let timer = (expired.id(), expired.payload);
            let before = self.live.len();
            self.live.retain(|live| *live != timer);
            assert_eq!(self.live.len() + 1, before);
            self.popped = Some(expired);
        }
    }

    fn take(&mut self, budget: usize) {
        let mut taken = Vec::new();
        let to = self.wheel.now().after(1);
        let fire = |_: &mut Wheel<u64>, e: Expired<u64>| taken.push((e.id(), e.payload));
        let _ = self.wheel.advance(to, budget, fire);
        let before = self.live.len();
        self.live.retain(|live| !taken.contains(live));
        assert_eq!(self.live.len() + taken.len(), before);
    }

    fn rearm(&mut self, delay: Delay) {
        if let Some(expired) = self.popped.take() {
            let at = self.at(delay);
            assert_eq!(self.wheel.rearm(expired, at), Ok(()));
            self.live.push((expired.id(), expired.payload));
        }
    }

    fn ready(&mut self) {
        let to = self.wheel.next_wakeup().unwrap_or(self.wheel.now());
        if let Step::Due(at) = self.wheel.step(to.0, &mut 100) {
            self.wheel.append_to(self.list, at);
            self.wheel.set_tag(at, self.wheel.tag(at) | ELSEWHERE);
        }
    }

    fn lend(&mut self) {
        let first = self.wheel.first_of(self.list);
        if let Some(at) = first.filter(|_| self.aside.is_none()) {
            self.aside = Some(self.wheel.id(at));
            self.wheel.unlink(at);
            self.wheel.set_aside(at);
        }
    }

    fn give_back(&mut self, delay: Delay) {
        if let Some(id) = self.aside.take() {
            let (at, to) = (self.wheel.find(id).unwrap(), self.at(delay));
            self.wheel.set_tag(at, self.wheel.tag(at) & !ELSEWHERE);
            self.wheel.relink_at(at, to);
        }
    }

    fn shrink(&mut self, budget: usize) -> bool {
        self.wheel.begin_shrink();
        self.wheel.shrink_some(&mut { budget }, linkage)
    }

    fn clear(&mut self) {
        if self.aside.is_none() {
            self.wheel.clear();
            self.live.clear();
        }
    }

    /// Checks the wheel, and finds every timer.
    fn check(&self) {
        let aside = usize::from(self.aside.is_some());
        let elsewhere = self.wheel.on_list(self.list).count() + aside;
        self.wheel.assert_consistent_beside(elsewhere);
        assert_eq!(self.wheel.len(), self.live.len());
        for &(id, n) in &self.live {
            assert_eq!(self.wheel.get(id), Some(&n));
        }
    }

    /// Ends the pass, and cancels all timers.
    fn end(mut self) {
        while !self.shrink(usize::MAX) {}
        self.check();
        while !self.live.is_empty() {
            self.cancel(0);
        }
        self.check();
    }
}

/// Makes the calls on a new wheel, and checks it after each if `often`. Prints the calls
/// if that fails.
fn run(size: usize, calls: &[Call], often: bool) {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut search = Search::new(size);
        for &call in calls {
            search.run(call);
            if often {
                search.check();
            }
        }
        search.check();
        search.end();
    }));
    if let Err(thrown) = outcome {
        println!("size {size}, calls {calls:?}");
        resume_unwind(thrown);
    }
}

/// All scripts of two calls, each with a step of a pass, after each of the starts.
#[test]
fn no_two_calls_between_steps_break_a_pass() {
    let kinds = CALLS.len() * STEPS.len();
    let pair = |nth: usize| {
        let step = Shrink(STEPS[nth % STEPS.len()]);
        [CALLS[nth / STEPS.len()], step]
    };
    for size in [2, 64] {
        for nth in 0..STARTS.len() * kinds * kinds {
            let [one, two] = [pair(nth % kinds), pair(nth / kinds % kinds)];
            let calls = [STARTS[nth / kinds / kinds], &one, &two].concat();
            run(size, &calls, false);
        }
    }
}

fn some_delay(random: &mut fastrand::Rng) -> Delay {
    [Overdue, Overdue, Near, NextLevel, Far][random.usize(..5)]
}

/// Mostly less than a pass needs, whatever the size of the wheel.
fn some_budget(random: &mut fastrand::Rng) -> usize {
    let most = [2, 4, 10, 80, 800, 3_000][random.usize(..6)];
    random.usize(1..most)
}

fn some_call(random: &mut fastrand::Rng) -> Call {
    let delay = some_delay(random);
    let which = [Oldest, Youngest][random.usize(..2)];
    match random.u32(..44) {
        0..4 => Schedule(delay),
        4..7 => ScheduleMany(delay),
        7..9 => Cancel(which),
        9..11 => CancelHalf,
        11..15 => Move(which, delay),
        15 => Call::Disarm(which),
        16..18 => Pop,
        18..20 => Take(random.usize(1..4)),
        20..23 => Ready,
        23 => Call::Lend,
        24 => Call::Return(delay),
        25 => Call::Rearm(delay),
        26 => Call::Reserve,
        27 if random.u8(..8) == 0 => Call::Clear,
        28 if random.u8(..8) == 0 => Call::StopGathering,
        _ => Shrink(some_budget(random)),
    }
}

/// Random scripts, the same in every run. `SCRIPTS` is their number.
#[test]
fn no_calls_between_steps_break_a_pass() {
    let scripts = std::env::var("SCRIPTS").ok();
    let scripts = scripts.and_then(|scripts| scripts.parse().ok());
    for seed in 0..scripts.unwrap_or(300) {
        let mut random = fastrand::Rng::with_seed(seed);
        let size = [2, 3, 8, 64, 64, 100][random.usize(..6)];
        let calls = (0..random.usize(4..64)).map(|_| some_call(&mut random));
        run(size, &calls.collect::<Vec<_>>(), true);
    }
}
