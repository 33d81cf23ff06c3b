//! Checks the documentation: its programs are compiled and run, and the files
//! and tests that it names exist.

#![cfg(not(any(loom, shuttle)))]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The front page, and everything in docs.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    let docs = fs::read_dir(root().join("docs")).unwrap().flatten();
    pages.extend(docs.map(|entry| entry.path()));
    pages.retain(|page| page.extension().is_some_and(|name| name == "md"));
    assert!(pages.len() > 5, "{pages:?}");
    pages
}

/// What follows the three backticks where a block begins.
fn languages(text: &str) -> impl Iterator<Item = &str> {
    let fences = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("```"));
    fences.step_by(2)
}

/// A page with a program in it is part of the crate's documentation tests, and
/// none of its programs is left out of them.
#[test]
fn every_program_in_the_documentation_is_run() {
    let lib = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let mut programs = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let rust = |language: &&str| language.starts_with("rust");
        let blocks: Vec<&str> = languages(&text).filter(rust).collect();
        if blocks.is_empty() {
            continue;
        }
        programs += blocks.len();
        let name = page.strip_prefix(root()).unwrap().display();
        let included = format!("include_str!(\"../{name}\")");
        assert!(lib.contains(&included), "{name} is not compiled");
        assert!(
            blocks.iter().all(|&block| block == "rust"),
            "{name} has a program that is not run: {blocks:?}"
        );
    }
    assert!(programs >= 10, "{programs} programs");
}

/// The programs in the chapter on models are the files that they name, to the letter. They
/// need a scheduler, so they are tests of `loom-tests` and not of the documentation.
#[test]
fn the_programs_of_the_chapter_on_models_are_tests() {
    let chapter = fs::read_to_string(root().join("docs/MODELS.md")).unwrap();
    let mut programs = 0;
    for block in chapter.split("```rs\n").skip(1) {
        let (program, _) = block.split_once("```").unwrap();
        let (name, program) = program.split_once('\n').unwrap();
        let file = root().join(name.strip_prefix("// ").expect(name));
        assert_eq!(fs::read_to_string(file).expect(name), program, "{name}");
        programs += 1;
    }
    assert_eq!(programs, 3);
}

/// The targets of a page's links: those in the text, and those defined at its end.
fn targets(text: &str) -> Vec<&str> {
    let in_text = text.split("](").skip(1);
    let in_text = in_text.filter_map(|rest| rest.split(')').next());
    in_text
        .chain(definitions(text).map(|(_, target)| target))
        .collect()
}

/// The labels and the targets of links that a page defines, one a line.
fn definitions(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().filter_map(|line| line.strip_prefix('['));
    lines.filter_map(|line| line.split_once("]: "))
}

/// A file that a page links to exists.
#[test]
fn every_link_within_the_repository_leads_somewhere() {
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for target in targets(&text) {
            let file = target.split('#').next().unwrap();
            // A footnote is not a link.
            let is_elsewhere = target.contains("://") || target.contains(' ') || file.is_empty();
            let path = page.parent().unwrap().join(file);
            assert!(
                is_elsewhere || path.exists(),
                "{}: {target}",
                page.display()
            );
        }
    }
}

/// A link to a section leads to a heading of its page.
#[test]
fn every_link_to_a_section_leads_to_a_heading() {
    let mut links = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for target in targets(&text) {
            let Some((file, section)) = target.split_once('#') else {
                continue;
            };
            let path = page.parent().unwrap().join(file);
            let there = match file {
                "" => text.clone(),
                _ if file.ends_with(".md") && !file.contains("://") => {
                    fs::read_to_string(path).unwrap()
                }
                _ => continue,
            };
            let headings = there.lines().filter(|line| line.starts_with('#'));
            let mut anchors = headings.map(anchor);
            let name = page.display();
            assert!(anchors.any(|anchor| anchor == section), "{name}: {target}");
            links += 1;
        }
    }
    assert!(links > 20, "{links} links");
}

