//! A window on an engine of its own.

use tickwheel::VirtualClock;

use super::*;

fn at(secs: u64) -> WallTime {
    WallTime::from_unix_micros(secs * 1_000_000)
}

fn job(number: u64, version: u64, due: u64) -> DueJob {
    let id = JobId::new(at(0), number);
    DueJob { id, version, due: at(due), is_interrupted: false, kind: Some(0) }
}

fn read(jobs: &[DueJob], most: usize) -> Due {
    Due::first(jobs.to_vec(), most)
}

/// A window of 10 s and three jobs, loaded at 100 s from an empty store.
fn window() -> Window {
    window_and_clock().0
}

fn window_and_clock() -> (Window, VirtualClock) {
    let (engine, clock) = Engine::builder().start_virtual().unwrap();
    let mut window = Window::new(engine, 0, Duration::from_secs(10), 3, usize::MAX);
    let (horizon, most) = window.begin_load(at(100));
    assert_eq!((horizon, most), (at(110), 3));
    window.end_load(&read(&[], most), at(100));
    (window, clock)
}

fn fires(window: &mut Window, job: DueJob, now: u64) -> bool {
    let DueJob { id, version, .. } = job;
    window.fire(Aimed { id, version }, at(now)).is_some()
}

#[test]
fn a_job_before_the_horizon_is_armed() {
    let mut window = window();
    window.place(job(1, 1, 109), at(100));
    window.place(job(2, 1, 110), at(100));
    assert_eq!(window.armed(), 1);
    assert!(!window.wants_load(at(104)));
    assert!(window.wants_load(at(105)));
}

#[test]
fn an_older_version_changes_nothing() {
    let mut window = window();
    window.place(job(1, 2, 105), at(100));
    window.end_load(&read(&[job(1, 1, 103)], 3), at(100));
    assert!(!fires(&mut window, job(1, 1, 103), 106));
    assert!(fires(&mut window, job(1, 2, 105), 106));
    // While it runs, a load does not arm it again.
    window.end_load(&read(&[job(1, 2, 105)], 3), at(100));
    assert_eq!((window.armed(), window.running()), (0, 1));
}

#[test]
fn a_job_that_moves_away_is_disarmed() {
    let mut window = window();
    window.place(job(1, 1, 105), at(100));
    window.place(job(1, 2, 500), at(100));
    assert_eq!(window.armed(), 0);
    assert!(!fires(&mut window, job(1, 1, 105), 106));
}

#[test]
fn a_job_that_is_early_by_the_wall_clock_is_aimed_anew() {
    let mut window = window();
    window.place(job(1, 1, 105), at(100));
    assert!(!fires(&mut window, job(1, 1, 105), 104));
    assert_eq!(window.armed(), 1);
    assert!(fires(&mut window, job(1, 1, 105), 105));
}

/// The furthest job leaves a full window, and the horizon says so.
#[test]
fn durable_09_a_full_window_lowers_its_horizon() {
    let mut window = window();
    for (number, due) in [(1, 103), (2, 105), (3, 107)] {
        window.place(job(number, 1, due), at(100));
    }
    window.place(job(4, 1, 104), at(100));
    assert_eq!((window.armed(), window.horizon()), (3, at(107)));
    window.place(job(5, 1, 106), at(100));
    assert_eq!((window.armed(), window.horizon()), (3, at(106)));
    assert_eq!(window.look_again(at(105)), WallTime::MAX);
    // A cut window loads again once half of its jobs are used up.
    assert!(!window.wants_load(at(105)));
    for (number, due) in [(1, 103), (4, 104)] {
        assert!(fires(&mut window, job(number, 1, due), 105));
    }
    assert!(window.wants_load(at(105)));
}

