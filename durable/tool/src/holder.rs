//! Which process has a file open.

#[cfg(target_os = "linux")]
use std::fs;
use std::path::Path;

/// Returns the processes that hold a lock of the file, with their names, for a message. Empty
/// where the system does not say.
#[cfg(target_os = "linux")]
pub(crate) fn holders(path: &Path) -> String {
    use std::os::unix::fs::MetadataExt;

    let (Ok(found), Ok(path)) = (fs::metadata(path), path.canonicalize()) else {
        return String::new();
    };
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let pids = locks.lines().filter_map(|line| pid_of(line, found.ino()));
    let names: Vec<String> = pids.filter(|pid| has_open(*pid, &path)).map(named).collect();
    names.join(", ")
}

/// Returns whether a process has the file open, as far as the system says: files of two devices
/// may have one number.
#[cfg(target_os = "linux")]
fn has_open(pid: u32, path: &Path) -> bool {
    let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return true;
    };
    let links = open.flatten().map(|entry| fs::read_link(entry.path()));
    links.flatten().any(|link| link == path)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn holders(_: &Path) -> String {
    String::new()
}

/// Returns the process of a line such as `1: FLOCK ADVISORY WRITE 708 08:01:42 0 EOF`, if it
/// locks a file with this number.
#[cfg(target_os = "linux")]
fn pid_of(line: &str, inode: u64) -> Option<u32> {
    let mut fields = line.split_whitespace().skip(4);
    let pid = fields.next()?.parse().ok()?;
    let file = fields.next()?;
    let is_this = file.rsplit(':').next()?.parse() == Ok(inode);
    is_this.then_some(pid)
}

#[cfg(target_os = "linux")]
fn named(pid: u32) -> String {
    match fs::read_to_string(format!("/proc/{pid}/comm")) {
        Ok(name) => format!("process {pid} ({})", name.trim_end()),
        Err(_) => format!("process {pid}"),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_lock_names_its_process() {
        let line = "1: FLOCK  ADVISORY  WRITE 708 08:01:42 0 EOF";
        assert_eq!((pid_of(line, 42), pid_of(line, 43)), (Some(708), None));
        assert_eq!(pid_of("", 42), None);
    }
}
