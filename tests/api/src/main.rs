//! Writes the listings of the public interfaces anew; its tests say whether they are current.
//!
//! rustdoc's JSON says which items are public, by which paths users reach them, and which traits
//! they implement. A line itself is the item's text in the source, because rustdoc's form of
//! types changes with nearly every compiler.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::time::SystemTime;
use std::{env, fs, io};

use serde_json::Value;

/// A package, the file of its listing, and sets of features from small to large, each with the
/// mark of the lines that it adds.
type Library = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const ALL: (&str, &str) = ("--all-features", " [a feature that is off by default]");
const DEFAULT: (&str, &str) = ("--features=default", " [std]");
const NONE: (&str, &str) = ("--no-default-features", "");
const LIBRARIES: [Library; 2] = [
    ("tickwheel", "tests/api/listing.txt", &[NONE, DEFAULT, ALL]),
    ("tickwheel-durable", "tests/api/durable.txt", &[NONE, ALL]),
];

/// The traits that nobody writes and users can name. Compilers add others of their own.
const AUTOMATIC: [&str; 5] = ["Send", "Sync", "Unpin", "UnwindSafe", "RefUnwindSafe"];

fn main() -> io::Result<()> {
    for library in LIBRARIES {
        fs::write(root().join(library.1), listing(library)?)?;
    }
    Ok(())
}

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn listing((package, _, sets): Library) -> io::Result<String> {
    let mut marks = BTreeMap::new();
    for &(features, mark) in sets {
        let mut json = rustdoc(package, features)?;
        let lines = BTreeSet::new();
        let mut interface = Interface {
            index: json["index"].take(),
            lines,
        };
        let module = interface.item(&json["root"]);
        interface.list(&package.replace('-', "_"), &module)?;
        interface
            .lines
            .into_iter()
            .for_each(|line| _ = marks.entry(line).or_insert(mark));
    }
    Ok(marks
        .iter()
        .map(|(line, mark)| format!("{line}{mark}\n"))
        .collect())
}

/// Returns what rustdoc writes for a package. Its JSON is unstable, which the script allows. A
/// new flag each time keeps cargo from taking the file of other features for a current one.
fn rustdoc(package: &str, features: &str) -> io::Result<Value> {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let status = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()))
        .args([
            "rustdoc",
            "--quiet",
            "-p",
            package,
            "--lib",
            features,
            "--target-dir=target",
        ])
        .args([
            "--",
            "-Zunstable-options",
            "--output-format=json",
            "--cap-lints=allow",
        ])
        .arg(format!("--cfg=at_{}", now.as_nanos()))
        .env("RUSTDOC", root().join("tests/api/rustdoc"))
        .current_dir(root())
        .status()?;
    assert!(status.success(), "rustdoc failed");
    let name = package.replace('-', "_");
    let text = fs::read(root().join(format!("target/doc/{name}.json")))?;
    Ok(serde_json::from_slice(&text)?)
}

struct Interface {
    index: Value,
    lines: BTreeSet<String>,
}

impl Interface {
    /// Returns the item with this id, or null if it belongs to another crate.
    fn item(&self, id: &Value) -> Value {
        self.index[id.to_string()].clone()
    }

    fn items(&self, ids: &Value) -> Vec<Value> {
        ids.as_array()
            .into_iter()
            .flatten()
            .map(|id| self.item(id))
            .collect()
    }

    /// Lists the item that users reach by `path`, and all in it.
    fn list(&mut self, path: &str, item: &Value) -> io::Result<()> {
        let (kind, inner) = kind(item);
        if kind == "use" {
            let used = self.item(&inner["id"]);
            return match inner["source"].as_str() {
                Some(source) if used["crate_id"] != 0 => {
                    self.add(path, item, &format!("pub use {source}"));
                    Ok(())
                }
                _ => self.list(path, &used),
            };
        }
        let text = text(item)?;
        let members = [
            &inner["kind"]["plain"]["fields"],
            &inner["variants"],
            &inner["items"],
        ];
        let members: Vec<Value> = members
            .into_iter()
            .flat_map(|ids| self.items(ids))
            .collect();
        match kind {
            "module" => {
                self.add(path, item, "pub mod");
                for member in members
                    .iter()
                    .filter(|member| member["visibility"] == "public")
                {
                    let (_, inner) = self::kind(member);
                    let name = inner["name"].as_str().or(member["name"].as_str());
                    self.list(&format!("{path}::{}", name.unwrap_or_default()), member)?;
                }
                return Ok(());
            }
            // Fields that users cannot name are no part of the interface.
            "struct" if !text.contains("(pub ") => {
                let head = head(&text).split('(').next().unwrap_or_default();
                let is_open = inner["kind"]["plain"]["has_stripped_fields"] != true;
                let note = if is_open { "" } else { " with private fields" };
                self.add(path, item, &format!("{head}{note}"));
            }
            _ => self.add(path, item, head(&text)),
        }
        for member in members.iter().filter(|member| !member.is_null()) {
            self.member(path, "", member)?;
        }
        self.impls(path, &inner["impls"])
    }

