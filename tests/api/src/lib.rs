//! Lists the public interface of the library, one line an item, from rustdoc's JSON.
//!
//! The JSON says which items are public, by which paths users reach them, and which traits
//! they implement. A line itself is the item's text in the source, because rustdoc's form
//! of types changes with nearly every compiler.

mod item;
mod source;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::SystemTime;
use std::{env, fs, io};

use item::Interface;
pub use item::{Line, Lines};

/// Sets of features from small to large, each with the mark of the lines that it adds.
const FEATURES: [(&str, &str); 3] = [
    ("--no-default-features", ""),
    ("--features=default", "std"),
    ("--all-features", "a feature that is off by default"),
];

/// Returns the root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the file that holds the listing.
#[must_use]
pub fn file() -> PathBuf {
    root().join("tests/api/listing.txt")
}

/// Returns the public items with all features, by path.
///
/// # Errors
/// Fails if rustdoc fails, or writes what this program cannot read.
pub fn items() -> io::Result<Lines> {
    Interface::new(&root(), json("--all-features")?).map(Interface::lines)
}

/// Returns the listing: the lines of each item, marked in brackets by the features that
/// they need.
///
/// # Errors
/// Fails if rustdoc fails, or writes what this program cannot read.
pub fn listing() -> io::Result<String> {
    let mut marks = BTreeMap::new();
    for (features, mark) in FEATURES {
        let lines = Interface::new(&root(), json(features)?)?.lines();
        for (path, lines) in lines {
            let lines = lines.into_iter().map(|line| (path.clone(), line));
            lines.for_each(|line| _ = marks.entry(line).or_insert(mark));
        }
    }
    Ok(print(&marks))
}

/// Prints the lines, sorted. An item's mark counts for all its lines, and its traits share
/// a line.
fn print(marks: &BTreeMap<(String, Line), &'static str>) -> String {
    let mut text = String::new();
    let (mut item, mut traits) = (("", ""), false);
    for ((path, line), &mark) in marks {
        if path.as_str() != item.0 {
            (item, traits) = ((path.as_str(), mark), false);
            text += &format!("\n\n{path}{}", note(mark));
        }
        let mark = if mark == item.1 { "" } else { mark };
        let is_trait = matches!(line, Line::Trait(_));
        let before = match (traits, is_trait) {
            (true, _) => ", ",
            (false, true) => "\n    is ",
            (false, false) => "\n    ",
        };
        text += &format!("{before}{line}{}", note(mark));
        traits = is_trait;
    }
    text.trim_start().to_owned() + "\n"
}

fn note(mark: &str) -> String {
    match mark {
        "" => String::new(),
        _ => format!(" [{mark}]"),
    }
}

/// Returns what rustdoc writes for the library. Its JSON is unstable, which the compilers
/// of every channel accept from a program that sets `RUSTC_BOOTSTRAP`. Only rustdoc sees
/// it, so the dependencies are compiled as for any other check.
///
/// All features share a file. Therefore one thread at a time writes and reads it, and a new
/// flag each time keeps cargo from taking the file of other features for a current one.
fn json(features: &str) -> io::Result<serde_json::Value> {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock();
    let root = root();
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["rustdoc", "--quiet", "-p", "tickwheel", "--lib", features])
        .args(["--target-dir", "target", "--", "-Zunstable-options"])
        .args(["--output-format=json", "--cap-lints=allow"])
        .arg(format!("--cfg=at_{}", now.as_nanos()))
        .env("RUSTDOC", root.join("tests/api/rustdoc"))
        .current_dir(&root)
        .status()?;
    if !status.success() {
        return Err(io::Error::other("rustdoc failed"));
    }
    let text = fs::read(root.join("target/doc/tickwheel.json"))?;
    Ok(serde_json::from_slice(&text)?)
}
