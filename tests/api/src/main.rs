//! Writes the listings of the public interfaces anew; its tests say whether they are current.
//!
//! rustdoc's JSON says which items are public, by which paths users reach them, and which traits
//! they implement. A line itself is the item's text in the source, because rustdoc's form of
//! types changes with nearly every compiler.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::SystemTime;
use std::{env, fs};

use serde_json::Value;

/// A package, the file of its listing, and sets of features from small to large, each with the
/// mark of the lines that it adds.
type Library = (&'static str, &'static str, &'static [[&'static str; 2]]);

const ALL: [&str; 2] = ["--all-features", " [a feature that is off by default]"];
const DEFAULT: [&str; 2] = ["--features=default", " [std]"];
const NONE: [&str; 2] = ["--no-default-features", ""];
const LIBRARIES: [Library; 2] = [
    ("tickwheel", "tests/api/listing.txt", &[NONE, DEFAULT, ALL]),
    ("tickwheel-durable", "tests/api/durable.txt", &[NONE, ALL]),
];

/// The traits that nobody writes and users can name. Compilers add others of their own.
const AUTOMATIC: [&str; 5] = ["Send", "Sync", "Unpin", "UnwindSafe", "RefUnwindSafe"];

fn main() {
    for library in LIBRARIES {
        fs::write(root(library.1), listing(library)).expect("a file that can be written");
    }
}

