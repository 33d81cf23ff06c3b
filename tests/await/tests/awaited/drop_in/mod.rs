//! A program that was written for `tokio::time` runs on `tickwheel::time` with nothing
//! changed but the `use` line, and behaves the same. It is compiled twice.
//!
//! Time is real. The program asserts orders and lower bounds.

// The file is a module of both.
#![allow(clippy::duplicate_mod)]

#[path = "."]
mod on_tokio {
    pub use tokio::time;

    #[path = "program.rs"]
    pub mod program;
}

#[path = "."]
mod on_tickwheel {
    pub use tickwheel::time;

    #[path = "program.rs"]
    pub mod program;
}

/// Runs a part of the program on both, and asserts that both report the same.
macro_rules! same {
    ($main:ident ($($argument:expr),*), $expected:expr) => {
        assert_eq!(on_tokio::program::$main($($argument),*).await, $expected, "on tokio");
        assert_eq!(on_tickwheel::program::$main($($argument),*).await, $expected);
    };
}

/// A client with a limit for each try, growing pauses between them, and a deadline.
#[tokio::test]
async fn p1_a_retrying_client() {
    let (silent, refused) = ("deadline has elapsed", "connection refused");
    let server = &["silence", "refusal", "silence", "answer"];
    same!(fetches(server), [silent, refused, silent, "answered"]);
    same!(fetches(&[]), [silent, silent, silent, silent, "gave up"]);
    same!(fails_in_other_ways(), ["TimedOut", "true"]);
}

/// Calls and types that programs use, one by one.
#[tokio::test]
async fn p4_the_usual_idioms() {
    same!(sleeps(), [true; 4]);
    same!(limits(), "TimedOut Ok(Ok(7)) true Ok(Ok(8)) true Some(9)");
    same!(intervals(), "2ms 2ms true true true");
}