/// Returns the anchor of a heading, as renderers of Markdown make it.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let text = text.replace(' ', "-");
    let is_kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, '-' | '_');
    text.chars().filter(is_kept).collect()
}

fn guide() -> String {
    fs::read_to_string(root().join("docs/guide.md")).unwrap()
}

/// Each link of the guide leads to a file beside it, and on docs.rs to the documentation.
#[test]
fn every_link_of_the_guide_has_two_targets() {
    let (guide, links) = (guide(), root().join("docs/links/guide.md"));
    let links = fs::read_to_string(links).unwrap();
    let [here, there] = [&guide, &links].map(|text| {
        let mut labels: Vec<&str> = definitions(text).map(|(label, _)| label).collect();
        labels.sort_unstable();
        labels
    });
    assert!(here.len() > 20);
    assert_eq!(here, there);
}

/// Each recipe is under a heading of the guide, with a link to its program.
#[test]
fn every_recipe_is_in_the_guide() {
    let guide = guide();
    let recipes = guide.split("## How do I\n").nth(1).unwrap();
    let recipes = recipes.split("\n## ").next().unwrap();
    assert_eq!(recipes.matches("\n### ").count(), 13);
    for path in files(&root().join("examples/recipes/src/bin")) {
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(recipes.contains(&format!("\nProgram: [{name}]")), "{name}");
        let file = format!("../examples/recipes/src/bin/{name}.rs");
        assert!(definitions(&guide).any(|link| link == (name, &file)));
    }
}

/// Each test that the guide names exists.
#[test]
fn every_test_of_the_guide_exists() {
    let guide = guide();
    let table = guide.split("\n## Tests\n").nth(1).unwrap();
    let is_name = |word: &&str| word.matches('_').count() > 2 && !word.contains(' ');
    let is_code = |word: &&str| is_name(word) && !word.contains('\n');
    let names: Vec<&str> = table.split('`').filter(is_code).collect();
    let tests = files(&root().join("tests")).into_iter();
    let code: String = tests
        .filter_map(|path| fs::read_to_string(path).ok())
        .collect();
    let missing = names
        .iter()
        .filter(|name| !code.contains(&format!("fn {name}(")));
    assert_eq!(missing.collect::<Vec<_>>(), [&""; 0]);
    assert!(names.len() > 20);
}

/// All files in a directory and the directories in it.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().flatten();
    let all = entries.flat_map(|entry| match entry.path() {
        path if path.is_dir() => files(&path),
        path => vec![path],
    });
    all.collect()
}

/// The sources, by their paths within `src`.
fn sources() -> Vec<String> {
    let src = root().join("src");
    let within = |path: PathBuf| {
        path.strip_prefix(&src)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    };
    files(&src).into_iter().map(within).collect()
}

/// Whether a path may be called that: the map leaves out a directory that it has
/// just named, and takes some together as `directory/*`.
fn is_called(path: &str, name: &str) -> bool {
    match name.strip_suffix('*') {
        Some(directory) => path.contains(directory),
        None => path == name || path.ends_with(&format!("/{name}")),
    }
}

/// The map of the code has every file, and none that is gone.
#[test]
fn the_map_of_the_code_has_every_file() {
    let page = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let map = page.split("## Code map").nth(1).unwrap();
    let map = map.split("\n## ").next().unwrap();
    let is_name = |name: &&str| name.ends_with(".rs") || name.ends_with("/*");
    let names: Vec<&str> = map.split('`').filter(is_name).collect();
    let sources = sources();
    let is_missing = |path: &&String| {
        let needs_no_line = ["lib.rs", "mod.rs", "tests.rs"];
        !needs_no_line.iter().any(|name| is_called(path, name))
            && !names.iter().any(|name| is_called(path, name))
    };
    let missing: Vec<_> = sources.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "not on the map: {missing:?}");
    let gone = names
        .iter()
        .find(|name| !sources.iter().any(|path| is_called(path, name)));
    assert_eq!(gone, None, "on the map, and gone");
}

