//! A memory barrier on every running thread of the process at once, which
//! makes the barriers of a fast path unnecessary.

/// Whether [`barrier`] works here. Asks the system once.
#[cfg(target_os = "linux")]
pub(super) fn is_available() -> bool {
    use std::sync::OnceLock;
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    *REGISTERED.get_or_init(|| membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
}

/// When this returns, every other thread of the process has passed a full
/// memory barrier since it was called.
#[cfg(target_os = "linux")]
pub(super) fn barrier() {
    let done = membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    assert!(done, "membarrier was available and is no more");
}

#[cfg(target_os = "linux")]
fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: the call takes no pointers.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn is_available() -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
pub(super) fn barrier() {
    unreachable!("nothing is biased where there is no such barrier");
}
