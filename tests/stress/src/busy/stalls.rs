//! How long calls took, and whether that is more than the control allows.

use std::fmt;
use std::time::Duration;

/// How long each of many calls of one kind took, in one turn.
#[derive(Default)]
pub struct Stalls(Vec<Duration>);

impl Stalls {
    pub fn of(took: Duration) -> Stalls {
        Stalls(vec![took])
    }

    pub fn add(&mut self, took: Duration) {
        self.0.push(took);
    }

    pub fn merge(mut self, others: Stalls) -> Stalls {
        self.0.extend(others.0);
        self
    }

    fn into_tail(mut self) -> Tail {
        self.0.sort_unstable();
        let last = self.0.len().saturating_sub(1);
        let at = |index: usize| self.0.get(index).copied().unwrap_or_default();
        Tail {
            p99: at(last * 99 / 100),
            longest: at(last),
        }
    }
}

/// What all but one call in a hundred took at most, and what the longest took.
#[derive(Clone, Copy)]
struct Tail {
    p99: Duration,
    longest: Duration,
}

/// The tails of several turns, of which the middle one counts: other work on
/// the machine spoils some turns, of either side.
#[derive(Default)]
pub struct Tails(Vec<Tail>);

impl Tails {
    pub fn add(&mut self, stalls: Stalls) {
        self.0.push(stalls.into_tail());
    }

    fn p99(&self) -> Duration {
        self.middle(|tail| tail.p99)
    }

    fn longest(&self) -> Duration {
        self.middle(|tail| tail.longest)
    }

    fn middle(&self, of: impl Fn(&Tail) -> Duration) -> Duration {
        let mut all: Vec<Duration> = self.0.iter().map(of).collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied().unwrap_or_default()
    }
}

impl fmt::Display for Tails {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (p99, longest, turns) = (self.p99(), self.longest(), self.0.len());
        write!(f, "p99 {p99:.1?}, longest {longest:.1?} ({turns} turns)")
    }
}

/// How much longer than the control's a wait may be.
#[derive(Clone, Copy)]
pub struct Allowance {
    pub ratio: u32,
    /// A moment more, below which a ratio says nothing.
    pub p99_floor: Duration,
    pub longest_floor: Duration,
}

/// The engine beside its control.
pub struct Comparison {
    pub engine: Tails,
    pub control: Tails,
    pub allowance: Allowance,
}

impl Comparison {
    pub fn is_too_long(&self) -> bool {
        let Comparison {
            engine,
            control,
            allowance,
        } = self;
        let is_more = |engine, control: Duration, floor| engine > control * allowance.ratio + floor;
        is_more(engine.p99(), control.p99(), allowance.p99_floor)
            || is_more(engine.longest(), control.longest(), allowance.longest_floor)
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (engine, control) = (&self.engine, &self.control);
        let verdict = if self.is_too_long() {
            "TOO LONG"
        } else {
            "in bounds"
        };
        write!(f, "{engine}; control: {control}: {verdict}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of one turn.
    fn tails(millis: impl Iterator<Item = u64>) -> Tails {
        let mut tails = Tails::default();
        tails.add(Stalls(millis.map(Duration::from_millis).collect()));
        tails
    }

    fn is_too_long(engine: Tails, control: Tails) -> bool {
        let comparison = Comparison {
            engine,
            control,
            allowance: Allowance {
                ratio: 3,
                p99_floor: Duration::from_millis(10),
                longest_floor: Duration::from_millis(10),
            },
        };
        comparison.is_too_long()
    }

    #[test]
    fn a_tail_within_the_ratio_and_the_floor_is_no_finding() {
        let beside = |engine| is_too_long(tails(0..engine), tails(0..101));
        assert!(!beside(301));
        assert!(beside(400));
    }

    #[test]
    fn one_long_stall_among_many_short_ones_is_a_finding() {
        let engine = (0..1_000).map(|n| if n == 7 { 500 } else { 1 });
        assert!(is_too_long(tails(engine), tails(0..101)));
    }

    #[test]
    fn a_single_spoilt_turn_is_no_finding() {
        let mut engine = tails(0..9_000);
        for _ in 0..2 {
            engine.add(Stalls::default());
        }
        assert!(!is_too_long(engine, tails(0..101)));
    }

    #[test]
    fn who_was_never_called_took_no_time() {
        assert!(!is_too_long(Tails::default(), Tails::default()));
    }
}
