//! Responses as they came, and the rules that every response must keep whatever was asked.
//!
//! It must never be lenient: it is the judge of what the server wrote (RFC 9112, section 4 to 7).

use crate::conversation::escape;

/// A whole response.
#[derive(Debug, Clone)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// Fields in order: name as sent, value without surrounding white space.
    pub fields: Fields,
    /// The body, with a chunked coding undone.
    pub body: Vec<u8>,
}

impl Response {
    /// Reads one response from the start of the bytes and says how many it took; `None` when more must come.
    /// With `without_body` the response ends with its head.
    ///
    /// # Errors
    /// A sentence that says which rule the bytes break.
    pub fn read(bytes: &[u8], without_body: bool) -> Result<Option<(Self, usize)>, String> {
        let Some(end) = find(bytes, b"\r\n\r\n") else {
            let start = &bytes[..bytes.len().min(9)];
            if b"HTTP/1.1 ".starts_with(start) {
                return Ok(None);
            }
            return Err(format!("no response begins with: {}", escape(bytes)));
        };
        let (status, fields) = read_head(&bytes[..end])?;
        let mut response = Self { status, fields, body: Vec::new() };
        let head_bytes = end + 4;
        response.check_head()?;
        if without_body || matches!(status, 100..200 | 204 | 304) {
            return Ok(Some((response, head_bytes)));
        }
        let taken = if response.has("Transfer-Encoding") {
            read_chunked(&bytes[head_bytes..])?.map(|(body, taken)| {
                response.body = body;
                taken
            })
        } else {
            let length = response.content_length()?.ok_or("the response has no length")?;
            let body = bytes[head_bytes..].get(..length);
            response.body = body.unwrap_or_default().to_vec();
            body.map(<[u8]>::len)
        };
        Ok(taken.map(|taken| (response, head_bytes + taken)))
    }

    /// The values of the fields of one name, in order.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.fields
            .iter()
            .filter(move |(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| &value[..])
    }

    /// The first value of a field, as text.
    pub fn value(&self, name: &str) -> Option<String> {
        self.values(name).next().map(|value| String::from_utf8_lossy(value).into_owned())
    }

    /// Whether there is a field of this name.
    pub fn has(&self, name: &str) -> bool {
        self.values(name).next().is_some()
    }

    fn content_length(&self) -> Result<Option<usize>, String> {
        let Some(value) = self.value("Content-Length") else { return Ok(None) };
        let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        if !digits {
            return Err(format!("Content-Length: {value}"));
        }
        value.parse().map(Some).map_err(|_| format!("Content-Length: {value}"))
    }

    fn check_head(&self) -> Result<(), String> {
        const SINGLE: [&str; 9] = [
            "Content-Length",
            "Content-Type",
            "Date",
            "ETag",
            "Last-Modified",
            "Location",
            "Server",
            "Content-Range",
            "Content-Encoding",
        ];
        for name in SINGLE {
            if self.values(name).count() > 1 {
                return Err(format!("{name} came more than once"));
            }
        }
        if self.has("Content-Length") && self.has("Transfer-Encoding") {
            return Err("both Content-Length and Transfer-Encoding (RFC 9112, 6.2)".to_owned());
        }
        if matches!(self.status, 100..200 | 204)
            && (self.has("Content-Length") || self.has("Transfer-Encoding"))
        {
            return Err(format!("a length in a {} (RFC 9110, 8.6)", self.status));
        }
        self.content_length()?;
        if self.status >= 200 && !self.value("Date").is_some_and(|date| is_imf_fixdate(&date)) {
            return Err("no Date of the right form (RFC 9110, 6.6.1)".to_owned());
        }
        if let Some(modified) = self.value("Last-Modified")
            && !is_imf_fixdate(&modified)
        {
            return Err(format!("Last-Modified: {modified} (RFC 9110, 5.6.7)"));
        }
        if let Some(tag) = self.value("ETag")
            && !is_entity_tag(&tag)
        {
            return Err(format!("ETag: {tag} (RFC 9110, 8.8.3)"));
        }
        Ok(())
    }
}

/// Whether a text is a date in the form that must be sent (RFC 9110, section 5.6.7).
pub fn is_imf_fixdate(text: &str) -> bool {
    let form = b"Www, 00 Www 0000 00:00:00 GMT";
    text.len() == form.len()
        && text.bytes().zip(form).all(|(byte, &form)| match form {
            b'0' => byte.is_ascii_digit(),
            b'W' => byte.is_ascii_uppercase(),
            b'w' => byte.is_ascii_lowercase(),
            _ => byte == form,
        })
}

fn is_entity_tag(text: &str) -> bool {
    let opaque = text.strip_prefix("W/").unwrap_or(text);
    let inner = opaque.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner.is_some_and(|inner| inner.bytes().all(|byte| byte == 0x21 || (0x23..0x7f).contains(&byte)))
}

/// Fields in order: name and value.
pub type Fields = Vec<(String, Vec<u8>)>;

