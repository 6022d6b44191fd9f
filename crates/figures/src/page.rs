//! Pages of HTML that need nothing else: they work without a script, in light and dark, and on a phone.
//!
//! It owns the frame of a page, its style, and tables. Words given to it are escaped here; a body is markup,
//! in which its writer has escaped what comes from outside.
use std::fmt::Write;

use crate::markup::escape;
use crate::words;

/// Of every page, with its plots.
const STYLE: &str = concat!(include_str!("plot.css"), include_str!("page.css"));

/// A page of a title, more style than every page has (may be empty), and a body.
pub fn whole(title: &str, style: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{}</title><style>{STYLE}{style}</style></head><body>{body}</body></html>\n",
        escape(title)
    )
}

/// A list of warnings, to stand before anything that they may make worthless. Nothing when there is none.
pub fn warnings(warnings: &[String]) -> String {
    if warnings.is_empty() {
        return String::new();
    }
    let item = |warning: &String| format!("<li><strong>Warning:</strong> {}</li>", escape(warning));
    let items: String = warnings.iter().map(item).collect();
    format!("<ul class=\"warnings\" role=\"alert\">{items}</ul>")
}

/// A table whose first column names the row, and whose others are figures, which no line ends in.
pub fn table<H: AsRef<str>>(head: &[H], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = "<div class=\"wide\"><table><thead><tr>".to_owned();
    for (index, name) in head.iter().enumerate() {
        let class = if index > 0 { " class=\"number\"" } else { "" };
        let _ = write!(table, "<th scope=\"col\"{class}>{}", escape(name.as_ref()));
    }
    table.push_str("</tr></thead><tbody>");
    for row in rows {
        for (index, cell) in row.iter().enumerate() {
            let _ = match index {
                0 => write!(table, "<tr><th scope=\"row\">{}", escape(cell)),
                _ => write!(table, "<td class=\"number\">{}", words::unbroken(&escape(cell))),
            };
        }
        table.push_str("</tr>");
    }
    table.push_str("</tbody></table></div>");
    table
}

/// The command that made what the page shows, and names with their values, below the heading "How it was
/// measured".
pub fn colophon<N: AsRef<str>, V: AsRef<str>>(
    command: &str,
    facts: impl IntoIterator<Item = (N, V)>,
) -> String {
    // A word of the command is broken only when it is longer than a line: not at the hyphens of a flag.
    let words_of_command = command.split(' ').map(|word| format!("<span>{}</span>", escape(word)));
    let command = words_of_command.collect::<Vec<String>>().join(" ");
    let mut text = format!("<h2>How it was measured</h2><pre><code>{command}</code></pre><dl>");
    for (name, value) in facts {
        let _ = write!(text, "<dt>{}<dd>{}", escape(name.as_ref()), escape(value.as_ref()));
    }
    text.push_str("</dl>");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_from_outside_cannot_become_markup() {
        let row = || vec!["<b>a".to_owned(), "1 <i>".to_owned()];
        let body = [
            warnings(&["<script>".to_owned()]),
            table(&["<u>name", "n"], [row(), row()]),
            colophon("staunch <s>", [("<em>", "<em>")]),
        ];
        let page = whole("<title>", "", &body.concat());
        for tag in ["<b>", "<i>", "<script", "<u>", "<s>", "<em>", "<title><"] {
            assert!(!page.contains(tag), "{tag}");
        }
        assert!(page.contains("<tr><th scope=\"row\">&lt;b&gt;a<td class=\"number\">1\u{a0}&lt;i&gt;</tr>"));
        assert_eq!(warnings(&[]), "");
    }
}
