//! Frames of `text/event-stream`: server-sent events as bytes.
//!
//! It owns the stream's grammar (WHATWG HTML, section 9.2.5) and the chunk around a frame (RFC 9112, section
//! 7.1). It must never keep a stream's state: a frame is whole in itself, so the same bytes serve any reader.

mod reader;

pub use reader::{EventReader, ReadEvent, StreamFault};

/// How a frame stands in the answer's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Framing {
    /// As one chunk, for HTTP/1.1.
    Chunked,
    /// As it is: the end of the connection ends the body. For HTTP/1.0.
    Plain,
}

/// An event of the stream before it is written as a frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventFrame<'a> {
    /// What a browser sends back as `Last-Event-ID`.
    pub id: Option<&'a str>,
    /// The event's type; a browser takes `message` where there is none.
    pub kind: Option<&'a str>,
    /// After how many milliseconds a browser comes back when the stream was cut.
    pub retry_ms: Option<u32>,
    /// The value. Its line ends (CR LF, LF, CR) all reach the reader as LF.
    pub data: &'a str,
}

/// Why an event cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldFault {
    /// `id` has a line end, or NUL, for which browsers drop it (section 9.2.6).
    Id,
    /// `type` has a line end.
    Kind,
}

impl std::fmt::Display for FieldFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Id => "`id` must not have a line end or NUL",
            Self::Kind => "`type` must not have a line end",
        })
    }
}

impl std::error::Error for FieldFault {}

impl EventFrame<'_> {
    /// Whether the event can be written.
    ///
    /// # Errors
    /// Names the field that cannot stand on one line.
    pub fn check(&self) -> Result<(), FieldFault> {
        if self.id.is_some_and(|id| id.contains(['\r', '\n', '\0'])) {
            return Err(FieldFault::Id);
        }
        if self.kind.is_some_and(|kind| kind.contains(['\r', '\n'])) {
            return Err(FieldFault::Kind);
        }
        Ok(())
    }

    /// Appends the event, blank line included, without a chunk.
    ///
    /// # Errors
    /// As [`check`](Self::check); nothing was appended then.
    pub fn append(&self, output: &mut Vec<u8>) -> Result<(), FieldFault> {
        self.check()?;
        let fields = [("event: ", self.kind), ("id: ", self.id)];
        for (name, value) in fields.iter().filter_map(|(name, value)| value.map(|value| (name, value))) {
            append_line(name, value, output);
        }
        if let Some(retry_ms) = self.retry_ms {
            append_line("retry: ", &retry_ms.to_string(), output);
        }
        for line in lines(self.data) {
            append_line("data: ", line, output);
        }
        output.push(b'\n');
        Ok(())
    }
}

/// Appends a comment, which browsers skip: a sign of life, or a way to fill a proxy's buffer. Line ends
/// begin a further comment. Without text it is the shortest sign of life, `:` and two line ends.
pub fn append_comment(text: &str, output: &mut Vec<u8>) {
    for line in lines(text) {
        append_line(if line.is_empty() { ":" } else { ": " }, line, output);
    }
    output.push(b'\n');
}

/// Appends `payload` in the given framing. An empty payload appends nothing, for an empty chunk would end
/// the body.
pub fn append_framed(framing: Framing, payload: &[u8], output: &mut Vec<u8>) {
    if payload.is_empty() {
        return;
    }
    match framing {
        Framing::Plain => output.extend_from_slice(payload),
        Framing::Chunked => {
            output.extend_from_slice(format!("{:x}\r\n", payload.len()).as_bytes());
            output.extend_from_slice(payload);
            output.extend_from_slice(b"\r\n");
        }
    }
}

/// What ends a body in the given framing.
pub fn body_end(framing: Framing) -> &'static [u8] {
    match framing {
        Framing::Chunked => b"0\r\n\r\n",
        Framing::Plain => b"",
    }
}

fn append_line(name: &str, value: &str, output: &mut Vec<u8>) {
    output.extend_from_slice(name.as_bytes());
    output.extend_from_slice(value.as_bytes());
    output.push(b'\n');
}

/// The lines of a text, which end with CR LF, LF or CR. A text that ends with a line end has an empty last
/// line, so that the reader gets that line end back.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = memchr::memchr2(b'\r', b'\n', text.as_bytes()) else {
            rest = None;
            return Some(text);
        };
        let width = if text[end..].starts_with("\r\n") { 2 } else { 1 };
        rest = Some(&text[end + width..]);
        Some(&text[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(event: EventFrame<'_>) -> String {
        let mut output = Vec::new();
        event.append(&mut output).unwrap();
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn an_event_is_written_field_by_field() {
        let data = EventFrame { data: "1", ..EventFrame::default() };
        let table = [
            (data, "data: 1\n\n"),
            (EventFrame { data: "", ..data }, "data: \n\n"),
            (EventFrame { id: Some("a-1"), ..data }, "id: a-1\ndata: 1\n\n"),
            (EventFrame { kind: Some("goal"), ..data }, "event: goal\ndata: 1\n\n"),
            (EventFrame { retry_ms: Some(3000), ..data }, "retry: 3000\ndata: 1\n\n"),
            (EventFrame { data: "a\nb", ..data }, "data: a\ndata: b\n\n"),
            (EventFrame { data: "a\r\nb\rc\n", ..data }, "data: a\ndata: b\ndata: c\ndata: \n\n"),
            (EventFrame { data: " leading", ..data }, "data:  leading\n\n"),
            (EventFrame { data: "\r\r\n\n", ..data }, "data: \ndata: \ndata: \ndata: \n\n"),
        ];
        for (event, expected) in table {
            assert_eq!(frame(event), expected, "{event:?}");
        }
    }

    #[test]
    fn a_field_of_one_line_has_no_line_end() {
        let data = EventFrame { data: "1", ..EventFrame::default() };
        let table = [
            (EventFrame { id: Some("a\nb"), ..data }, FieldFault::Id),
            (EventFrame { id: Some("a\rb"), ..data }, FieldFault::Id),
            (EventFrame { id: Some("a\0"), ..data }, FieldFault::Id),
            (EventFrame { kind: Some("x\ndata: 2"), ..data }, FieldFault::Kind),
        ];
        for (event, fault) in table {
            let mut output = Vec::new();
            assert_eq!(event.append(&mut output), Err(fault), "{event:?}");
            assert!(output.is_empty());
        }
    }

    #[test]
    fn a_comment_stays_a_comment() {
        for (text, expected) in [("", ":\n\n"), ("hi", ": hi\n\n"), ("a\ndata: x", ": a\n: data: x\n\n")] {
            let mut output = Vec::new();
            append_comment(text, &mut output);
            assert_eq!(output, expected.as_bytes(), "{text:?}");
        }
    }

    #[test]
    fn a_chunk_surrounds_the_frame() {
        let mut output = Vec::new();
        append_framed(Framing::Chunked, &[b'x'; 26], &mut output);
        append_framed(Framing::Chunked, b"", &mut output);
        output.extend_from_slice(body_end(Framing::Chunked));
        assert_eq!(output, b"1a\r\nxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n0\r\n\r\n");
        output.clear();
        append_framed(Framing::Plain, b"data: 1\n\n", &mut output);
        output.extend_from_slice(body_end(Framing::Plain));
        assert_eq!(output, b"data: 1\n\n");
    }
}
