//! Sleeping on a waitable timer, on Windows.
//!
//! Windows ends the wait for a condition variable at an interrupt of its clock, which
//! comes 64 times a second. A timer of high resolution, which Windows has had since its
//! version 10 of 2018, is free of that. Whoever sets the timer anew moves the end of a
//! wait that has begun, as with a timerfd, so a call of the ticker needs no event beside
//! the timer.
//!
//! The due time is relative: an absolute one follows the wall clock, which can be set,
//! and timers of high resolution have none. The functions are declared here, because a
//! crate that declares all of Windows would cost more to build than this crate.

use core::ffi::c_void;
use core::ptr;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle, RawHandle};

use crate::clock::system::{SystemClock, due_time};
use crate::timeline::Time;

pub(crate) struct WaitableTimer {
    handle: OwnedHandle,
    clock: SystemClock,
}

const CREATE_WAITABLE_TIMER_HIGH_RESOLUTION: u32 = 2;
const TIMER_ALL_ACCESS: u32 = 0x1F_0003;
const INFINITE: u32 = u32::MAX;

#[link(name = "kernel32")]
unsafe extern "system" {
    fn CreateWaitableTimerExW(
        attributes: *const c_void,
        name: *const u16,
        flags: u32,
        access: u32,
    ) -> RawHandle;

    fn SetWaitableTimer(
        timer: RawHandle,
        due_time: *const i64,
        period: i32,
        routine: *const c_void,
        argument: *const c_void,
        resume: i32,
    ) -> i32;

    fn WaitForSingleObject(object: RawHandle, millis: u32) -> u32;
}

impl WaitableTimer {
    pub(crate) const NAME: &str = "waitable timer";

    /// Returns `None` if this Windows has no timers of high resolution: any other is no
    /// better than a condition variable.
    pub(crate) fn for_ticker(clock: SystemClock) -> io::Result<Option<WaitableTimer>> {
        let flags = CREATE_WAITABLE_TIMER_HIGH_RESOLUTION;
        // SAFETY: null pointers decline attributes and a name.
        let handle =
            unsafe { CreateWaitableTimerExW(ptr::null(), ptr::null(), flags, TIMER_ALL_ACCESS) };
        if handle.is_null() {
            return Ok(None);
        }
        // SAFETY: the handle was just created and has no other owner.
        let handle = unsafe { OwnedHandle::from_raw_handle(handle) };
        Ok(Some(WaitableTimer { handle, clock }))
    }

    /// A caller's own loop computes its limit with `Driver::timeout`.
    pub(crate) fn for_caller(_: SystemClock) -> io::Result<Option<WaitableTimer>> {
        Ok(None)
    }

    /// Wakes the sleeper at `time`, which is centuries away if it never comes. If `time` has
    /// passed, wakes the sleeper at once.
    pub(crate) fn set(&self, time: Time) {
        let due_time = due_time(time - Time::from_nanos(self.clock.nanos()));
        let timer = self.handle.as_raw_handle();
        // SAFETY: the handle is a timer, the due time is valid for reads, and no
        // routine is called.
        let done = unsafe { SetWaitableTimer(timer, &due_time, 0, ptr::null(), ptr::null(), 0) };
        debug_assert_ne!(done, 0, "{}", io::Error::last_os_error());
    }

    /// Waits for the time that was set last.
    pub(crate) fn wait(&self) {
        // SAFETY: the handle is a timer. The result does not matter, because the caller
        // reads the clock in any case.
        let _ = unsafe { WaitForSingleObject(self.handle.as_raw_handle(), INFINITE) };
    }
}
