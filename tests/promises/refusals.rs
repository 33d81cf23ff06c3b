//! Promise 11: a refused timer comes back as it was, for every kind of timer
//! and every reason.

use super::*;

/// Timers with all that can be said of one, and what is wrong with each in itself.
fn kinds<P: Clone>(payload: P) -> Vec<(Timer<P>, Option<Refusal>)> {
    let after = || Timer::after(5 * MS, payload.clone());
    let every = |period| Timer::every(period, payload.clone());
    let dressed = |it: Timer<P>| it.tolerance(7 * MS).named("name").reported().rearmable();
    let skip = MissedTicks::Skip;
    let too_short = MS / 100 - Duration::from_nanos(1);
    let good = [
        after(),
        Timer::at(at(5), payload.clone()),
        every(MS).starting(at(9)),
        every(MS / 100).missed(MissedTicks::CatchUp).times(4),
        every(too_short).missed(skip).starting(9 * MS),
        every(too_short).missed(MissedTicks::Delay).times(0),
    ];
    let good = good.into_iter().flat_map(|it| [it.clone(), dressed(it)]);
    let misfits = [
        (every(MS).queue(2), Refusal::NoSuchQueue),
        (after().queue(2).times(2), Refusal::NoSuchQueue),
        (every(Duration::ZERO), Refusal::ZeroPeriod),
        (dressed(every(too_short)), Refusal::PeriodTooShort),
        (after().starting(MS), Refusal::NotRepeating),
        (after().starting(Time::START), Refusal::NotRepeating),
        (after().times(0), Refusal::NotRepeating),
        (after().times(1), Refusal::NotRepeating),
        (dressed(after()).missed(skip), Refusal::NotRepeating),
        (after().missed(MissedTicks::CatchUp), Refusal::NotRepeating),
    ];
    let misfits = misfits.map(|(it, why)| (it, Some(why)));
    good.map(|it| (it, None)).chain(misfits).collect()
}

/// Whether the timer was refused for this reason, and came back; or accepted, if there
/// is none.
fn is_refused<R, P>(answer: Result<R, Refused<Timer<P>>>, why: Option<Refusal>, given: &Timer<P>)
where
    Timer<P>: PartialEq + std::fmt::Debug,
{
    let refused = answer.err();
    assert_eq!(refused.as_ref().map(Refused::reason), why, "{given:?}");
    assert!(refused.is_none_or(|refused| refused.into_inner() == *given));
}

#[test]
fn promise_11_no_timer_that_catches_up_is_due_more_than_a_hundred_times_a_tick() {
    let builder = Engine::builder().tick(Duration::from_nanos(10_001));
    let (engine, _clock) = builder.start_virtual().unwrap();
    let every = |nanos| engine.schedule(Timer::every(Duration::from_nanos(nanos), 0));
    assert_eq!(every(100).map_err(Refusal::from), Err(Refusal::PeriodTooShort));
    assert!(every(101).is_ok());
}

#[test]
fn promise_11_a_refused_timer_comes_back_as_it_was() {
    let builder = || Engine::builder().queues(2).max_timers(1);
    let engine = || builder().start_virtual().unwrap();
    let [(full, _clock), (closed, _clock2), (drained, _clock3)] = [(); 3].map(|()| engine());
    full.after(Duration::MAX, 1);
    closed.shutdown();
    drained.drain(Duration::ZERO);
    let reasons = [Refusal::Full, Refusal::ShutDown, Refusal::ShutDown];
    let plain = (Timer::after(MS, 7).queue(1), None);
    for (given, fault) in kinds(7).into_iter().chain([plain]) {
        for (engine, reason) in [&full, &closed, &drained].into_iter().zip(reasons) {
            let why = Some(fault.unwrap_or(reason));
            is_refused(engine.schedule(given.clone()), why, &given);
            is_refused(engine.create(given.clone()), why, &given);
        }
    }
    let accepted = [&full, &closed, &drained].map(|it| it.ledger().accepted);
    assert_eq!(accepted, [1, 0, 0]);
}

/// It was accepted, and stored; then the engine was shut down.
#[test]
fn promise_11_a_timer_refused_at_its_start_comes_back() {
    for (given, _) in kinds(7).into_iter().filter(|kind| kind.1.is_none()) {
        let (engine, _clock) = virtual_engine();
        let unstarted = engine.create(given.clone()).unwrap();
        engine.shutdown();
        is_refused(unstarted.start(), Some(Refusal::ShutDown), &given);
    }
}

