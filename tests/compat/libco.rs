//! libco's one flat wheel of 60,000 slots of 1 ms.

use super::*;
use std::collections::HashSet;
use std::sync::mpsc;
use std::thread;
use tickwheel::wheel::Geometry;
use tickwheel::{TaskEngine, Timer};

const TURN: u64 = 60_000;

fn flat() -> Wheel<u64> {
    let geometry = Geometry::new(TURN as usize).unwrap();
    Wheel::with_geometry(Tick(0), geometry.max_levels(1).unwrap())
}

#[test]
fn e1_one_level_of_60_000_slots() {
    let mut wheel = flat();
    assert_eq!(wheel.geometry().levels(), 1);
    assert_eq!(wheel.geometry().size(), 60_000);
    // Whatever is within reach has the slot of its own tick.
    for deadline in [1, 2, 30_000, 59_999] {
        let id = wheel.schedule_at(Tick(deadline), deadline);
        assert_eq!(slot_of(&wheel, id), (0, deadline as usize, deadline));
    }
    let all = [1, 2, 30_000, 59_999].map(|deadline| (deadline, deadline));
    assert_eq!(fire(&mut wheel, TURN), all);

    let builder = Engine::builder().wheel_size(60_000).max_levels(1);
    let (engine, clock) = builder.shards(1).start_virtual().unwrap();
    engine.schedule(Timer::after(90 * SECOND, ())).unwrap();
    clock.advance(90 * SECOND - MS);
    assert!(engine.queue(0).is_empty());
    clock.advance(MS);
    assert_eq!(take(&engine, 0), [(90_000, ())]);
}

#[test]
fn e1_a_deadline_beyond_the_range_waits_in_the_farthest_slot() {
    for seconds in [61, 600, 3_600, 86_400] {
        let deadline = seconds * 1_000;
        let mut wheel = flat();
        let id = wheel.schedule_at(Tick(deadline), deadline);
        let mut touched = 0;
        while wheel.contains(id) {
            let now = wheel.now().0;
            let farthest = now + TURN - 1;
            let (level, index, start) = slot_of(&wheel, id);
            assert_eq!((level, start), (0, farthest.min(deadline)));
            assert_eq!(index as u64, start % TURN);
            // It is looked at when that slot comes up, and not before.
            assert_eq!(wheel.next_wakeup(), Some(Tick(start)));
            assert_eq!(fire(&mut wheel, start - 1), []);
            let fired = fire(&mut wheel, start);
            assert_eq!(fired.is_empty(), start < deadline, "early, or late");
            touched += 1;
        }
        let turns = seconds / 60;
        assert!((turns..=turns + 2).contains(&touched), "{touched} times");
    }
}

#[test]
fn e2_a_jump_of_more_than_a_turn_visits_each_slot_once() {
    let mut wheel = flat();
    let mut expected = Vec::new();
    for deadline in (7..TURN).step_by(100) {
        wheel.schedule_at(Tick(deadline), deadline);
        expected.push(deadline);
    }
    let waiting = 500;
    for n in 0..waiting {
        wheel.schedule_at(Tick(100 * TURN + n), n);
    }
    let mut fired = Vec::new();
    let touched = entries_touched(&mut wheel, 10 * TURN, |wheel, expired| {
        assert_eq!(wheel.now(), expired.deadline);
        fired.push(expired.payload);
    });
    assert_eq!(fired, expected);
    assert_eq!(wheel.now(), Tick(10 * TURN));
    // Once each, and not what waits in the farthest slot in each of ten turns.
    let timers = expected.len() + waiting as usize;
    assert!(touched <= timers + 1, "{touched} for {timers} timers");
    assert_eq!(wheel.len(), waiting as usize);
}

#[test]
fn e2_a_jump_fires_all_due_timers_even_beyond_the_range() {
    let mut wheel = flat();
    let mut random = Rng::with_seed(2);
    let mut expected = Vec::new();
    for _ in 0..1_000 {
        let deadline = 1 + random.u64(..5 * TURN);
        wheel.schedule_at(Tick(deadline), deadline);
        expected.push((deadline, deadline));
    }
    expected.sort_unstable();
    expected.retain(|&(deadline, _)| deadline <= 3 * TURN + 17);
    assert_eq!(fire(&mut wheel, 3 * TURN + 17), expected);
    assert_eq!(wheel.len(), 1_000 - expected.len());

    // So long a jump that visiting every slot of every turn would never end.
    let mut wheel = flat();
    wheel.schedule_at(Tick(1 << 60), 60);
    wheel.schedule_at(Tick(1 << 61), 61);
    assert_eq!(fire(&mut wheel, (1 << 61) - 1), [(1 << 60, 60)]);
    assert_eq!(fire(&mut wheel, 1 << 61), [(1 << 61, 61)]);
}

#[test]
fn e3_a_timer_for_a_tick_whose_slot_was_taken_still_fires() {
    let mut wheel = flat();
    wheel.schedule_at(Tick(500), 0);
    let mut seen = Vec::new();
    let advance = wheel.advance(Tick(500), usize::MAX, |wheel, expired| {
        if expired.payload == 0 {
            // In the same pass.
            wheel.schedule_at(Tick(500), 1);
            wheel.schedule_after(0, 2);
        }
        seen.push((wheel.now().0, expired.payload));
    });
    assert_eq!(advance, Advance::Done);
    assert_eq!(seen, [(500, 0), (500, 1), (500, 2)]);

    // After the pass: in the next one, whether the tick is still the same
    // or is over.
    wheel.schedule_at(Tick(500), 3);
    assert_eq!(wheel.next_wakeup(), Some(Tick(500)));
    assert_eq!(fire(&mut wheel, 500), [(500, 3)]);
    wheel.schedule_at(Tick(500), 4);
    let moved = wheel.schedule_at(Tick(900), 5);
    assert!(wheel.reschedule(moved, Tick(500)));
    assert_eq!(fire(&mut wheel, 501), [(500, 4), (500, 5)]);
    assert!(wheel.is_empty());
}

