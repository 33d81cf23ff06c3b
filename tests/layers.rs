//! The law of the house: a folder imports only folders below it, and no files of
//! `src`, or of `durable`'s, import each other in a circle.
//!
//! The order of the folders is read from the picture in docs/ARCHITECTURE.md. An
//! import is a `use` line. A name that a module re-exports counts as imported from
//! the file that defines it, and the re-export itself as an import only where the
//! module uses the name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Files beside the folders, from the ground up; all stand below the folders in
/// the picture that are not named here.
const GROUND: [&str; 9] = [
    "tick",
    "id",
    "fork",
    "caught",
    "sync",
    "timeline",
    "rounding",
    "engine_name",
    "observe",
];

/// A module: its path below the crate, such as `hub::cancel`.
type Module = String;

struct Source {
    /// Each path that a `use` line names, and whether it is re-exported.
    imports: Vec<(String, bool)>,
    /// Lines of code that name another module beside the `use` lines.
    beside: Vec<String>,
    /// The names among them that the code uses, and does not only pass on.
    used: BTreeSet<String>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every module of the crate but those of tests.
fn sources() -> BTreeMap<Module, Source> {
    sources_in("src")
}

fn sources_in(folder: &str) -> BTreeMap<Module, Source> {
    let mut sources = BTreeMap::new();
    collect(&root().join(folder), "", &mut sources);
    sources
}

fn collect(folder: &Path, module: &str, sources: &mut BTreeMap<Module, Source>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if name == "tests" {
            continue;
        }
        let child = match name {
            "mod" => module.to_owned(),
            "lib" => "crate".to_owned(),
            _ => join(module, name),
        };
        if path.is_dir() {
            collect(&path, &child, sources);
        } else {
            let text = fs::read_to_string(&path).unwrap();
            sources.insert(child, Source::read(&text));
        }
    }
}

fn join(module: &str, name: &str) -> String {
    match module {
        "" => name.to_owned(),
        _ => format!("{module}::{name}"),
    }
}

impl Source {
    fn read(text: &str) -> Source {
        let code = text.split("\nmod tests {").next().unwrap();
        let mut imports = Vec::new();
        for statement in code.split(';') {
            let Some((before, tree)) = statement.rsplit_once("use ") else {
                continue;
            };
            let line = before.rfind('\n').map_or(0, |newline| newline + 1);
            let visibility = &before[line..];
            if !is_visibility(visibility) {
                continue;
            }
            // Within a module of this file, its parent is this file.
            let tree = match visibility.starts_with(' ') {
                true => tree.replacen("super::", "self::", 1),
                false => tree.to_owned(),
            };
            let tree = tree.split_whitespace().collect::<Vec<_>>().join(" ");
            let re_exported = !visibility.trim().is_empty();
            expand("", &tree, &mut |path| imports.push((path, re_exported)));
        }
        let uses = |name: &str| {
            let words = code.lines().filter(|line| !line.trim().starts_with("//"));
            let words = words.flat_map(|line| line.split(|sign: char| !is_of_word(sign)));
            words.filter(|&word| word == name).count() > 1
        };
        let names = imports
            .iter()
            .filter_map(|(path, _)| path.rsplit("::").next());
        let used = names.filter(|name| uses(name)).map(str::to_owned).collect();
        let is_beside = |line: &&str| {
            let line = line.trim();
            line.contains("crate::") && !line.starts_with("//") && !line.contains("use crate::")
        };
        let beside = code.lines().filter(is_beside).map(str::to_owned).collect();
        Source {
            imports,
            beside,
            used,
        }
    }
}

fn is_of_word(sign: char) -> bool {
    sign.is_alphanumeric() || sign == '_'
}

fn is_visibility(text: &str) -> bool {
    matches!(text.trim(), "" | "pub" | "pub(crate)" | "pub(super)")
}

/// Calls `with` for each path of a tree such as `a::{b, c::{d, e}}`.
fn expand(prefix: &str, tree: &str, with: &mut impl FnMut(String)) {
    let tree = tree.trim();
    let Some((head, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap();
        return with(format!("{prefix}{path}"));
    };
    let inner = rest.strip_suffix('}').unwrap();
    let (mut depth, mut begin) = (0, 0);
    for (at, sign) in inner.char_indices().chain([(inner.len(), ',')]) {
        match sign {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !inner[begin..at].trim().is_empty() {
                    expand(&format!("{prefix}{head}"), &inner[begin..at], with);
                }
                begin = at + 1;
            }
            _ => {}
        }
    }
}

