// SPDX-License-Identifier: GPL-2.0-only
//! Lists of the readings of a paper that hold, by their names.

/// Which of `names` are in `text`: names with commas between them, or none.
pub fn parse<R, const N: usize>(names: &[(R, &str); N], text: &str) -> Result<[bool; N], String> {
    let mut held = [false; N];
    for word in text.split(',').filter(|_| text != "none") {
        let known = || names.each_ref().map(|(_, name)| *name).join(", ");
        let place = names.iter().position(|(_, name)| *name == word);
        held[place.ok_or_else(|| format!("unknown reading '{word}' (known: {}; or none)", known()))?] = true;
    }
    Ok(held)
}

/// What [`parse`] takes.
pub fn list<R, const N: usize>(names: &[(R, &str); N], held: &[bool; N]) -> String {
    let held: Vec<&str> = names.iter().zip(held).filter(|(_, held)| **held).map(|((_, name), _)| *name).collect();
    if held.is_empty() { "none".into() } else { held.join(",") }
}
