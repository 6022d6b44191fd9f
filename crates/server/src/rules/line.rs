//! Field lines an operator wants added: what may stand in them, and which are not the operator's to set.
//!
//! It owns RFC 9110, section 5, for what is sent. It must never let a line through that could end early or
//! contradict one of the server's own.

use std::fmt::Write;

/// Fields the server alone can know, or that belong to the connection (RFC 9110, section 7.6.1).
const OWN_NAMES: [&str; 22] = [
    "accept-ranges",
    "allow",
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expect",
    "keep-alive",
    "last-modified",
    "location",
    "proxy-connection",
    "retry-after",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "vary",
    "www-authenticate",
];

/// Whether a field may be set: its name is a token that is not the server's own, its value visible ASCII with
/// spaces and tabs inside only.
///
/// # Errors
/// What is wrong, naming the field.
pub(crate) fn check(name: &str, value: &str) -> Result<(), String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(format!("headers: {name:?} is no field name (letters, digits and dashes)"));
    }
    if name.eq_ignore_ascii_case("content-type") {
        return Err(format!("headers: {name} is said by `types` and `charset`"));
    }
    if OWN_NAMES.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        return Err(format!("headers: {name} is set by the server itself"));
    }
    if name.eq_ignore_ascii_case("x-content-type-options") && !matches!(value, "" | "nosniff") {
        return Err(format!("headers: {name} is always nosniff"));
    }
    check_value(name, value)
}

/// Whether a value may be sent.
///
/// # Errors
/// What is wrong, naming the field.
pub(crate) fn check_value(name: &str, value: &str) -> Result<(), String> {
    match value.bytes().find(|byte| !matches!(byte, b'\t' | b' '..=b'~')) {
        Some(_) => Err(format!("{name}: {value:?} has a byte that no field value may have")),
        None if value.trim() != value => Err(format!("{name}: {value:?} begins or ends with a space")),
        None => Ok(()),
    }
}

/// Fields in the order in which they were first set, each name once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lines(Vec<(String, String)>);

impl Lines {
    /// Sets a field, in place of the one of this name. An empty value takes it away.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        let place = self.0.iter().position(|(known, _)| known.eq_ignore_ascii_case(name));
        match place {
            Some(place) if value.is_empty() => _ = self.0.remove(place),
            Some(place) => self.0[place].1 = value.to_owned(),
            // What the server sends in any case.
            None if value.is_empty() || name.eq_ignore_ascii_case("x-content-type-options") => {}
            None => self.0.push((name.to_owned(), value.to_owned())),
        }
    }

    /// The value of a field.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        Some(value)
    }

    /// Takes a field out.
    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        let place = self.0.iter().position(|(known, _)| known.eq_ignore_ascii_case(name))?;
        Some(self.0.remove(place).1)
    }

    /// As they are sent.
    pub(crate) fn text(&self) -> String {
        self.0.iter().fold(String::new(), |mut text, (name, value)| {
            let _ = write!(text, "{name}: {value}\r\n");
            text
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields() {
        for (name, value, good) in [
            ("X-Frame-Options", "DENY", true),
            ("Content-Security-Policy", "default-src 'self'; img-src *", true),
            ("X-Empty", "", true),
            ("X-Content-Type-Options", "nosniff", true),
            ("X-Content-Type-Options", "sniff", false),
            ("", "a", false),
            ("X Y", "a", false),
            ("X:", "a", false),
            ("X\r\nY", "a", false),
            ("X-A", "a\r\nSet-Cookie: b", false),
            ("X-A", "a\0", false),
            ("X-A", " a", false),
            ("X-A", "ü", false),
            ("Content-length", "1", false),
            ("DATE", "1", false),
            ("Transfer-Encoding", "chunked", false),
        ] {
            assert_eq!(check(name, value).is_ok(), good, "{name}: {value}");
        }
    }

    #[test]
    fn later_lines_override() {
        let mut lines = Lines::default();
        for (name, value) in [("A", "1"), ("B", "2"), ("a", "3"), ("C", "4"), ("b", ""), ("D", "")] {
            lines.set(name, value);
        }
        assert_eq!(lines.text(), "A: 3\r\nC: 4\r\n");
        assert_eq!(lines.take("c").as_deref(), Some("4"));
    }
}