/// Whichever way it takes into a task engine, a misfit is refused for the same reason, and
/// the closure comes back in it, in place of what it was made into.
#[test]
fn promise_11_every_way_in_refuses_a_task_alike_and_returns_it() {
    let task: fn(Firing) = |_| ();
    let (open, _clock) = virtual_tasks();
    let (closed, _clock2) = virtual_tasks();
    closed.shutdown();
    for (plain, fault) in kinds(task) {
        for given in [plain.clone(), plain.notified()] {
            for (tasks, reason) in [(&open, None), (&closed, Some(Refusal::ShutDown))] {
                let why = fault.or(reason);
                is_refused(tasks.run(given.clone()), why, &given);
                is_refused(tasks.create(given.clone()), why, &given);
                let repeats = format!("{given:?}").contains("repeat: Some");
                let why = repeats.then_some(Refusal::Repeating).or(why);
                is_refused(tasks.run_once(given.clone()), why, &given);
            }
        }
    }
}

/// None of the settings is ignored, and who is refused is told what to do.
#[test]
fn promise_11_a_misfit_is_refused_with_a_reason_and_changes_nothing() {
    let (engine, clock) = virtual_engine();
    for (given, fault) in kinds(7) {
        let Some(fault) = fault else { continue };
        is_refused(engine.schedule(given.clone()), Some(fault), &given);
        let said = engine.create(given).unwrap_err().to_string();
        let advice: &[_] = match fault {
            Refusal::ZeroPeriod => &["longer than zero"],
            Refusal::PeriodTooShort => &["MissedTicks::Skip"],
            Refusal::NotRepeating => &["starting", "times", "missed", "Timer::every"],
            _ => &["queue"],
        };
        assert!(advice.iter().all(|advice| said.contains(advice)), "{said}");
    }
    clock.advance(SECOND);
    assert_eq!((engine.queue(0).len(), engine.ledger().accepted), (0, 0));
}

/// The error of a service, as `anyhow::Error` demands it of its sources.
type Any = Box<dyn std::error::Error + Send + Sync>;

/// A payload that can be sent to a thread, and not shared by threads.
type Sent = std::cell::Cell<u32>;

/// `?` takes every refusal, even if what comes back with it is not `Sync`.
fn schedules(engine: &Engine<Sent>, clock: &VirtualClock) -> Result<TimerId, Any> {
    let unstarted = engine.create(Timer::after(MS, Sent::new(7)).rearmable())?;
    let id = unstarted.start()?;
    engine.reschedule(id, 2 * MS)?;
    engine.replace(id, Sent::new(8))?;
    clock.advance(2 * MS);
    engine.queue(0).recv()?.rearm(MS)?;
    engine.schedule(Timer::after(MS, Sent::new(9)))?;
    Ok(id)
}

/// As [`schedules`], with closures.
fn runs(timers: &TaskEngine) -> Result<(), Any> {
    let [a, b, c, d, e] = [(); 5].map(|()| Sent::new(0));
    let add = |cell: Sent| move || cell.set(cell.get() + 1);
    let each = |cell: Sent| move |_| cell.set(cell.get() + 1);
    let id = timers.run_after(MS, add(a))?;
    timers.reschedule(id, 2 * MS)?;
    timers.run_at(timers.now() + MS, add(b))?;
    timers.run_every(MS, each(c))?;
    timers.run(Timer::after(MS, each(d)).named("d"))?;
    timers.run_once(Timer::after(MS, each(e)))?;
    Ok(())
}

#[test]
fn promise_11_a_question_mark_takes_every_refusal() {
    let (engine, clock) = Engine::builder().shards(1).start_virtual().unwrap();
    let (timers, _clock) = TaskEngine::builder().start_virtual().unwrap();
    assert!(schedules(&engine, &clock).is_ok() && runs(&timers).is_ok());
    engine.shutdown();
    timers.shutdown();
    let refused = [schedules(&engine, &clock).map(drop).unwrap_err(), runs(&timers).unwrap_err()];
    for error in refused {
        assert_eq!(error.to_string(), Refusal::ShutDown.to_string());
    }
}
