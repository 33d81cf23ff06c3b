//! Writes the listing of the public interface anew.

use std::{fs, io};

fn main() -> io::Result<()> {
    fs::write(tickwheel_api::file(), tickwheel_api::listing()?)
}