    /// Adds a line, with the attributes that users notice.
    fn add(&mut self, path: &str, item: &Value, line: &str) {
        let attributes = item["attrs"].to_string();
        let noticed = ["must_use", "non_exhaustive", "deprecated"].into_iter();
        let noticed = noticed.filter(|name| attributes.contains(name));
        let noticed: String = noticed.map(|name| format!("#[{name}] ")).collect();
        self.lines.insert(format!("{path}: {noticed}{line}"));
    }

    fn member(&mut self, path: &str, within: &str, member: &Value) -> io::Result<()> {
        let text = text(member)?;
        let line = match kind(member).0 {
            "variant" | "struct_field" => text.trim_end_matches(','),
            _ => head(&text),
        };
        self.add(path, member, &format!("{within}{line}"));
        Ok(())
    }

    /// Lists the functions of a type, and the traits that it implements; those that are derived
    /// or automatic share a line.
    fn impls(&mut self, path: &str, impls: &Value) -> io::Result<()> {
        let mut derived = BTreeSet::new();
        for block in self.items(impls) {
            let inner = &block["inner"]["impl"];
            if !inner["blanket_impl"].is_null() {
                continue; // every type has it
            }
            let (text, name) = (text(&block)?, inner["trait"]["path"].as_str());
            let is_automatic = inner["is_synthetic"] == true;
            match name {
                Some("StructuralPartialEq") => continue,
                Some(name) if is_automatic && !AUTOMATIC.contains(&name) => continue,
                Some(name) if is_automatic || !text.starts_with("impl") => {
                    let sign = if inner["is_negative"] == true {
                        "!"
                    } else {
                        ""
                    };
                    derived.insert(format!("{sign}{name}"));
                }
                Some(_) => self.add(path, &Value::Null, head(&text)),
                None => {}
            }
            for member in self.items(&inner["items"]) {
                let of_trait = name.is_some() && kind(&member).0 == "assoc_type";
                if of_trait || member["visibility"] == "public" {
                    self.member(path, &format!("{}: ", head(&text)), &member)?;
                }
            }
        }
        if !derived.is_empty() {
            let derived = Vec::from_iter(derived).join(", ");
            self.add(path, &Value::Null, &format!("is {derived}"));
        }
        Ok(())
    }
}

/// Returns the kind of an item, and what rustdoc knows of this kind.
fn kind(item: &Value) -> (&str, &Value) {
    let inner = item["inner"]
        .as_object()
        .and_then(|inner| inner.iter().next());
    inner.map_or(("", &Value::Null), |(kind, inner)| (kind, inner))
}

/// Returns the lines of an item in the source as one line, without comments, attributes and what
/// rustfmt's line breaks add.
fn text(item: &Value) -> io::Result<String> {
    let span = &item["span"];
    let Some(name) = span["filename"].as_str() else {
        return Ok(String::new());
    };
    let line = |end: &str| span[end][0].as_u64().unwrap_or(1) as usize;
    let source = fs::read_to_string(root().join(name))?;
    let lines = source
        .lines()
        .take(line("end"))
        .skip(line("begin") - 1)
        .map(str::trim);
    let code = lines.filter(|line| !line.starts_with("//") && !line.starts_with("#["));
    let text = code
        .flat_map(str::split_whitespace)
        .collect::<Vec<_>>()
        .join(" ");
    let tidy = [
        ("( ", "("),
        (", )", ")"),
        ("(mut ", "("),
        (", mut ", ", "),
        ("< ", "<"),
        (", >", ">"),
    ];
    Ok(tidy
        .into_iter()
        .fold(text, |text, (from, to)| text.replace(from, to)))
}

/// Returns the text before a body.
fn head(text: &str) -> &str {
    let end = text.find(['{', ';']).unwrap_or(text.len());
    text[..end].trim().trim_end_matches(',')
}

#[test]
fn the_listings_are_current_and_types_are_debug_and_errors_are_errors() {
    for library in LIBRARIES {
        let listed = fs::read_to_string(root().join(library.1)).unwrap();
        let is = listing(library).unwrap();
        let (listed, is): (BTreeSet<_>, BTreeSet<_>) =
            (listed.lines().collect(), is.lines().collect());
        let gone: Vec<_> = listed.difference(&is).collect();
        let new: Vec<_> = is.difference(&listed).collect();
        assert!(
            gone.is_empty() && new.is_empty(),
            "the interface of {} has changed.\ngone: {gone:#?}\nnew: {new:#?}\n\
             If that is deliberate, run `cargo run -p tickwheel-api`, and read docs/RELEASING.md.",
            library.0
        );
        for (path, line) in is.iter().filter_map(|line| line.split_once(": ")) {
            let path_is = |line: &&&str| line.starts_with(&format!("{path}: "));
            let has = |what: &str| is.iter().filter(path_is).any(|line| line.contains(what));
            let is_type = line.contains("pub struct") || line.contains("pub enum");
            assert!(!is_type || has("Debug"), "{path} cannot be printed");
            let is_error = is_type && path.ends_with("Error");
            assert!(
                !is_error || has("Error for") && has("Display for"),
                "{path}"
            );
        }
    }
}
