//! A test in a process of its own.

use std::env;
use std::process::Command;

const ALONE: &str = "TICKWHEEL_TEST_ALONE";

/// Tests that each run in a process where nothing else runs.
macro_rules! alone {
    ($($(#[$doc:meta])* fn $name:ident() $body:block)+) => {$(
        $(#[$doc])*
        #[test]
        fn $name() {
            let path = concat!(module_path!(), "::", stringify!($name));
            $crate::alone::in_a_process(path, || $body);
        }
    )+};
}
pub(crate) use alone;

/// Runs the body of the test with this path in a process of its own.
pub(crate) fn in_a_process(path: &str, body: impl FnOnce()) {
    if env::var_os(ALONE).is_some() {
        return body();
    }
    let (_, name) = path.split_once("::").expect("a crate");
    let this = env::current_exe().expect("it runs");
    let child = Command::new(this)
        .args(["--exact", name, "--test-threads=1", "--nocapture"])
        .env(ALONE, "1")
        .output()
        .expect("a process");
    let said = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{name}: {}\n{said}", child.status);
    let ran = String::from_utf8_lossy(&child.stdout);
    assert!(ran.contains("1 passed"), "{name} did not run: {ran}");
}
