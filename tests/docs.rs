//! Checks the documentation: links lead somewhere, and programs are compiled and run.

use std::fs;
use std::path::{Path, PathBuf};

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{:?}: {error}", path.as_ref()))
}

/// The files of a folder with this ending.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![PathBuf::from(folder)]);
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()) {
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && !["target", "links", ".git"].contains(&name) {
                folders.push(path);
            } else if name.ends_with(ending) {
                found.push(path);
            }
        }
    }
    found
}

/// The blocks of code of a page, each with its language.
fn programs(page: &str) -> impl Iterator<Item = (&str, &str)> {
    let blocks = page.split("\n```").skip(1).step_by(2);
    blocks.map(|block| block.split_once('\n').unwrap())
}

/// The targets of a page's links, those in the text and those defined at its end.
fn targets(page: &str) -> impl Iterator<Item = &str> {
    let prose = page.split("\n```").step_by(2);
    prose.flat_map(|text| {
        let inline = text.split("](").skip(1);
        let inline = inline.map(|it| it.split(')').next().unwrap());
        inline.chain(definitions(text).map(|(_, target)| target))
    })
}

/// The labels and the targets of links that a page defines, one a line.
fn definitions(page: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = page.lines().filter(|line| !line.starts_with("[^"));
    lines.filter_map(|line| line.strip_prefix('[')?.split_once("]: "))
}

/// The anchor of a heading, as renderers of Markdown make it.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let is_left_out = |letter: char| !letter.is_alphanumeric() && !"-_".contains(letter);
    text.replace(' ', "-").replace(is_left_out, "")
}

#[test]
fn every_link_leads_to_a_file_or_a_heading() {
    for name in files(".", ".md") {
        let page = read(&name);
        for target in targets(&page).filter(|target| !target.contains("://")) {
            let (file, section) = target.split_once('#').unwrap_or((target, ""));
            let file = Some(file).filter(|file| !file.is_empty());
            let path = file.map_or(name.clone(), |file| name.with_file_name(file));
            assert!(path.exists(), "{name:?}: {target}");
            let is_heading = |line: &str| line.starts_with('#') && anchor(line) == section;
            let is_there = section.is_empty() || read(&path).lines().any(is_heading);
            assert!(is_there, "{name:?}: {target}");
        }
    }
}

/// A page with a program is part of the crate's documentation tests, which leave out none.
#[test]
fn every_program_of_a_page_is_run() {
    let (lib, mut pages) = (read("src/lib.rs"), files("docs", ".md"));
    pages.push("README.md".into());
    for name in pages {
        let is_run = lib.contains(&format!("include_str!(\"../{}\")", name.display()));
        let page = read(&name);
        let mut rust = programs(&page).filter(|(language, _)| language.starts_with("rust"));
        assert!(rust.all(|(language, _)| is_run && language == "rust"), "{name:?}");
    }
}

/// The programs on models need a scheduler, so they are tests of `loom-tests` instead.
#[test]
fn the_programs_on_models_are_the_files_that_they_name() {
    let page = read("docs/MODELS.md");
    for (_, block) in programs(&page).filter(|(language, _)| *language == "rs") {
        let (name, program) = block.split_once('\n').unwrap();
        assert_eq!(read(&name[3..]).trim_end(), program, "{name}");
    }
}

#[test]
fn every_program_is_in_the_list_and_every_recipe_in_the_guide() {
    let (guide, on_docs_rs) = (read("docs/guide.md"), read("docs/links/guide.md"));
    for path in files("examples", ".rs") {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let (shown, list) = (path.to_str().unwrap(), read("examples/README.md"));
        let is_other = !path.starts_with("examples/recipes");
        assert!(is_other || guide.contains(&format!("\nProgram: [{name}]")));
        assert!(is_other || guide.contains(&format!("\n[{name}]: ../{shown}\n")));
        let is_listed = list.contains(&shown.replacen("examples/", "](", 1));
        assert!(is_listed || !read(&path).contains("fn main()"), "{shown}");
    }
    let is_missing = |(label, _): &(&str, &str)| !on_docs_rs.contains(&format!("[{label}]: "));
    assert_eq!(definitions(&guide).find(is_missing), None);
}

/// A comment cites a section of DESIGN by its title.
#[test]
fn every_section_that_a_comment_cites_exists() {
    let page = read("docs/DESIGN.md");
    for path in files(".", ".rs") {
        let text = read(&path).replace("///", "").replace("//!", "");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for cited in text.split("DESIGN.md, \"").skip(1) {
            let title = cited.split('"').next().unwrap();
            assert!(page.contains(&format!("# {title}\n")), "{path:?}: {title}");
        }
    }
}
