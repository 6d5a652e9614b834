// SPDX-License-Identifier: GPL-2.0-only
//! No function of the kernel's part and of the rules has more than 50 lines.

mod common;

use common::docs::{files_below, read};

const MOST: usize = 50;

/// Name and lines of each function in a C file in the kernel's style, whose braces stand at the beginning of a line.
fn functions(code: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = code.lines().collect();
    let mut found = Vec::new();
    for (begin, _) in lines.iter().enumerate().filter(|(_, line)| **line == "{") {
        let body = lines[begin..].iter().position(|line| *line == "}").expect("a function that ends");
        found.push((lines[begin - 1].to_string(), body - 1));
    }
    found
}

#[test]
fn functions_are_short() {
    let mut seen = 0;
    let files = ["bpf", "policies"].into_iter().flat_map(files_below);
    for path in files.filter(|path| path.extension().is_some_and(|extension| extension == "h" || extension == "c")) {
        for (name, lines) in functions(&read(&path)) {
            assert!(lines <= MOST, "{}: '{name}' has {lines} lines", path.display());
            seen += 1;
        }
    }
    assert!(seen > 300, "only {seen} functions were found");
}

#[test]
fn a_long_function_is_found() {
    let long = format!("static int f(void)\n{{\n{}}}\n", "\tx++;\n".repeat(51));
    assert_eq!(functions(&long), [("static int f(void)".to_string(), 51)]);
}
