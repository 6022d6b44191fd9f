//! Requests as an application gets them, and the rules that each must keep, whatever its client wrote.
//!
//! It must never be lenient: it is the judge of what the proxy wrote (RFC 9112, section 3, 6 and 7).

use crate::conversation::escape;
use crate::response::{Fields, find, read_chunked, read_fields, split_lines};

/// A whole request.
#[derive(Debug, Clone)]
pub struct Received {
    /// The request line.
    pub line: String,
    /// Fields in order: name as sent, value without surrounding white space.
    pub fields: Fields,
    /// The body, with a chunked coding undone.
    pub body: Vec<u8>,
}

impl Received {
    /// Reads one request from the start of the bytes and says how many it took; `None` when more must come.
    /// With `without_body` the request ends with its head.
    ///
    /// # Errors
    /// A sentence that says which rule the bytes break.
    pub fn read(bytes: &[u8], without_body: bool) -> Result<Option<(Self, usize)>, String> {
        let Some(end) = find(bytes, b"\r\n\r\n") else { return Ok(None) };
        let mut lines = split_lines(&bytes[..end])?.into_iter();
        let line = lines.next().unwrap_or_default();
        let fields = read_fields(lines)?;
        let mut request = Self { line: String::from_utf8_lossy(line).into_owned(), fields, body: Vec::new() };
        request.check_head()?;
        let (head_bytes, rest) = (end + 4, &bytes[end + 4..]);
        if without_body {
            return Ok(Some((request, head_bytes)));
        }
        let body = match (request.value("Transfer-Encoding"), request.value("Content-Length")) {
            (Some(_), _) => read_chunked(rest)?,
            (None, None) => Some((Vec::new(), 0)),
            (None, Some(length)) => {
                let length = length.parse().map_err(|_| format!("Content-Length: {length}"))?;
                rest.get(..length).map(|body| (body.to_vec(), length))
            }
        };
        let Some((body, body_bytes)) = body else { return Ok(None) };
        request.body = body;
        Ok(Some((request, head_bytes + body_bytes)))
    }

    fn value(&self, name: &str) -> Option<String> {
        let field = self.fields.iter().find(|(field, _)| field.eq_ignore_ascii_case(name))?;
        Some(String::from_utf8_lossy(&field.1).into_owned())
    }

    /// The rules that hold whatever was asked: one reader of the bytes must understand what every other does.
    fn check_head(&self) -> Result<(), String> {
        const ONCE: [&str; 4] = ["Host", "Via", "X-Forwarded-Proto", "X-Real-IP"];
        const NEVER: [&str; 6] =
            ["Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Proxy", "Expect", "Trailer"];
        let words: Vec<&str> = self.line.split(' ').collect();
        let [method, target, "HTTP/1.1"] = words[..] else {
            return Err(format!("request line: {}", escape(self.line.as_bytes())));
        };
        let is_token = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
        if !is_token || !(target == "*" || target.starts_with('/')) {
            return Err(format!("request line: {}", escape(self.line.as_bytes())));
        }
        let count =
            |name: &str| self.fields.iter().filter(|(field, _)| field.eq_ignore_ascii_case(name)).count();
        if self.fields.first().is_none_or(|(name, _)| name != "Host") {
            return Err("Host does not stand first (RFC 9110, 7.2)".to_owned());
        }
        if let Some(name) = ONCE.into_iter().find(|name| count(name) != 1) {
            return Err(format!("{name} came {} times", count(name)));
        }
        if let Some(name) = NEVER.into_iter().find(|name| count(name) > 0) {
            return Err(format!("{name} was passed on"));
        }
        if count("Content-Length") + count("Transfer-Encoding") > 1 {
            return Err("more than one length (RFC 9112, 6.3)".to_owned());
        }
        if let Some(coding) = self.value("Transfer-Encoding")
            && coding != "chunked"
        {
            return Err(format!("Transfer-Encoding: {coding}"));
        }
        match self.fields.iter().find(|(name, _)| name.contains('_')) {
            Some((name, _)) => Err(format!("{name} was passed on, which CGI takes for another")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "Via: 1.1 a\r\nX-Forwarded-Proto: http\r\nX-Real-IP: 127.0.0.1\r\n";

    #[test]
    fn a_request_is_read_with_its_body() {
        for (length, body) in
            [("Content-Length: 3", "abc"), ("Transfer-Encoding: chunked", "3\r\nabc\r\n0\r\n\r\n")]
        {
            let bytes = format!("POST /x HTTP/1.1\r\nHost: a\r\n{OURS}{length}\r\n\r\n{body}GET /");
            let (request, taken) = Received::read(bytes.as_bytes(), false).expect("right").expect("whole");
            assert_eq!((&request.body[..], taken), (&b"abc"[..], bytes.len() - 5), "{length}");
            for cut in 0..taken {
                let part = Received::read(&bytes.as_bytes()[..cut], false).expect("right so far");
                assert!(part.is_none(), "{length}, {cut}");
            }
        }
    }

    #[test]
    fn broken_rules_are_seen() {
        let table = [
            format!("GET /  HTTP/1.1\r\nHost: a\r\n{OURS}\r\n"),
            format!("GET /x HTTP/1.0\r\nHost: a\r\n{OURS}\r\n"),
            format!("GET x HTTP/1.1\r\nHost: a\r\n{OURS}\r\n"),
            format!("GET /x HTTP/1.1\r\n{OURS}Host: a\r\n\r\n"),
            format!("GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n{OURS}\r\n"),
            format!("GET /x HTTP/1.1\r\nHost: a\r\n{OURS}Keep-Alive: 5\r\n\r\n"),
            format!("GET /x HTTP/1.1\r\nHost: a\r\n{OURS}X_Real_IP: 1\r\n\r\n"),
            format!(
                "POST /x HTTP/1.1\r\nHost: a\r\n{OURS}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
            ),
            format!("POST /x HTTP/1.1\r\nHost: a\r\n{OURS}Content-Length: 1\r\nContent-Length: 1\r\n\r\na"),
            "GET /x HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
        ];
        for wrong in table {
            assert!(Received::read(wrong.as_bytes(), false).is_err(), "{wrong:?}");
        }
    }
}
