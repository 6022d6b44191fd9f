//! Tables of words for a terminal: columns as wide as their longest cell.
//!
//! It must never colour: what is aligned is painted afterwards, because colours have no width.

/// How a column stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Figures.
    Right,
}

/// Rows of cells as lines, two blanks between columns, no blanks at the end of a line. A row may be shorter
/// than others; columns beyond `aligns` stand to the left.
pub fn lines(rows: &[Vec<String>], aligns: &[Align]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    rows.iter().map(|row| line(row, &widths, aligns)).collect()
}

fn line(row: &[String], widths: &[usize], aligns: &[Align]) -> String {
    let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
        match aligns.get(column).unwrap_or(&Align::Left) {
            Align::Left => format!("{cell:<width$}"),
            Align::Right => format!("{cell:>width$}"),
        }
    });
    cells.collect::<Vec<String>>().join("  ").trim_end().to_owned()
}

/// Words in lines of at most `width` characters, broken between words. A word that is longer stands alone.
pub fn wrap(words: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_longest_cell() {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<String>>();
        let rows = [row(&["a", "1 000", "x"]), row(&["longer", "2"]), row(&["", "", "y"])];
        assert_eq!(
            lines(&rows, &[Align::Left, Align::Right]),
            ["a       1 000  x", "longer      2", "               y"]
        );
        assert_eq!(lines(&[], &[]), Vec::<String>::new());
    }

    #[test]
    fn words_are_wrapped_between_them() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("extraordinarily long", 4), ["extraordinarily", "long"]);
        assert_eq!(wrap("  ", 4), Vec::<String>::new());
    }
}
