//! What the documentation says of itself: that its programs are compiled and run,
//! and that what it points at is there.

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

/// A file that a page links to exists.
#[test]
fn every_link_within_the_repository_leads_somewhere() {
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for target in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let file = target.split('#').next().unwrap();
            let is_elsewhere = target.contains("://") || file.is_empty();
            let path = page.parent().unwrap().join(file);
            assert!(
                is_elsewhere || path.exists(),
                "{}: {target}",
                page.display()
            );
        }
    }
}
