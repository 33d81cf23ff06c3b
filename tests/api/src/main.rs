//! Writes the listings of the public interfaces anew.

use std::{fs, io};

use tickwheel_api::LIBRARIES;

fn main() -> io::Result<()> {
    for library in LIBRARIES {
        fs::write(library.file(), library.listing()?)?;
    }
    Ok(())
}