/// The module in which a path that `module` names is defined; none for another
/// crate's.
fn resolve(sources: &BTreeMap<Module, Source>, module: &str, path: &str) -> Option<Module> {
    let mut names: Vec<&str> = path.split("::").collect();
    let mut at = match names[0] {
        "crate" => String::new(),
        "self" => module.to_owned(),
        "super" => parent(module),
        child if sources.contains_key(&join(module, child)) => join(module, child),
        _ => return None,
    };
    names.remove(0);
    while names.first() == Some(&"super") {
        at = parent(&at);
        names.remove(0);
    }
    for (n, name) in names.iter().enumerate() {
        if *name == "self" {
            break;
        }
        if sources.contains_key(&join(&at, name)) {
            at = join(&at, name);
            continue;
        }
        let here = file_of(&at);
        let re_export = sources.get(here)?.imports.iter().find(|(path, public)| {
            *public && path.rsplit("::").next() == Some(name) && path != &names[n..].join("::")
        });
        return match re_export {
            Some((path, _)) => resolve(sources, &at, path),
            None => Some(here.to_owned()),
        };
    }
    Some(file_of(&at).to_owned())
}

/// What the crate's own file goes by.
fn file_of(module: &str) -> &str {
    match module {
        "" => "crate",
        _ => module,
    }
}

fn parent(module: &str) -> String {
    let above = module.rsplit_once("::");
    above.map_or(String::new(), |(above, _)| above.to_owned())
}

/// Which modules each module imports from.
fn arrows(sources: &BTreeMap<Module, Source>) -> BTreeMap<&str, BTreeSet<Module>> {
    let arrows_of = |module: &str, source: &Source| {
        let is_used = |path: &str| source.used.contains(path.rsplit("::").next().unwrap());
        let imports = source.imports.iter();
        let imports = imports.filter(|(path, public)| !public || is_used(path));
        let from = imports.filter_map(|(path, _)| resolve(sources, module, path));
        from.filter(|from| from != module).collect()
    };
    sources
        .iter()
        .map(|(module, source)| (module.as_str(), arrows_of(module, source)))
        .collect()
}

/// Every module that one imports from, by itself or through others.
fn reachable(arrows: &BTreeMap<&str, BTreeSet<Module>>, from: &str) -> BTreeSet<Module> {
    let (mut seen, mut left) = (BTreeSet::new(), vec![from.to_owned()]);
    while let Some(module) = left.pop() {
        for next in arrows.get(module.as_str()).into_iter().flatten() {
            if seen.insert(next.clone()) {
                left.push(next.clone());
            }
        }
    }
    seen
}

/// The folders from the ground up.
fn floors() -> Vec<String> {
    let page = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let picture = page.split("```").nth(1).unwrap();
    let words = picture.split_whitespace();
    let folders = words.filter_map(|word| word.strip_prefix("src/"));
    let above = folders.filter(|folder| !GROUND.contains(folder));
    let mut floors: Vec<String> = above.map(str::to_owned).collect();
    floors.extend(GROUND.iter().rev().map(|&name| name.to_owned()));
    floors.reverse();
    floors
}

fn folder(module: &str) -> &str {
    module.split("::").next().unwrap()
}

#[test]
fn a_folder_imports_only_folders_below_it() {
    let (sources, floors) = (sources(), floors());
    let floor = |module: &str| {
        let folder = folder(module);
        let floor = floors.iter().position(|name| name == folder);
        floor.unwrap_or_else(|| panic!("docs/ARCHITECTURE.md draws no `{folder}`"))
    };
    for (module, from) in arrows(&sources) {
        if module == "crate" {
            continue;
        }
        for from in from {
            assert!(
                floor(&from) <= floor(module),
                "{module} imports {from}, which stands above it"
            );
        }
    }
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    for folder in ["src", "durable/src", "durable/tool/src"] {
        let sources = sources_in(folder);
        let mut arrows = arrows(&sources);
        arrows.remove("crate");
        let files = arrows.keys().copied();
        let circle: Vec<&str> = files
            .filter(|&file| reachable(&arrows, file).contains(file))
            .collect();
        assert!(circle.is_empty(), "{folder}: {circle:#?}");
    }
}

/// So that the `use` lines tell the whole story.
#[test]
fn code_names_other_modules_in_use_lines_alone() {
    for (module, source) in sources() {
        if module != "crate" {
            assert_eq!(source.beside, [""; 0], "in {module}");
        }
    }
}

/// The reader of `use` lines sees what it is to see.
#[test]
fn imports_are_found() {
    let sources = sources();
    let arrows = arrows(&sources);
    let imports = |module: &str, from: &str| arrows[module].contains(from);
    assert!(imports("tasks::driven", "drive::driver"), "re-exported");
    assert!(imports("hub::cancel", "hub"), "from the parent");
    assert!(imports("engine::builder", "hub"), "in braces");
    assert!(!imports("hub", "hub::cancel"), "declared only");
}
