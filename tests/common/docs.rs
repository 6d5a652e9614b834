// SPDX-License-Identifier: GPL-2.0-only
//! The pages of the documentation: what is in them, and how those are kept that the code makes.

#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};

/// The text of a file.
pub fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.as_ref().display()))
}

/// All files below `dir`.
pub fn files_below(dir: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(path.to_str().unwrap()) } else { vec![path] }).collect()
}

/// All pages that people write or read: those in the top directory and in docs/.
pub fn pages() -> Vec<PathBuf> {
    let of = |dir: &str| fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let mut pages: Vec<PathBuf> = of("docs").chain(of(".")).filter(is_page).collect();
    pages.iter_mut().for_each(|path| *path = path.strip_prefix(".").unwrap_or(path).to_path_buf());
    pages.sort();
    assert!(pages.len() > 10, "{pages:?}");
    pages
}

/// Fails if `text` is not what the file has. With COSCHED_WRITE_DOCS in the environment (`make docs`), writes it.
pub fn is_committed(path: &str, text: &str) {
    if std::env::var_os("COSCHED_WRITE_DOCS").is_some() {
        return fs::write(path, text).unwrap();
    }
    let committed = fs::read_to_string(path).unwrap_or_default();
    let differs = committed.lines().zip(text.lines()).position(|(a, b)| a != b);
    let line = differs.unwrap_or(committed.lines().count().min(text.lines().count())) + 1;
    assert!(committed == text, "{path}: line {line} is not what the code makes of it any more (run `make docs`)");
}

/// What a page has in code: the lines of its blocks by their language, and its spans.
pub struct Code {
    /// Where it stands: `docs/hints.md:12`.
    pub place: String,
    /// The language of its block; none: a span.
    pub language: Option<String>,
    /// A line of a block, with those that a backslash at its end continues, or a span.
    pub text: String,
}

/// All code of a page.
pub fn code_of(page: &str, text: &str) -> Vec<Code> {
    let mut found: Vec<Code> = Vec::new();
    let mut language: Option<String> = None;
    let mut prose = String::new();
    let mut begins = 1;
    for (number, line) in (1..).zip(text.lines()) {
        let place = format!("{page}:{number}");
        if let Some(rest) = line.trim_start().strip_prefix("```") {
            spans(page, begins, &std::mem::take(&mut prose), &mut found);
            begins = number + 1;
            language = if language.is_some() { None } else { Some(rest.trim().to_string()) };
        } else if let Some(language) = &language {
            match found.last_mut().filter(|last| last.language.is_some() && last.text.ends_with('\\')) {
                Some(last) => last.text = last.text.trim_end_matches('\\').to_string() + line.trim_start(),
                None => found.push(Code { place, language: Some(language.clone()), text: line.into() }),
            }
            begins = number + 1;
        } else {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    spans(page, begins, &prose, &mut found);
    found
}

/// The code spans of `prose`, which begins at the line `begins`. None goes beyond its paragraph or row.
fn spans(page: &str, begins: usize, prose: &str, found: &mut Vec<Code>) {
    let mut span: Option<String> = None;
    for (number, line) in (begins..).zip(prose.lines()) {
        if line.trim().is_empty() {
            span = None;
        }
        for (i, part) in line.split('`').enumerate() {
            match (&mut span, i) {
                (Some(text), 0) => *text = format!("{text} {}", part.trim_start()),
                (None, 0) => {}
                (Some(_), _) => {
                    let text = span.take().unwrap().trim().to_string();
                    found.push(Code { place: format!("{page}:{number}"), language: None, text });
                }
                (None, _) => span = Some(part.to_string()),
            }
        }
    }
}