#[cfg(target_os = "linux")]
mod event_loop {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Event {
        Ready(usize),
        TimedOut(usize),
    }

    /// A descriptor that is waited for, and the time-out of that.
    struct Waiting {
        stream: UnixStream,
        timeout: TimerId,
    }

    struct EventLoop {
        wheel: Wheel<usize>,
        waiting: Vec<Option<Waiting>>,
    }

    impl EventLoop {
        /// Waits for a descriptor; returns its other end.
        fn wait(&mut self, timeout: u64) -> UnixStream {
            let (stream, other) = UnixStream::pair().unwrap();
            let timeout = self.wheel.schedule_after(timeout, self.waiting.len());
            self.waiting.push(Some(Waiting { stream, timeout }));
            other
        }

        /// One round at tick `now`: first what is ready, then what expired.
        fn turn(&mut self, now: u64) -> Vec<Event> {
            let mut events = Vec::new();
            for n in self.ready() {
                let Waiting { stream, timeout } = self.waiting[n].take().unwrap();
                assert_eq!(self.wheel.cancel(timeout), Some(n));
                assert!((&stream).read(&mut [0; 8]).unwrap() > 0);
                events.push(Event::Ready(n));
            }
            while let Some(expired) = self.wheel.pop_due(Tick(now)) {
                self.waiting[expired.payload] = None;
                events.push(Event::TimedOut(expired.payload));
            }
            events
        }

        fn ready(&self) -> Vec<usize> {
            let waits = |n: usize| Some((n, self.waiting[n].as_ref()?.stream.as_raw_fd()));
            let waiting: Vec<_> = (0..self.waiting.len()).filter_map(waits).collect();
            let poll = |&(_, fd): &(usize, i32)| libc::pollfd {
                fd,
                events: libc::POLLIN,
                revents: 0,
            };
            let mut polled: Vec<_> = waiting.iter().map(poll).collect();
            // SAFETY: the pointer and the length are those of one vector, which
            // lives through the call.
            let result = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as _, 0) };
            assert!(result >= 0);
            let is_ready = polled.iter().map(|polled| polled.revents != 0);
            let ready = waiting.into_iter().zip(is_ready);
            ready.filter_map(|((n, _), is)| is.then_some(n)).collect()
        }
    }

    #[test]
    fn e4_readiness_and_timeout_unlink_each_other() {
        let mut events = EventLoop {
            wheel: Wheel::new(64),
            waiting: Vec::new(),
        };
        let mut early = events.wait(100);
        let mut in_time = events.wait(100);
        let mut late = events.wait(100);
        assert_eq!((events.wheel.len(), events.turn(0)), (3, vec![]));

        early.write_all(b"x").unwrap();
        assert_eq!(events.turn(40), [Event::Ready(0)]);
        // Its time-out is gone at once, not when it would have been due.
        assert_eq!(events.wheel.len(), 2);

        // Ready and expired in the same round: ready comes first, and the
        // time-out finds nobody.
        in_time.write_all(b"x").unwrap();
        assert_eq!(events.turn(100), [Event::Ready(1), Event::TimedOut(2)]);
        assert!(events.wheel.is_empty());

        // The time-out has unlinked the descriptor: its other end is closed,
        // and what comes for it is nobody's event.
        assert!(late.write_all(b"x").is_err());
        assert_eq!(events.turn(1_000), []);
    }
}

#[test]
fn e_better_cancel_any_timer_in_constant_time() {
    // All in the farthest slot.
    assert_cancels_in_constant_time(flat, 10 * TURN);

    let mut wheel = flat();
    let ids = [1, 2, 3].map(|n| wheel.schedule_at(Tick(n * TURN), n));
    for id in ids {
        assert!(wheel.cancel(id).is_some());
    }
    assert!(wheel.is_empty() && !ids.iter().any(|&id| wheel.contains(id)));
}

#[test]
fn e_better_no_wake_up_each_millisecond() {
    let builder = Engine::builder().wheel_size(60_000).max_levels(1);
    let engine = builder.start().unwrap();
    engine.schedule(Timer::after(200 * MS, ())).unwrap();
    assert!(engine.queue(0).recv_timeout(PATIENCE).is_ok());
    assert!(
        engine.snapshot().wakeups < 20,
        "{} wake-ups",
        engine.snapshot().wakeups
    );
}

#[test]
fn e_better_no_coroutine_or_thread_for_each_timer() {
    const TIMERS: usize = 10_000;
    let (tasks, clock) = TaskEngine::builder().workers(1).start_virtual().unwrap();
    let (tell, told) = mpsc::channel();
    for n in 0..TIMERS as u32 {
        let tell = tell.clone();
        let say_where = move || tell.send(thread::current().id()).unwrap();
        tasks.run_after((n % 1_000) * MS, say_where).unwrap();
    }
    clock.run_until(Time::from_millis(1_000));
    let threads: Vec<_> = told.try_iter().collect();
    assert_eq!(threads.len(), TIMERS);
    assert_eq!(threads.into_iter().collect::<HashSet<_>>().len(), 1);
}