/// While a load reads, jobs come and go in a full window. What it has read behind the new
/// horizon would fill the window, and the missing job before it would come late.
#[test]
fn durable_09_a_load_arms_nothing_behind_a_horizon_that_has_fallen() {
    let mut window = Window { most: 4, ..window() };
    let (_, most) = window.begin_load(at(100));
    for (number, due) in [(1, 107), (2, 101), (3, 102), (4, 103), (5, 104)] {
        window.place(job(number, 1, due), at(100));
    }
    assert_eq!((window.armed(), window.horizon()), (4, at(107)));
    for (number, due) in [(2, 101), (3, 102), (4, 103)] {
        assert!(fires(&mut window, job(number, 1, due), 103));
    }
    let found = [6, 7, 8].map(|number| job(number, 1, 109));
    window.end_load(&read(&found, most), at(103));
    assert_eq!(window.armed(), 1);
    assert!(window.wants_load(at(103)), "job 1 is missing");
}

/// The jobs of a cut window are due by its horizon, and so are those that it had before.
#[test]
fn durable_09_jobs_behind_a_cut_leave_the_window() {
    let mut window = window();
    for number in 1..=2 {
        window.place(job(number, 1, 109), at(100));
    }
    window.forget_horizon();
    let (_, most) = window.begin_load(at(100));
    for number in 3..=5 {
        window.place(job(number, 1, 100), at(100));
        assert!(fires(&mut window, job(number, 1, 100), 100));
    }
    let found = [3, 4, 5].map(|number| job(number, 1, 100));
    window.end_load(&read(&found, most), at(100));
    assert_eq!((window.armed(), window.horizon()), (0, at(100)));
    assert!(window.wants_load(at(100)));
}

/// Another load was asked for while one was on its way.
#[test]
fn a_horizon_that_was_forgotten_stays_so() {
    let mut window = window();
    let (_, most) = window.begin_load(at(100));
    window.forget_horizon();
    let found = [1, 2, 3].map(|number| job(number, 1, 105));
    window.end_load(&read(&found, most), at(100));
    assert!(window.wants_load(at(100)));
}

/// A change that was committed shows that the job can be carried out; an hour later it may be.
#[test]
fn durable_14_a_job_that_was_set_aside_comes_back() {
    let (mut window, clock) = window_and_clock();
    window.set_job_aside(job(1, 1, 105).id);
    let (_, most) = window.begin_load(at(100));
    assert_eq!(most, 4, "it is read, too");
    window.end_load(&read(&[job(1, 1, 105)], most), at(100));
    assert_eq!((window.armed(), window.set_aside()), (0, 1));
    window.place(job(1, 2, 105), at(100));
    assert_eq!((window.armed(), window.set_aside()), (1, 0));
    window.set_job_aside(job(1, 2, 105).id);
    clock.advance(Duration::from_secs(3_600));
    window.end_load(&read(&[job(1, 2, 105)], most), at(100));
    assert_eq!((window.armed(), window.set_aside()), (1, 0));
}

/// Otherwise a full window would not load again before these are due.
#[test]
fn jobs_behind_the_horizon_leave_after_a_step_back() {
    let mut window = window();
    for number in 1..=3 {
        window.place(job(number, 1, 109), at(100));
    }
    let (horizon, most) = window.begin_load(at(50));
    assert_eq!((horizon, window.armed()), (at(60), 0));
    window.end_load(&read(&[job(4, 1, 55)], most), at(50));
    assert!(fires(&mut window, job(4, 1, 55), 55));
    assert!(window.wants_load(at(55)));
}

/// More jobs than the window holds may be due at one time.
#[test]
fn jobs_of_one_due_time_come_in_parts() {
    let mut window = window();
    let all: Vec<_> = (1..=5).map(|number| job(number, 1, 105)).collect();
    window.begin_load(at(100));
    window.end_load(&read(&all[..3], 3), at(100));
    assert_eq!((window.armed(), window.horizon()), (3, at(105)));
    for job in &all[..3] {
        assert!(fires(&mut window, *job, 105));
    }
    let (_, most) = window.begin_load(at(105));
    assert_eq!(most, 6, "those that run are read again");
    window.end_load(&read(&all, most), at(105));
    assert_eq!((window.armed(), window.running()), (2, 3));
}
