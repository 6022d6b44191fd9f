//! Numbers, tables and paragraphs as Markdown that is pleasant to read as text, too.
//!
//! The module owns their form. It must never know what is told.

/// Text of the page is broken here, as in the other documents.
const COLUMNS: usize = 110;
/// From here on a figure has no digits behind the point, and groups of three before it.
const WHOLE_FROM: f64 = 1000.0;

/// A number with three digits that matter, or whole, in groups.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if size >= WHOLE_FROM {
        return grouped(value);
    }
    if value == value.trunc() {
        return format!("{value:.0}");
    }
    let before = size.log10().floor() as i32 + 1;
    let digits = usize::try_from(3 - before).unwrap_or(0);
    format!("{value:.digits$}")
}

fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

/// A table of Markdown whose columns stand below each other.
pub(super) fn table(head: &[&str], is_right: &[bool], rows: &[Vec<String>]) -> String {
    let width_of = |text: &str| text.chars().count();
    let mut widths: Vec<usize> = head.iter().map(|word| width_of(word)).collect();
    for row in rows {
        widths.iter_mut().zip(row).for_each(|(width, cell)| *width = (*width).max(width_of(cell)));
    }
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let padded = |cells: &[String]| {
        let pad = |((cell, width), right): ((&String, &usize), &bool)| {
            let space = " ".repeat(width - width_of(cell));
            if *right { space + cell } else { cell.clone() + &space }
        };
        line(cells.iter().zip(&widths).zip(is_right).map(pad).collect())
    };
    let rule = |(width, right): (&usize, &bool)| {
        if *right { "-".repeat(width.saturating_sub(1)) + ":" } else { "-".repeat(*width) }
    };
    let head: Vec<String> = head.iter().map(|word| (*word).to_owned()).collect();
    let rules = line(widths.iter().zip(is_right).map(rule).collect());
    padded(&head) + &rules + &rows.iter().map(|row| padded(row)).collect::<String>()
}

/// A paragraph, broken between words; code of one word or many is not broken.
pub(super) fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut length = 0;
    for word in pieces(text) {
        let width = word.chars().count();
        if length > 0 && length + 1 + width > COLUMNS {
            lines.push('\n');
            length = 0;
        } else if length > 0 {
            lines.push(' ');
            length += 1;
        }
        lines += &word;
        length += width;
    }
    lines + "\n"
}

/// Words; those between back-quotes stay together.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut is_code = false;
    for word in text.split_ascii_whitespace() {
        match pieces.last_mut().filter(|_| is_code) {
            Some(last) => *last += &format!(" {word}"),
            None => pieces.push(word.to_owned()),
        }
        is_code ^= word.matches('`').count() % 2 == 1;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_that_matter() {
        let table = [
            (0.0, "0"),
            (109.0, "109"),
            (-0.033_867, "-0.0339"),
            (0.981, "0.981"),
            (1.47, "1.47"),
            (47.04, "47.0"),
            (246.18, "246"),
            (152_616.4, "152 616"),
            (1_000_000.0, "1 000 000"),
            (-2627.2, "-2 627"),
        ];
        for (value, expected) in table {
            assert_eq!(number(value), expected);
        }
    }

    #[test]
    fn columns_stand_below_each_other() {
        let rows = [vec!["1".to_owned(), "long".to_owned()], vec![String::new(), "x".to_owned()]];
        let expected = "| no | what |\n| -: | ---- |\n|  1 | long |\n|    | x    |\n";
        assert_eq!(table(&["no", "what"], &[true, false], &rows), expected);
    }

    #[test]
    fn paragraphs_are_broken_between_words_and_code_is_not() {
        let text = format!("{} `cargo xtask bench one` more", "word ".repeat(20));
        let lines = wrapped(&text);
        assert!(lines.lines().all(|line| line.len() <= COLUMNS) && lines.ends_with("more\n"), "{lines}");
        assert!(lines.contains("\n`cargo xtask bench one`"), "{lines}");
    }
}
