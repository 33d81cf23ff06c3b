//! The text of an item in the source, as one line.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The files that were read.
pub(crate) struct Sources {
    root: PathBuf,
    files: HashMap<String, Vec<String>>,
}

impl Sources {
    pub(crate) fn new(root: &Path) -> Sources {
        Sources {
            root: root.to_owned(),
            files: HashMap::new(),
        }
    }

    /// Returns the lines that `item` spans, without comments and attributes.
    pub(crate) fn text(&mut self, item: &Value) -> io::Result<String> {
        let span = &item["span"];
        let Some(name) = span["filename"].as_str() else {
            return Ok(String::new());
        };
        let line = |end: &str| span[end][0].as_u64().unwrap_or(1) as usize;
        let lines = self.file(name)?;
        let lines = &lines[line("begin") - 1..line("end").min(lines.len())];
        let code = lines.iter().map(|line| line.trim());
        let code: Vec<&str> = code.filter(|line| is_code(line)).collect();
        Ok(tidy(&code.join(" ")))
    }

    fn file(&mut self, name: &str) -> io::Result<&[String]> {
        if !self.files.contains_key(name) {
            let text = fs::read_to_string(self.root.join(name))?;
            let lines = text.lines().map(str::to_owned).collect();
            self.files.insert(name.to_owned(), lines);
        }
        Ok(&self.files[name])
    }
}

fn is_code(line: &str) -> bool {
    !line.starts_with("//") && !line.starts_with("#[")
}

/// Undoes the line breaks of rustfmt.
fn tidy(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = text.replace("( ", "(").replace(", )", ")");
    let text = text.replace("(mut ", "(").replace(", mut ", ", "); // the caller does not see it
    text.replace("< ", "<").replace(", >", ">")
}

/// Returns the text before a body.
pub(crate) fn head(text: &str) -> &str {
    let end = text.find(['{', ';']).unwrap_or(text.len());
    text[..end].trim().trim_end_matches(',')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_one_line_without_its_body() {
        let text =
            tidy("pub fn\n  find<Q>(\n  key: &Q,\n  ) -> bool\n  where\n  Q: Eq,\n  {\n  x\n}");
        assert_eq!(head(&text), "pub fn find<Q>(key: &Q) -> bool where Q: Eq");
        assert_eq!(head("pub struct Readme;"), "pub struct Readme");
        assert!(
            !is_code("/// A comment.") && !is_code("#[inline]") && is_code("pub level: usize,")
        );
    }
}
