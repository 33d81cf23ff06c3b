//! Files that a command writes and a test compares.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::{frames, pictures};

/// A file and its text.
#[derive(Clone, Debug)]
pub struct Record {
    /// The path within the repository.
    pub path: PathBuf,
    /// The text that the file is to have.
    pub text: String,
}

impl Record {
    fn full_path(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(&self.path)
    }

    /// Writes the file.
    ///
    /// # Errors
    /// Returns an error of the file system.
    pub fn write(&self) -> io::Result<()> {
        let path = self.full_path();
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, &self.text)
    }

    /// Returns whether the file has this text.
    #[must_use]
    pub fn is_current(&self) -> bool {
        fs::read_to_string(self.full_path()).is_ok_and(|text| text == self.text)
    }
}

/// Returns the recorded frames of the terminal.
#[must_use]
pub fn all_frames() -> Vec<Record> {
    let record = |(name, text): (&str, String)| Record {
        path: format!("examples/see/frames/{name}.txt").into(),
        text,
    };
    frames::all().into_iter().map(record).collect()
}

/// Returns the pictures of the documentation.
#[must_use]
pub fn all_pictures() -> Vec<Record> {
    let record = |(name, text): (&str, String)| Record {
        path: format!("docs/pictures/{name}.svg").into(),
        text,
    };
    pictures::all().into_iter().map(record).collect()
}