/// Returns a path, by its name in the repository.
fn root(name: &str) -> String {
    format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    fs::read_to_string(root(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn listing((package, _, sets): Library) -> String {
    let mut marks = BTreeMap::new();
    for &[features, mark] in sets {
        let mut json = rustdoc(package, features);
        let mut interface = Interface { index: json["index"].take(), lines: BTreeSet::new() };
        let module = interface.item(&json["root"]);
        interface.list(&package.replace('-', "_"), &module);
        for line in interface.lines {
            marks.entry(line).or_insert(mark);
        }
    }
    let lines = marks.iter().map(|(line, mark)| format!("{line}{mark}\n"));
    lines.collect()
}

/// Returns what rustdoc writes for a package. Its JSON is unstable, which the script allows. A
/// new flag each time keeps cargo from taking the file of other features for a current one.
fn rustdoc(package: &str, features: &str) -> Value {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let arguments = format!(
        "rustdoc --quiet -p {package} --lib {features} --target-dir=target/checked -- \
         -Zunstable-options --output-format=json --cap-lints=allow --cfg=at_{}",
        now.as_nanos()
    );
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.args(arguments.split(' ')).current_dir(root(""));
    let status = cargo.env("RUSTDOC", root("tests/api/rustdoc")).status();
    assert!(status.is_ok_and(|status| status.success()), "rustdoc fails");
    let text = read(&format!("target/checked/doc/{}.json", package.replace('-', "_")));
    serde_json::from_str(&text).expect("JSON")
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
        let ids = ids.as_array().into_iter().flatten();
        ids.map(|id| self.item(id)).collect()
    }

    /// Lists the item that users reach by `path`, and all in it.
    fn list(&mut self, path: &str, item: &Value) {
        let (kind, inner) = kind(item);
        let text = text(item);
        match kind {
            "use" => {
                let used = self.item(&inner["id"]);
                if used["crate_id"] == 0 {
                    return self.list(path, &used);
                }
                let source = inner["source"].as_str().unwrap_or_default();
                return self.add(path, item, &format!("pub use {source}"));
            }
            "module" => {
                self.add(path, item, "pub mod");
                let mut members = self.items(&inner["items"]);
                members.retain(|member| member["visibility"] == "public");
                for member in members {
                    let name = &self::kind(&member).1["name"];
                    let name = name.as_str().or(member["name"].as_str());
                    self.list(&format!("{path}::{}", name.unwrap_or_default()), &member);
                }
                return;
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
        let fields = &inner["kind"]["plain"]["fields"];
        for members in [fields, &inner["variants"], &inner["items"]] {
            for member in self.items(members) {
                self.member(path, "", &member);
            }
        }
        self.impls(path, &inner["impls"]);
    }

    /// Adds a line, with the attributes that users notice.
    fn add(&mut self, path: &str, item: &Value, line: &str) {
        let attributes = item["attrs"].to_string();
        let noticed = ["must_use", "non_exhaustive", "deprecated"].into_iter();
        let noticed = noticed.filter(|name| attributes.contains(name));
        let noticed: String = noticed.map(|name| format!("#[{name}] ")).collect();
        self.lines.insert(format!("{path}: {noticed}{line}"));
    }

    fn member(&mut self, path: &str, within: &str, member: &Value) {
        let text = text(member);
        let line = match kind(member).0 {
            "" => return, // a field that is private
            "variant" | "struct_field" => text.trim_end_matches(','),
            _ => head(&text),
        };
        self.add(path, member, &format!("{within}{line}"));
    }

    /// Lists the functions of a type, and the traits that it implements; those that are derived
    /// or automatic share a line.
    fn impls(&mut self, path: &str, impls: &Value) {
        let mut derived = BTreeSet::new();
        let mut blocks = self.items(impls);
        blocks.retain(|block| block["inner"]["impl"]["blanket_impl"].is_null());
        for block in blocks {
            let (text, inner) = (text(&block), &block["inner"]["impl"]);
            let name = inner["trait"]["path"].as_str();
            let is_automatic = inner["is_synthetic"] == true;
            match name {
                Some("StructuralPartialEq") => continue,
                Some(name) if is_automatic && !AUTOMATIC.contains(&name) => continue,
                Some(name) if is_automatic || !text.starts_with("impl") => {
                    let sign = ["", "!"][usize::from(inner["is_negative"] == true)];
                    derived.insert(format!("{sign}{name}"));
                }
                Some(_) => self.add(path, &Value::Null, head(&text)),
                None => {}
            }
            for member in self.items(&inner["items"]) {
                let of_trait = name.is_some() && kind(&member).0 == "assoc_type";
                if of_trait || member["visibility"] == "public" {
                    self.member(path, &format!("{}: ", head(&text)), &member);
                }
            }
        }
        if !derived.is_empty() {
            let derived = Vec::from_iter(derived).join(", ");
            self.add(path, &Value::Null, &format!("is {derived}"));
        }
    }
}

/// Returns the kind of an item, and what rustdoc knows of this kind.
fn kind(item: &Value) -> (&str, &Value) {
    let inner = item["inner"].as_object();
    let inner = inner.and_then(|inner| inner.iter().next());
    inner.map_or(("", &Value::Null), |(kind, inner)| (kind, inner))
}

/// Returns the lines of an item in the source as one line, without comments, attributes and what
/// rustfmt's line breaks add.
fn text(item: &Value) -> String {
    let span = &item["span"];
    let Some(name) = span["filename"].as_str() else {
        return String::new();
    };
    let line = |end: &str| span[end][0].as_u64().unwrap_or(1) as usize;
    let source = read(name);
    let lines = source.lines().take(line("end")).skip(line("begin") - 1);
    let code =
        lines.map(str::trim).filter(|line| !line.starts_with("//") && !line.starts_with("#["));
    let words: Vec<_> = code.flat_map(str::split_whitespace).collect();
    let text = words.join(" ").replace("( ", "(").replace(", )", ")");
    let text = text.replace("< ", "<").replace(", >", ">");
    text.replace("(mut ", "(").replace(", mut ", ", ")
}

/// Returns the text before a body.
fn head(text: &str) -> &str {
    let end = text.find(['{', ';']).unwrap_or(text.len());
    text[..end].trim().trim_end_matches(',')
}

#[test]
fn the_listings_are_current_and_every_error_is_one() {
    for library in LIBRARIES {
        let (listed, is) = (read(library.1), listing(library));
        let [listed, is] = [&listed, &is].map(|text| text.lines().collect::<BTreeSet<_>>());
        let gone: Vec<_> = listed.difference(&is).collect();
        let new: Vec<_> = is.difference(&listed).collect();
        assert!(
            gone.is_empty() && new.is_empty(),
            "the interface of {} has changed.\ngone: {gone:#?}\nnew: {new:#?}\n\
             If that is deliberate, run `cargo run -p tickwheel-api`, and read docs/RELEASING.md.",
            library.0
        );
        let paths = is.iter().filter_map(|line| line.split_once(": "));
        for (path, _) in paths.filter(|(path, _)| path.ends_with("Error")) {
            // By hand, or derived: those traits are listed after `is`.
            let implements = |line: &&str| match line.strip_prefix(&format!("{path}: is ")) {
                Some(derived) => derived.split(", ").any(|name| name == "Error"),
                None => line.starts_with(path) && line.contains("Error for "),
            };
            assert!(is.iter().any(implements), "{path} is no Error");
        }
    }
}