/// A chunked body without trailers, and how many bytes it took; `None` when more must come.
pub(crate) fn read_chunked(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, String> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let Some(end) = find(&bytes[at..], b"\r\n") else { return Ok(None) };
        let line = String::from_utf8_lossy(&bytes[at..at + end]).into_owned();
        let length = usize::from_str_radix(&line, 16).map_err(|_| format!("chunk size {line}"))?;
        at += end + 2;
        let Some(chunk) = bytes.get(at..at + length + 2) else { return Ok(None) };
        if !chunk.ends_with(b"\r\n") {
            return Err("a chunk does not end with CRLF".to_owned());
        }
        body.extend_from_slice(&chunk[..length]);
        at += length + 2;
        if length == 0 {
            return Ok(Some((body, at)));
        }
    }
}

fn read_head(head: &[u8]) -> Result<(u16, Fields), String> {
    let mut lines = split_lines(head)?.into_iter();
    let line = lines.next().unwrap_or_default();
    let status_line = String::from_utf8_lossy(line);
    let code = status_line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..4));
    let code = code.filter(|code| code.ends_with(' ')).and_then(|code| code[..3].parse::<u16>().ok());
    let status = code.ok_or_else(|| format!("status line: {}", escape(line)))?;
    Ok((status, read_fields(lines)?))
}

/// The fields of these lines.
pub(crate) fn read_fields<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Result<Fields, String> {
    let mut fields = Vec::new();
    for line in lines {
        let colon = line.iter().position(|&byte| byte == b':').ok_or("a field line without a colon")?;
        let name = String::from_utf8_lossy(&line[..colon]).into_owned();
        let token = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if name.is_empty() || !name.bytes().all(token) {
            return Err(format!("field name {}", escape(&line[..colon])));
        }
        fields.push((name, line[colon + 1..].trim_ascii().to_vec()));
    }
    Ok(fields)
}

/// The lines of a head, which must end with CRLF and have no other control character.
pub(crate) fn split_lines(head: &[u8]) -> Result<Vec<&[u8]>, String> {
    let mut lines = Vec::new();
    let mut rest = head;
    loop {
        let end = find(rest, b"\r\n");
        let line = &rest[..end.unwrap_or(rest.len())];
        if line.iter().any(|&byte| byte < b' ' && byte != b'\t' || byte == 0x7f) {
            return Err(format!("a control character in the line: {}", escape(line)));
        }
        lines.push(line);
        match end {
            Some(end) => rest = &rest[end + 2..],
            None => return Ok(lines),
        }
    }
}

/// Where a text begins in bytes.
pub fn find(bytes: &[u8], text: &[u8]) -> Option<usize> {
    bytes.windows(text.len()).position(|window| window == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &str = "Date: Tue, 02 Jan 2024 03:04:05 GMT\r\n";

    #[test]
    fn a_response_is_read_with_its_length() {
        let bytes = format!("HTTP/1.1 200 OK\r\n{DATE}Content-Length: 3\r\n\r\nabcHTTP");
        let (response, taken) = Response::read(bytes.as_bytes(), false).expect("right").expect("whole");
        assert_eq!((response.status, &response.body[..], taken), (200, &b"abc"[..], bytes.len() - 4));
        for cut in 0..taken {
            assert!(
                Response::read(&bytes.as_bytes()[..cut], false).expect("right so far").is_none(),
                "{cut}"
            );
        }
    }

    #[test]
    fn a_chunked_response_is_joined() {
        let bytes =
            format!("HTTP/1.1 200 OK\r\n{DATE}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
        let (response, taken) = Response::read(bytes.as_bytes(), false).expect("right").expect("whole");
        assert_eq!((&response.body[..], taken), (&b"abc"[..], bytes.len()));
    }

    #[test]
    fn broken_rules_are_seen() {
        let table = [
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned(),
            format!("HTTP/1.1 200 OK\r\n{DATE}\r\n"),
            format!("HTTP/1.1 200 OK\r\n{DATE}Content-Length: +1\r\n\r\na"),
            format!("HTTP/1.1 200 OK\r\n{DATE}Content-Length: 1\r\nContent-Length: 1\r\n\r\na"),
            format!("HTTP/1.1 204 No Content\r\n{DATE}Content-Length: 0\r\n\r\n"),
            format!("HTTP/1.1 200 OK\n{DATE}Content-Length: 0\r\n\r\n"),
            format!("HTTP/1.1 200 OK\r\n{DATE}A : b\r\nContent-Length: 0\r\n\r\n"),
            format!("HTTP/1.1 200 OK\r\n{DATE}ETag: abc\r\nContent-Length: 0\r\n\r\n"),
            format!("HTTP/1.0 200 OK\r\n{DATE}Content-Length: 0\r\n\r\n"),
            "garbage".to_owned(),
        ];
        for wrong in table {
            assert!(Response::read(wrong.as_bytes(), false).is_err(), "{wrong:?}");
        }
    }
}
