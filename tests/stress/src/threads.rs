//! The threads of this process, as the system sees them.

use std::fs;

/// What the engine calls the thread that moves its time.
pub const TICKER: &str = "tickwheel-tick";

pub fn all() -> Vec<i32> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten();
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    tasks.flatten().filter_map(number).collect()
}

pub fn tickers() -> Vec<i32> {
    let is_ticker = |thread: &i32| {
        let name = fs::read_to_string(format!("/proc/self/task/{thread}/comm"));
        name.is_ok_and(|name| name.trim_end() == TICKER)
    };
    all().into_iter().filter(is_ticker).collect()
}

/// How long a thread ran, and how long it waited for a processor, in
/// nanoseconds.
pub fn ran_and_waited(thread: i32) -> Option<(u64, u64)> {
    let stat = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    let mut numbers = stat.split(' ').map_while(|number| number.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

/// The thread that calls.
pub fn this() -> i32 {
    // SAFETY: the call has no arguments and always succeeds.
    unsafe { libc::gettid() }
}

/// From now on the signal that `nudge` sends interrupts and does nothing else.
pub fn ignore_nudges() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: all zeros is a valid sigaction, without SA_RESTART; the handler
    // touches nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
    }
}

/// Interrupts whatever system call a thread of this process is in.
pub fn nudge(thread: i32) {
    // SAFETY: no pointers; a thread that has ended is an error that concerns
    // nobody.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGUSR1) };
}

/// Lets a thread run only when nobody else wants to.
pub fn starve(thread: i32) {
    let lowest = libc::sched_param { sched_priority: 0 };
    // SAFETY: the pointer is valid for the call; a thread that has ended is an
    // error that concerns nobody.
    unsafe { libc::sched_setscheduler(thread, libc::SCHED_IDLE, &lowest) };
}

/// From now on the calling thread takes no processor from another when it
/// wakes: it runs after the thread that runs there.
pub fn wake_politely() {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: the pointer is valid for the call, which may always be made for
    // the thread itself.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &none) };
}
