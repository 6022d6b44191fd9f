//! Lists of quotes: lines of script, each made when its value is published.
//!
//! It owns what a symbol may be, and that no value can end its line: pages run these bytes. It must never
//! leave a byte of a value as it is that a script would read as more than text.

use std::fmt;

use crate::limits::{SYMBOL_BYTES_MAX, SYMBOLS_MAX};

/// Why a list is refused; the answer is 400.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListFault {
    /// More than [`SYMBOLS_MAX`].
    TooMany,
    /// The symbol with this number, from 1, is none.
    Symbol(usize),
}

impl fmt::Display for ListFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => write!(f, "a list has at most {SYMBOLS_MAX} symbols"),
            Self::Symbol(number) => write!(
                f,
                "symbol {number} is none: 1 to {SYMBOL_BYTES_MAX} letters, digits, `_`, `.`, `$`, `-`"
            ),
        }
    }
}

impl std::error::Error for ListFault {}

/// Whether a text is a symbol.
pub fn is_symbol(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_.$-".contains(&byte);
    (1..=SYMBOL_BYTES_MAX).contains(&text.len()) && text.bytes().all(fits)
}

/// The symbols of a list, in the order asked; none for an empty list.
///
/// # Errors
/// Too many symbols, or the first one that is none.
pub fn read_list(list: &str) -> Result<Vec<&str>, ListFault> {
    if list.is_empty() {
        return Ok(Vec::new());
    }
    let mut symbols = Vec::new();
    for (place, symbol) in list.split(',').enumerate() {
        if place == SYMBOLS_MAX {
            return Err(ListFault::TooMany);
        }
        if !is_symbol(symbol) {
            return Err(ListFault::Symbol(place + 1));
        }
        symbols.push(symbol);
    }
    Ok(symbols)
}

/// Whether a prefix can begin the name of a variable; it may be empty.
pub fn is_prefix(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_$".contains(&byte);
    text.len() <= SYMBOL_BYTES_MAX
        && text.bytes().all(fits)
        && !text.starts_with(|c: char| c.is_ascii_digit())
}

/// Appends `var PREFIXsymbol="VALUE";` and a line end. A symbol that is unknown has an empty value.
pub fn append_line(prefix: &str, symbol: &str, value: &[u8], output: &mut Vec<u8>) {
    output.extend_from_slice(b"var ");
    output.extend_from_slice(prefix.as_bytes());
    output.extend_from_slice(symbol.as_bytes());
    output.extend_from_slice(b"=\"");
    let mut last = ' ';
    for character in String::from_utf8_lossy(value).chars() {
        match character {
            '"' | '\\' => output.extend_from_slice(&[b'\\', character as u8]),
            '/' if last == '<' => output.extend_from_slice(b"\\/"),
            '\n' => output.extend_from_slice(b"\\n"),
            '\r' => output.extend_from_slice(b"\\r"),
            '\0'..='\u{1f}' | '\u{7f}' | '\u{2028}' | '\u{2029}' => {
                output.extend_from_slice(format!("\\u{:04x}", u32::from(character)).as_bytes());
            }
            _ => output.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        last = character;
    }
    output.extend_from_slice(b"\";\n");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists() {
        let many = vec!["s"; SYMBOLS_MAX].join(",");
        assert_eq!(read_list(""), Ok(vec![]));
        assert_eq!(read_list("sz000609,s_sh.1,a-$"), Ok(vec!["sz000609", "s_sh.1", "a-$"]));
        assert_eq!(read_list(&many).map(|symbols| symbols.len()), Ok(SYMBOLS_MAX));
        assert_eq!(read_list(&format!("{many},s")), Err(ListFault::TooMany));
        for (list, place) in [("a,", 2), (",", 1), ("a,b c", 2), ("ä", 1), (&"x".repeat(33), 1), ("a,b<", 2)]
        {
            assert_eq!(read_list(list), Err(ListFault::Symbol(place)), "{list}");
        }
        assert!(is_prefix("") && is_prefix("hq_str_") && !is_prefix("1a") && !is_prefix("a-"));
    }

    #[test]
    fn lines() {
        let table = [
            ("3.20,3.21", "var hq_s1=\"3.20,3.21\";\n"),
            ("", "var hq_s1=\"\";\n"),
            ("a\"b\\c", "var hq_s1=\"a\\\"b\\\\c\";\n"),
            ("a\r\nb\u{2028}\u{2029}\0", "var hq_s1=\"a\\r\\nb\\u2028\\u2029\\u0000\";\n"),
            ("</script><b/>", "var hq_s1=\"<\\/script><b/>\";\n"),
        ];
        for (value, line) in table {
            let mut output = Vec::new();
            append_line("hq_", "s1", value.as_bytes(), &mut output);
            assert_eq!(String::from_utf8(output).unwrap(), line);
        }
    }

    proptest! {
        #[test]
        fn no_value_ends_its_line(value: Vec<u8>) {
            let mut output = Vec::new();
            append_line("", "s", &value, &mut output);
            let text = String::from_utf8(output).unwrap();
            let inner = text.strip_prefix("var s=\"").unwrap().strip_suffix("\";\n").unwrap();
            let ends_a_line = ['\n', '\r', '\u{2028}', '\u{2029}'];
            prop_assert!(!inner.contains(ends_a_line));
            prop_assert!(!inner.contains("</"));
            // The literal reads as the value: its escapes are those of JSON.
            let read: String = serde_json::from_str(&format!("\"{inner}\"")).unwrap();
            prop_assert_eq!(read, String::from_utf8_lossy(&value));
        }
    }
}
