//! Walks over the public items, from the root of the crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::Path;

use serde_json::Value;

use crate::source::{Sources, head};

/// The automatic traits that users can name. Compilers add others of their own.
const AUTOMATIC: [&str; 5] = ["Send", "Sync", "Unpin", "UnwindSafe", "RefUnwindSafe"];

/// A line of the listing, in the order in which an item's lines are printed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Line {
    /// The item itself.
    Head(String),
    /// A field, a variant, a function, a constant or a type within it.
    Member(String),
    /// A trait that the item implements, with its conditions.
    Impl(String),
    /// A derived or automatic trait.
    Trait(String),
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Line::Head(text) | Line::Member(text) | Line::Impl(text) | Line::Trait(text) => {
                f.write_str(text)
            }
        }
    }
}

/// The lines of each item, by its path.
pub type Lines = BTreeMap<String, BTreeSet<Line>>;

/// The public interface: the lines of each item, by its path.
pub(crate) struct Interface {
    index: Value,
    sources: Sources,
    lines: Lines,
}

impl Interface {
    /// Reads the JSON of the library `name`.
    pub(crate) fn new(root: &Path, name: &str, mut json: Value) -> io::Result<Interface> {
        let mut interface = Interface {
            index: json["index"].take(),
            sources: Sources::new(root),
            lines: BTreeMap::new(),
        };
        let crate_root = interface.item(&json["root"]);
        interface.module(name, &crate_root)?;
        Ok(interface)
    }

    pub(crate) fn lines(self) -> Lines {
        self.lines
    }

    /// Returns the item with this id, or null if it belongs to another crate.
    fn item(&self, id: &Value) -> Value {
        self.index[id.to_string()].clone()
    }

    fn items(&self, ids: &Value) -> Vec<Value> {
        let ids = ids.as_array().into_iter().flatten();
        ids.map(|id| self.item(id)).collect()
    }

    fn add(&mut self, path: &str, line: Line) {
        let lines = self.lines.entry(path.to_owned()).or_default();
        lines.insert(line);
    }

    fn module(&mut self, path: &str, module: &Value) -> io::Result<()> {
        for item in self.items(&module["inner"]["module"]["items"]) {
            if item["visibility"] == "public" {
                self.public(path, &item)?;
            }
        }
        Ok(())
    }

    /// Lists a public item of the module at `path`.
    fn public(&mut self, path: &str, item: &Value) -> io::Result<()> {
        let (kind, inner) = kind(item);
        if kind == "use" {
            return self.exported(path, inner);
        }
        self.named(&join(path, &item["name"]), item)
    }

    fn exported(&mut self, path: &str, exported: &Value) -> io::Result<()> {
        let path = join(path, &exported["name"]);
        let item = self.item(&exported["id"]);
        if item["crate_id"] == 0 {
            return self.named(&path, &item);
        }
        let source = exported["source"].as_str().unwrap_or_default();
        self.add(&path, Line::Head(format!("pub use {source}")));
        Ok(())
    }

    fn named(&mut self, path: &str, item: &Value) -> io::Result<()> {
        let (kind, inner) = kind(item);
        if kind == "module" {
            self.add(path, Line::Head("pub mod".to_owned()));
            return self.module(path, item);
        }
        let text = self.sources.text(item)?;
        let line = match kind == "struct" && !text.contains("(pub ") {
            true => head(&text).split('(').next().unwrap_or_default(),
            false => head(&text),
        };
        self.add(path, Line::Head(marked(item, line)));
        let members = [
            &inner["kind"]["plain"]["fields"],
            &inner["variants"],
            &inner["items"],
        ];
        for members in members.map(|ids| self.items(ids)) {
            self.members(path, "", &members)?;
        }
        if inner["kind"]["plain"]["has_stripped_fields"] == true {
            self.add(path, Line::Member("has private fields".to_owned()));
        }
        self.impls(path, &inner["impls"])
    }

    /// Lists fields, variants, functions, constants and types within an item.
    fn members(&mut self, path: &str, within: &str, members: &[Value]) -> io::Result<()> {
        for member in members.iter().filter(|member| !member.is_null()) {
            let text = self.sources.text(member)?;
            let line = match kind(member).0 {
                "variant" | "struct_field" => text.trim_end_matches(','),
                _ => head(&text),
            };
            let line = marked(member, line);
            self.add(path, Line::Member(format!("{within}{line}")));
        }
        Ok(())
    }

    fn impls(&mut self, path: &str, impls: &Value) -> io::Result<()> {
        for block in self.items(impls) {
            let inner = &block["inner"]["impl"];
            match (inner["blanket_impl"].is_null(), inner["trait"].is_null()) {
                (false, _) => {} // every type has it
                (true, false) => self.implemented(path, &block)?,
                (true, true) => {
                    let text = self.sources.text(&block)?;
                    let members = self.items(&inner["items"]);
                    let public = members.into_iter().filter(|m| m["visibility"] == "public");
                    let within = format!("{}: ", head(&text));
                    self.members(path, &within, &public.collect::<Vec<_>>())?;
                }
            }
        }
        Ok(())
    }

    /// Lists a trait of a type: its `impl`, or its name if it is derived or automatic.
    fn implemented(&mut self, path: &str, block: &Value) -> io::Result<()> {
        let inner = &block["inner"]["impl"];
        let name = inner["trait"]["path"].as_str().unwrap_or_default();
        let automatic = inner["is_synthetic"] == true;
        let unknown = automatic && !AUTOMATIC.contains(&name);
        if unknown || name == "StructuralPartialEq" {
            return Ok(()); // no user can name it
        }
        let text = self.sources.text(block)?;
        let sign = if inner["is_negative"] == true {
            "!"
        } else {
            ""
        };
        match automatic || !text.starts_with("impl") {
            true => self.add(path, Line::Trait(format!("{sign}{name}"))),
            false => self.add(path, Line::Impl(head(&text).to_owned())),
        }
        let types = self.items(&inner["items"]);
        let types: Vec<Value> = types
            .into_iter()
            .filter(|item| kind(item).0 == "assoc_type")
            .collect();
        self.members(path, &format!("{}: ", head(&text)), &types)
    }
}

/// Returns the kind of an item, and what rustdoc knows of this kind.
fn kind(item: &Value) -> (&str, &Value) {
    let inner = item["inner"]
        .as_object()
        .and_then(|inner| inner.iter().next());
    inner.map_or(("", &Value::Null), |(kind, inner)| (kind, inner))
}

fn join(path: &str, name: &Value) -> String {
    format!("{path}::{}", name.as_str().unwrap_or_default())
}

/// Puts the attributes that users notice before a line.
fn marked(item: &Value, line: &str) -> String {
    let attributes = item["attrs"].to_string();
    let noticed = ["must_use", "non_exhaustive", "deprecated"];
    let noticed = noticed.into_iter().filter(|name| attributes.contains(name));
    let noticed = noticed.map(|name| format!("#[{name}] "));
    noticed.collect::<String>() + line
}
