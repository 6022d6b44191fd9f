//! Colours of the terminal, used only when the caller says that there is one that shows them.

/// Red and bold: something is wrong.
pub const BAD: &str = "31;1";
/// Yellow: something is to be known.
pub const CARE: &str = "33";
/// Green: as wanted.
pub const GOOD: &str = "32";
/// Faint: of less weight.
pub const QUIET: &str = "2";
/// Bold: what is read first.
pub const LOUD: &str = "1";

/// The words in a colour, or as they are.
pub fn paint(words: &str, code: &str, colour: bool) -> String {
    if colour && !words.is_empty() { format!("\u{1b}[{code}m{words}\u{1b}[0m") } else { words.to_owned() }
}
