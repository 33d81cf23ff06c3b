//! Room that is kept for the completions of running jobs when the disk is full.
//!
//! Completing a job writes, because redb copies pages. The store therefore keeps a file of
//! zeros beside its own, deletes it when the disk is full, and accepts new jobs only once the
//! file fits on the disk again.

use std::fs::{self, File};
use std::io::{BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::file::beside;
#[cfg(target_os = "linux")]
use super::file::folder_of;
use super::tables::io;
use crate::store::{Result, StoreError};

/// The pause between two attempts to fill the reserve.
const PAUSE: Duration = Duration::from_millis(500);

pub(super) struct Reserve {
    path: Option<PathBuf>,
    bytes: u64,
    /// The time of the last attempt, while the reserve is given up.
    given_up: Mutex<Option<Instant>>,
}

impl Reserve {
    pub(super) fn beside(store: &Path, bytes: u64) -> Reserve {
        Reserve {
            path: (bytes > 0).then(|| beside(store, ".reserve")),
            bytes,
            given_up: Mutex::new(None),
        }
    }

    pub(super) fn none() -> Reserve {
        Reserve { path: None, bytes: 0, given_up: Mutex::new(None) }
    }

    /// Checks that no file of another program has the reserve's name.
    pub(super) fn check(&self) -> Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let foreign = || Err(StoreError::Foreign(format!("{}", path.display())));
        // To open a pipe is to wait for whoever writes to it.
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return foreign();
        }
        // A crash may have left a part of the zeros.
        let first_other = |file| BufReader::new(file).bytes().find(|byte| !matches!(byte, Ok(0)));
        match File::open(path).map(first_other) {
            Ok(None) => Ok(()),
            Ok(Some(Ok(_))) => foreign(),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Ok(Some(Err(error))) | Err(error) => Err(io(error)),
        }
    }

    /// Writes the file. If the disk is too full for it, new jobs are refused from the
    /// beginning.
    pub(super) fn fill(&self) {
        if !self.write() {
            self.give_up();
        }
    }

    /// Deletes the file, and makes its room the store's.
    pub(super) fn give_up(&self) {
        let mut given_up = self.given_up.lock();
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
            *given_up = Some(Instant::now());
        }
    }

    /// Returns whether the reserve is filled. Tries to fill it from time to time if it is not.
    pub(super) fn is_there_again(&self) -> bool {
        let mut given_up = self.given_up.lock();
        match *given_up {
            None => return true,
            Some(last) if last.elapsed() < PAUSE => return false,
            Some(_) => {}
        }
        *given_up = (!self.write()).then(Instant::now);
        given_up.is_none()
    }

    /// Returns whether the whole file is on the disk. Deletes a part of it.
    fn write(&self) -> bool {
        let Some(path) = &self.path else {
            return true;
        };
        if fs::metadata(path).is_ok_and(|found| found.len() == self.bytes) {
            return true;
        }
        if !has_room_for(path, self.bytes) {
            return false;
        }
        let zeros = vec![0; self.bytes as usize];
        let written = File::create(path).and_then(|mut file| {
            file.write_all(&zeros)?;
            file.sync_all()
        });
        if written.is_err() {
            let _ = fs::remove_file(path);
        }
        written.is_ok()
    }
}

/// Returns whether as much is left beside the reserve as it takes itself: filled to the brim,
/// the disk would refuse the outcomes that the reserve is for. Unknown counts as enough.
#[cfg(target_os = "linux")]
fn has_room_for(path: &Path, bytes: u64) -> bool {
    let free = rustix::fs::statvfs(folder_of(path));
    free.map_or(true, |disk| disk.f_bavail.saturating_mul(disk.f_frsize) / 2 >= bytes)
}

#[cfg(not(target_os = "linux"))]
fn has_room_for(_: &Path, _: u64) -> bool {
    true
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// A reserve for which there is only just room would leave none for outcomes.
    #[test]
    fn durable_14_the_reserve_leaves_room() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs");
        let disk = rustix::fs::statvfs(folder.path()).unwrap();
        let free = disk.f_bavail * disk.f_frsize;
        assert!(!has_room_for(&path, free / 4 * 3) && has_room_for(&path, free / 4));
    }
}
