//! Programs that were written for `tokio::time` run on `tickwheel::time` with nothing
//! changed but the `use` line, and behave the same. Each is compiled twice: `on_tokio` and
//! `on_tickwheel` differ in that line only.
//!
//! Time is real. The programs assert orders and lower bounds.

// The files below are modules of both.
#![allow(clippy::duplicate_mod)]

mod on_tickwheel;
mod on_tokio;

use std::time::{Duration, Instant};

/// Runs a program on both, and asserts that both report the same.
macro_rules! same {
    ($program:ident :: $main:ident ($($argument:expr),*), $expected:expr) => {{
        let on_tokio = on_tokio::$program::$main($($argument),*);
        let on_tickwheel = on_tickwheel::$program::$main($($argument),*);
        let (on_tokio, on_tickwheel) = tokio::join!(on_tokio, on_tickwheel);
        assert_eq!(on_tokio, $expected, "on tokio");
        assert_eq!(on_tickwheel, $expected, "on tickwheel");
    }};
}

/// A client with a limit for each try, growing pauses between them, and a deadline.
#[tokio::test]
async fn p1_a_retrying_client() {
    let begin = Instant::now();
    let (silent, refused) = ("too slow: deadline has elapsed", "connection refused");
    let server = &["silence", "refusal", "silence", "answer"];
    same!(
        client::fetches(server),
        [silent, refused, silent, "answered"]
    );
    // Two tries of 20 ms, and pauses of 5, 10 and 20 ms.
    assert!(begin.elapsed() >= Duration::from_millis(75));

    same!(
        client::fetches(&[]),
        [silent, silent, silent, silent, "gave up"]
    );
    same!(client::fails_in_other_ways(), ["TimedOut", "true"]);
    same!(client::fetches_by_a_deadline(&[]), ["late: true"]);
    same!(
        client::fetches_by_a_deadline(&["refusal", "answer"]),
        ["answered"]
    );
}

/// A server that pings its clients and closes idle connections.
#[tokio::test]
async fn p2_a_server_with_heartbeats() {
    let log = ["ping 1", "pong", "ping 2", "pong", "ping 3", "pong", "idle"];
    same!(heartbeat::serves(3), log);
    same!(heartbeat::beats_of_a_connection(), 4);
}

/// Ticks that are missed.
#[tokio::test]
async fn p2_a_thread_that_misses_ticks() {
    use tickwheel::time::MissedTickBehavior as Ours;
    use tokio::time::MissedTickBehavior as Theirs;

    for burst in [
        on_tokio::heartbeat::distances(Theirs::Burst).await,
        on_tickwheel::heartbeat::distances(Ours::Burst).await,
    ] {
        assert_eq!(burst, [1.0; 3]);
    }
    for skip in [
        on_tokio::heartbeat::distances(Theirs::Skip).await,
        on_tickwheel::heartbeat::distances(Ours::Skip).await,
    ] {
        assert!(
            skip.iter().all(|distance| distance.fract() == 0.0),
            "{skip:?}"
        );
        assert!(skip[2] >= 2.0, "{skip:?}");
    }
    for delay in [
        on_tokio::heartbeat::distances(Theirs::Delay).await,
        on_tickwheel::heartbeat::distances(Ours::Delay).await,
    ] {
        assert!(delay.iter().all(|&distance| distance >= 1.0), "{delay:?}");
        assert!(delay[2] >= 2.5, "{delay:?}");
    }
}

/// Workers with a limit of their rate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p3_a_rate_limited_pool() {
    let elapsed = |job| format!("{job}: deadline has elapsed");
    let done = |job| format!("{job} done");
    let lines = vec![done(0), done(1), elapsed(2), done(3), done(4), elapsed(5)];
    same!(pool::works(6), (lines.clone(), true));
}

/// Calls and types that programs use, one by one.
#[tokio::test]
async fn p4_the_usual_idioms() {
    same!(idioms::sleeps(), [true; 4]);
    let limits = [
        "deadline has elapsed",
        "TimedOut",
        "Ok(Ok(7))",
        "true",
        "8",
        "true",
        "None",
        "Some(9)",
    ];
    same!(idioms::limits(), limits);
    let intervals = [
        "burst", "burst", "skip", "delay", "burst", "2ms", "2ms", "true", "true",
    ];
    same!(idioms::intervals(), intervals);
    same!(idioms::types(), [true; 3]);
}
