//! Lists the public interface of each library, one line an item, from rustdoc's JSON.
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

/// A library whose interface is listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Library {
    /// The name of the package.
    pub package: &'static str,
    /// The name of the library in a program.
    pub name: &'static str,
    /// The file in this folder that holds the listing.
    pub listing: &'static str,
    /// Sets of features from small to large, each with the mark of the lines that it adds.
    features: &'static [(&'static str, &'static str)],
}

const OPTIONAL: (&str, &str) = ("--all-features", "a feature that is off by default");

/// The libraries of the workspace.
pub const LIBRARIES: [Library; 2] = [
    Library {
        package: "tickwheel",
        name: "tickwheel",
        listing: "listing.txt",
        features: &[
            ("--no-default-features", ""),
            ("--features=default", "std"),
            OPTIONAL,
        ],
    },
    Library {
        package: "tickwheel-durable",
        name: "tickwheel_durable",
        listing: "durable.txt",
        features: &[("--no-default-features", ""), OPTIONAL],
    },
];

/// Returns the root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

impl Library {
    /// Returns the file that holds the listing.
    #[must_use]
    pub fn file(self) -> PathBuf {
        root().join("tests/api").join(self.listing)
    }

    /// Returns the public items with all features, by path.
    ///
    /// # Errors
    /// Fails if rustdoc fails, or writes what this program cannot read.
    pub fn items(self) -> io::Result<Lines> {
        self.items_with(OPTIONAL.0)
    }

    /// Returns the listing: the lines of each item, marked in brackets by the features that
    /// they need.
    ///
    /// # Errors
    /// Fails if rustdoc fails, or writes what this program cannot read.
    pub fn listing(self) -> io::Result<String> {
        let mut marks = BTreeMap::new();
        for &(features, mark) in self.features {
            for (path, lines) in self.items_with(features)? {
                let lines = lines.into_iter().map(|line| (path.clone(), line));
                lines.for_each(|line| _ = marks.entry(line).or_insert(mark));
            }
        }
        Ok(print(&marks))
    }

    fn items_with(self, features: &str) -> io::Result<Lines> {
        Interface::new(&root(), self.name, self.json(features)?).map(Interface::lines)
    }

    /// Returns what rustdoc writes for the library. Its JSON is unstable, which the compilers
    /// of every channel accept from a program that sets `RUSTC_BOOTSTRAP`. Only rustdoc sees
    /// it, so the dependencies are compiled as for any other check.
    ///
    /// All features share a file. Therefore one thread at a time writes and reads it, and a new
    /// flag each time keeps cargo from taking the file of other features for a current one.
    fn json(self, features: &str) -> io::Result<serde_json::Value> {
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock();
        let root = root();
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .args(["rustdoc", "--quiet", "-p", self.package, "--lib", features])
            .args(["--target-dir", "target", "--", "-Zunstable-options"])
            .args(["--output-format=json", "--cap-lints=allow"])
            .arg(format!("--cfg=at_{}", now.as_nanos()))
            .env("RUSTDOC", root.join("tests/api/rustdoc"))
            .current_dir(&root)
            .status()?;
        if !status.success() {
            return Err(io::Error::other("rustdoc failed"));
        }
        let text = fs::read(root.join(format!("target/doc/{}.json", self.name)))?;
        Ok(serde_json::from_slice(&text)?)
    }
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
