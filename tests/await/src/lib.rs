//! Awaited timers on real runtimes. The tests are in `tests`.
