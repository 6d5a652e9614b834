// SPDX-License-Identifier: GPL-2.0-only
//! Lines of Markdown that are no wider than those that people write.

/// The widest line, in characters.
pub const COLUMNS: usize = 120;

/// `text` in lines that are not too wide, the last with its end. The first begins with `first`, and the others are
/// indented by `indent`. A code span stays in one line, and no line begins with what Markdown takes for a list.
pub fn wrap(first: &str, indent: usize, text: &str) -> String {
    let mut lines = vec![first.to_string()];
    let mut is_new = true;
    for word in words(text) {
        let line = lines.last_mut().expect("there is a first line");
        if !is_new && line.chars().count() + 1 + word.chars().count() > COLUMNS {
            lines.push(" ".repeat(indent) + &word);
        } else {
            line.push_str(if is_new { "" } else { " " });
            line.push_str(&word);
        }
        is_new = false;
    }
    lines.join("\n") + "\n"
}

/// The parts of `text` between which a line may end.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let in_code = words.last().is_some_and(|last| last.matches('`').count() % 2 == 1);
        let is_number = word.strip_suffix(['.', ')']).is_some_and(|number| number.parse::<u64>().is_ok());
        let is_operator = word.chars().all(|c| "+-*=<>|#".contains(c));
        match words.last_mut() {
            Some(last) if in_code || is_operator || is_number => *last = format!("{last} {word}"),
            _ => words.push(word.to_string()),
        }
    }
    words
}

/// A page with its paragraphs wrapped. Tables, headings and pictures stay as they are.
pub fn wrapped(page: &str) -> String {
    let is_prose = |block: &str| block.lines().all(|line| !line.starts_with(['|', '#', '!', '-', '`']));
    let blocks = page.trim_end().split("\n\n");
    let wrapped = blocks.map(|block| match is_prose(block) {
        true => wrap("", 0, block).trim_end().to_string(),
        false => block.to_string(),
    });
    wrapped.collect::<Vec<_>>().join("\n\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_wide_as_they_may_be_and_no_wider() {
        let text = "word ".repeat(100);
        let lines: Vec<String> = wrap("- ", 2, &text).lines().map(String::from).collect();
        assert!(lines.iter().all(|line| line.chars().count() <= COLUMNS), "{lines:?}");
        assert!(lines[0].starts_with("- word") && lines[1].starts_with("  word"), "{lines:?}");
        assert_eq!(lines.iter().rev().skip(1).map(String::len).min(), Some(116), "{lines:?}");
    }

    #[test]
    fn code_stays_together_and_nothing_becomes_a_list() {
        let filler = "x".repeat(COLUMNS - 4);
        for (tail, wanted) in [("a `b c` d", "`b c` d\n"), ("a + b", "b\n"), ("see 3. It", "It\n")] {
            let text = wrap("", 0, &format!("{filler} {tail}"));
            assert!(!text.lines().any(|line| line.starts_with(['+', '3'])), "{text}");
            assert!(text.ends_with(wanted), "{text}");
        }
    }

    #[test]
    fn a_page_keeps_its_tables_and_headings() {
        let long = "word ".repeat(60);
        let (table, heading) = (format!("| {long}|\n|---|"), format!("# {long}x"));
        let page = wrapped(&format!("{heading}\n\n{long}\nmore\n\n{table}\n"));
        assert!(page.starts_with(&heading) && page.ends_with(&format!("\n\n{table}\n")), "{page}");
        assert!(page.lines().filter(|line| line.starts_with("word")).all(|line| line.len() <= COLUMNS), "{page}");
        assert_eq!(wrapped(&page), page);
    }
}