/// Unsafe code is where ARCHITECTURE says, and nowhere else.
#[test]
fn every_file_with_unsafe_code_is_listed() {
    let page = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let list = page.split("\n## Unsafe").nth(1).unwrap();
    let names: Vec<&str> = list
        .split('`')
        .filter(|name| name.ends_with(".rs"))
        .collect();
    for path in sources() {
        let text = fs::read_to_string(root().join("src").join(&path)).unwrap();
        let code = text.lines().map(|line| line.split("//").next().unwrap());
        let is_unsafe = code.into_iter().any(|code| {
            code.split_whitespace()
                .any(|word| word.starts_with("unsafe"))
        });
        let is_listed = names.iter().any(|name| is_called(&path, name));
        assert_eq!(is_unsafe, is_listed, "{path}");
    }
}

/// Each test that the table of items names exists.
#[test]
fn every_test_of_an_item_exists() {
    let page = fs::read_to_string(root().join("docs/VERIFICATION.md")).unwrap();
    let table = page.split("## Liveness, limits, costs").nth(1).unwrap();
    let table = table.split("\n## ").next().unwrap();
    let mut code = String::new();
    let models = ["loom-tests/tests", "loom-tests/shuttle/tests"];
    for directory in ["src", "tests", "loom-tests/src"].iter().chain(&models) {
        for path in files(&root().join(directory)) {
            code += &fs::read_to_string(path).unwrap_or_default();
        }
    }
    let is_name = |word: &&str| {
        word.matches('_').count() > 2 && !word.starts_with('_') && !word.ends_with('_')
    };
    let words = table.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let missing: Vec<&str> = words
        .filter(is_name)
        .filter(|name| {
            ![format!("fn {name}("), format!("mod {name} {{")]
                .iter()
                .any(|item| code.contains(item))
        })
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

/// The text of comments, without the marks at the beginning of their lines.
fn prose(code: &str) -> String {
    let words = code.lines().flat_map(|line| {
        let marks = ["///", "//!", "//"];
        let line = line.trim_start();
        let text = marks.iter().find_map(|mark| line.strip_prefix(mark));
        text.unwrap_or(line).split_whitespace()
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A section of the design that a comment cites by its title is there.
#[test]
fn every_section_of_the_design_that_a_comment_cites_exists() {
    let page = fs::read_to_string(root().join("docs/DESIGN.md")).unwrap();
    let titles: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches('#').trim())
        .collect();
    let mut count = 0;
    for directory in ["src", "tests", "loom-tests", "benches"] {
        for path in files(&root().join(directory)) {
            let text = prose(&fs::read_to_string(&path).unwrap_or_default());
            let cited = text.split("DESIGN.md, \"").skip(1);
            for title in cited.filter_map(|rest| rest.split('"').next()) {
                assert!(titles.contains(&title), "{}: {title}", path.display());
                count += 1;
            }
        }
    }
    assert!(count >= 3, "{count} sections cited");
}

/// The unit tests that a page names by their module are there.
#[test]
fn every_module_of_unit_tests_exists() {
    let page = fs::read_to_string(root().join("docs/VERIFICATION.md")).unwrap();
    let named = page.split("`--lib ").skip(1);
    for module in named.filter_map(|rest| rest.split('`').next()) {
        let path = root().join("src").join(module.replace("::", "/"));
        let is_here = path.with_extension("rs").exists() || path.is_dir();
        // The wheel's oracle stands with the tests.
        assert!(is_here || module == "wheel::oracle", "{module}");
    }
}

/// The functions that a timer's journey goes through are there.
#[test]
fn every_function_of_the_journey_exists() {
    let page = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let journey = page.split("\n## One timer's journey").nth(1).unwrap();
    let journey = journey.split("\n## ").next().unwrap();
    let read = |path: &String| fs::read_to_string(root().join("src").join(path)).unwrap();
    let code: String = sources().iter().map(read).collect();
    let words = journey.split('`').filter(|word| !word.contains(' '));
    let functions = words.filter_map(|word| word.split_once("::"));
    for (owner, function) in functions {
        let is_here = code.contains(&format!("fn {function}("));
        assert!(is_here, "{owner}::{function}");
    }
}
