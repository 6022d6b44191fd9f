//! Names of any bytes in HTML text and in links.
//!
//! Owns the escaping: nothing a name holds may end an element or an attribute, start a scheme, a query or a
//! fragment, turn the direction of the text around it, or be lost from a link. Never touches a file.

/// Appends a name as text of an HTML element. Bytes that are not UTF-8 appear as `\xNN` and characters nobody
/// would see (controls, turns of the writing direction) as `\u{NN}`, marked so that they are not taken for
/// the name.
pub(super) fn push_text(page: &mut Vec<u8>, name: &[u8]) {
    for chunk in name.utf8_chunks() {
        let mut plain_from = 0;
        for (at, character) in chunk.valid().char_indices() {
            let plain = !matches!(character, '&' | '<' | '>' | '"' | '\'') && !is_unseen(character);
            if plain {
                continue;
            }
            page.extend_from_slice(&chunk.valid().as_bytes()[plain_from..at]);
            plain_from = at + character.len_utf8();
            match character {
                '&' => page.extend_from_slice(b"&amp;"),
                '<' => page.extend_from_slice(b"&lt;"),
                '>' => page.extend_from_slice(b"&gt;"),
                '"' => page.extend_from_slice(b"&quot;"),
                '\'' => page.extend_from_slice(b"&#39;"),
                unseen => push_mark(page, &format!("\\u{{{:02X}}}", u32::from(unseen))),
            }
        }
        page.extend_from_slice(&chunk.valid().as_bytes()[plain_from..]);
        for byte in chunk.invalid() {
            push_mark(page, &format!("\\x{byte:02X}"));
        }
    }
}

fn push_mark(page: &mut Vec<u8>, text: &str) {
    page.extend_from_slice(b"<i>");
    page.extend_from_slice(text.as_bytes());
    page.extend_from_slice(b"</i>");
}

/// Characters without a shape of their own that could make a name look like another. The joiners U+200C and
/// U+200D stay as they are: scripts and emoji are written with them.
fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}')
}

/// Appends a name as one segment of a relative link (RFC 3986, section 3.3). All but unreserved characters
/// are percent-encoded, so `a:b` cannot be taken for a scheme nor `?` for a query, and no HTML escaping is
/// needed.
pub(super) fn push_segment(link: &mut Vec<u8>, name: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in name {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            link.push(byte);
        } else {
            let digit = |half: u8| DIGITS[usize::from(half & 15)];
            link.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{push_segment, push_text};

    #[test]
    fn text() {
        let table: [(&[u8], &str); 10] = [
            (b"plain.txt", "plain.txt"),
            (b"<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
            (b"a&b \"c\" 'd'", "a&amp;b &quot;c&quot; &#39;d&#39;"),
            ("Grüße 🎉".as_bytes(), "Grüße 🎉"),
            (b"\xFF", "<i>\\xFF</i>"),
            (b"a\xC3(b", "a<i>\\xC3</i>(b"),
            (b"line\nbreak\x7F", "line<i>\\u{0A}</i>break<i>\\u{7F}</i>"),
            ("harmless\u{202E}gpj.exe".as_bytes(), "harmless<i>\\u{202E}</i>gpj.exe"),
            ("zero\u{200B}width\u{FEFF}".as_bytes(), "zero<i>\\u{200B}</i>width<i>\\u{FEFF}</i>"),
            (b"", ""),
        ];
        for (name, wanted) in table {
            let mut page = Vec::new();
            push_text(&mut page, name);
            assert_eq!(String::from_utf8_lossy(&page), wanted);
        }
    }

    #[test]
    fn segments() {
        let table: [(&[u8], &str); 9] = [
            (b"plain-1.2_x~.txt", "plain-1.2_x~.txt"),
            (b"a b", "a%20b"),
            (b"?query", "%3Fquery"),
            (b"#fragment", "%23fragment"),
            (b"javascript:alert(1)", "javascript%3Aalert%281%29"),
            (b"100%", "100%25"),
            (b"back\\slash", "back%5Cslash"),
            ("ü".as_bytes(), "%C3%BC"),
            (b"\"'<&>\xFF\n", "%22%27%3C%26%3E%FF%0A"),
        ];
        for (name, wanted) in table {
            let mut link = Vec::new();
            push_segment(&mut link, name);
            assert_eq!(String::from_utf8_lossy(&link), wanted);
        }
    }
}
