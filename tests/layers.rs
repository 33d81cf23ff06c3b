//! A folder imports only folders below it, no files of `src` or of `durable`'s import
//! each other in a circle, and unsafe code is where docs/ARCHITECTURE.md says.
//!
//! The order of the folders is read from the picture in docs/ARCHITECTURE.md; the files
//! directly in `src` are below all of them. An import is a `use` line. A name that a
//! module re-exports counts as imported from the file that defines it, and the re-export
//! itself as an import only where the module uses the name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

/// The files of a crate by their paths in it, such as `engine::cancel`; `lib.rs` has none.
type Sources = BTreeMap<String, Source>;

struct Source {
    /// Without tests, and without lines that are comments.
    code: String,
    /// The paths in `use` lines, from the crate on, and whether they are re-exported.
    imports: Vec<(String, bool)>,
}

fn sources(folder: &str) -> Sources {
    let mut sources = Sources::new();
    let mut folders = vec![(PathBuf::from(folder), String::new())];
    while let Some((folder, module)) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()) {
            let child = match path.file_stem().unwrap().to_str().unwrap() {
                "tests" => continue,
                "mod" | "lib" | "main" => module.clone(),
                name => join(&module, name),
            };
            if path.is_dir() {
                folders.push((path, child));
                continue;
            }
            let text = fs::read_to_string(path).unwrap();
            let lines = text.split("\nmod tests {").next().unwrap().lines();
            let lines = lines.filter(|line| !line.trim().starts_with("//"));
            let code = lines.collect::<Vec<_>>().join("\n");
            let imports = code.split(';').flat_map(|it| imports(&child, it)).collect();
            sources.insert(child, Source { code, imports });
        }
    }
    sources
}

fn imports(module: &str, statement: &str) -> Vec<(String, bool)> {
    let (before, tree) = statement.rsplit_once("use ").unwrap_or_default();
    let before = before.rsplit('\n').next().unwrap_or_default();
    if !["", "pub", "pub(crate)", "pub(super)"].contains(&before.trim()) {
        return Vec::new();
    }
    // Within a module of this file, the parent is this file.
    let tree = tree.replacen("super::", "self::", usize::from(before.starts_with(' ')));
    let paths = paths(&tree).into_iter();
    paths.map(|it| (absolute(module, &it), before.contains("pub"))).collect()
}

/// The paths of a tree such as `a::{b, c::{d, e}}`.
fn paths(tree: &str) -> Vec<String> {
    let (tree, mut prefixes) = (tree.replace(" as ", "@"), vec![String::new()]);
    let (mut path, mut paths) = (String::new(), Vec::new());
    for sign in tree.split_whitespace().flat_map(str::chars).chain([',']) {
        match sign {
            '{' => prefixes.push(path.clone()),
            ',' | '}' => {
                if Some(&path) != prefixes.last() {
                    let path = path.split('@').next().unwrap();
                    paths.push(path.trim_end_matches("::self").to_owned());
                }
                prefixes.truncate(prefixes.len() - usize::from(sign == '}'));
                path.clone_from(&prefixes[prefixes.len() - 1]);
            }
            _ => path.push(sign),
        }
    }
    paths
}

fn join(module: &str, name: &str) -> String {
    format!("{module}::{name}").trim_start_matches("::").into()
}

/// A path from the crate on. One into another crate becomes one into the module, where
/// nothing has that name.
fn absolute(module: &str, path: &str) -> String {
    if let Some(path) = path.strip_prefix("crate::") {
        return path.to_owned();
    }
    let (module, supers) = (format!("::{module}"), path.matches("super::").count());
    let module = module.rsplitn(supers + 1, "::").last().unwrap();
    join(module, &path.replace("super::", "").replace("self::", ""))
}

fn is_used(code: &str, name: &str) -> bool {
    let words = code.split(|sign: char| !sign.is_alphanumeric() && sign != '_');
    words.filter(|word| *word == name).count() > 1
}

/// The file that defines what a path names.
fn resolve(sources: &Sources, path: &str) -> String {
    let mut at = String::new();
    for name in path.split("::") {
        let below = join(&at, name);
        if !sources.contains_key(&below) {
            let (mut imports, name) = (sources[&at].imports.iter(), format!("::{name}"));
            let elsewhere = imports.find(|it| it.1 && it.0.ends_with(&name) && it.0 != below);
            return elsewhere.map_or(at, |(path, _)| resolve(sources, path));
        }
        at = below;
    }
    at
}

/// The files that each file imports from. The crate's own file is left out.
fn arrows(folder: &str) -> BTreeMap<String, BTreeSet<String>> {
    let (sources, mut arrows) = (sources(folder), BTreeMap::new());
    for (module, Source { code, imports }) in &sources {
        let is_used = |path: &str| is_used(code, path.rsplit("::").next().unwrap());
        let imports = imports.iter().filter(|it| !it.1 || is_used(&it.0));
        let from = imports.map(|(path, _)| resolve(&sources, path));
        let others = from.filter(|from| from != module && !from.is_empty());
        arrows.insert(module.clone(), others.collect());
    }
    arrows.remove("");
    arrows
}

#[test]
fn a_folder_imports_only_folders_below_it() {
    let page = fs::read_to_string("docs/ARCHITECTURE.md").unwrap();
    let words = page.split("```").nth(1).unwrap().split_whitespace();
    let floors: Vec<&str> = words.filter_map(|it| it.strip_prefix("src/")).collect();
    let floor = |module: &str| {
        let folder = module.split("::").next().unwrap();
        let floor = floors.iter().rev().position(|floor| *floor == folder);
        let is_ground = fs::exists(format!("src/{folder}.rs")).unwrap();
        assert!(floor.is_some() || is_ground, "the page draws no `{folder}`");
        floor
    };
    let arrows = arrows("src");
    for (module, from) in &arrows {
        let above = from.iter().find(|from| floor(from) > floor(module));
        assert_eq!(above, None, "{module} imports what stands above it");
    }
    // The reader of `use` lines finds what it is to find.
    assert!(arrows["tasks::worker"].contains("drive::driver"), "re-exported");
    assert!(!arrows["engine"].contains("engine::shutdown"), "declared only");
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    for folder in ["src", "durable/src", "durable/tool/src"] {
        let (mut left, mut before) = (arrows(folder), usize::MAX);
        // A file that imports none of those that are left is in no circle.
        while std::mem::replace(&mut before, left.len()) > left.len() {
            let files: BTreeSet<String> = left.keys().cloned().collect();
            left.retain(|_, from| !from.is_disjoint(&files));
        }
        assert!(left.is_empty(), "{folder}: {left:#?}");
    }
}

#[test]
fn unsafe_code_and_paths_are_where_they_belong() {
    let page = fs::read_to_string("docs/ARCHITECTURE.md").unwrap();
    let places = page.split("\n## Unsafe\n").nth(1).unwrap();
    for (module, Source { code, .. }) in sources("src") {
        let place = module.replace("::", "/");
        let mut listed = places.split('`').skip(1).step_by(2);
        let is_listed = listed.any(|it| place.starts_with(it.trim_end_matches(".rs")));
        assert!(is_listed || !code.contains("unsafe "), "in {module}");
        // So that the `use` lines tell the whole story.
        let beside = code.matches("crate::").count() - code.matches("use crate::").count();
        assert!(beside == 0 || module.is_empty(), "in {module}");
    }
}
