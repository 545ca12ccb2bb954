//! Text from a service, which may be hostile.

/// Returns what a service says, shortened to a maximum length, without characters that could control a terminal.
pub(crate) fn printable(text: &str) -> String {
    const LONGEST: usize = 1000;
    let mut out: String = text.chars().take(LONGEST).map(shown).collect();
    if text.chars().nth(LONGEST).is_some() {
        out += "...";
    }
    out
}

/// Reports whether a character could change how others look: controls, and marks of direction.
pub(crate) fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A character as it is, or a sign for one that could change how others look.
fn shown(c: char) -> char {
    if is_control(c) { char::REPLACEMENT_CHARACTER } else { c }
}
