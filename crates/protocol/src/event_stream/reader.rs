//! Events as a client reads them from `text/event-stream`.
//!
//! It owns the interpretation of the stream (WHATWG HTML, section 9.2.6) for the load generator and for
//! tests. It must never hold more than one event, nor a longer one than its limit. Order: `read` for each
//! piece of the body, in any split.

use crate::limits::READ_EVENT_BYTES_MAX;

/// An event that is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadEvent {
    /// The stream's last id when the event ended: an id stays until another comes.
    pub last_id: String,
    /// The type, `message` unless the stream says otherwise.
    pub kind: String,
    /// The lines of the value, joined by LF.
    pub data: String,
}

/// An event longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamFault;

impl std::fmt::Display for StreamFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "an event of the stream is longer than {READ_EVENT_BYTES_MAX} bytes")
    }
}

impl std::error::Error for StreamFault {}

/// A place in a stream.
#[derive(Debug, Default)]
pub struct EventReader {
    line: Vec<u8>,
    /// The last line ended with CR: a LF that follows belongs to it.
    after_return: bool,
    any_line: bool,
    data: String,
    kind: String,
    /// The last id that was read. It counts when its event has ended: one that is cut off is to come again.
    read_id: String,
    last_id: String,
    retry_ms: Option<u64>,
    comments: u64,
}

impl EventReader {
    /// Before the first byte.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a piece of the body and gives each event that ends in it.
    ///
    /// # Errors
    /// An event or line is longer than the limit; the stream cannot be read on.
    pub fn read(&mut self, mut piece: &[u8], mut event: impl FnMut(ReadEvent)) -> Result<(), StreamFault> {
        if self.after_return && !piece.is_empty() {
            self.after_return = false;
            piece = piece.strip_prefix(b"\n").unwrap_or(piece);
        }
        while let Some(end) = memchr::memchr2(b'\r', b'\n', piece) {
            self.keep(&piece[..end])?;
            let line = std::mem::take(&mut self.line);
            self.end_line(&line, &mut event);
            self.line = line;
            self.line.clear();
            self.after_return = piece[end] == b'\r' && end + 1 == piece.len();
            let width = if piece[end..].starts_with(b"\r\n") { 2 } else { 1 };
            piece = &piece[end + width..];
        }
        self.keep(piece)
    }

    /// After how many milliseconds the stream wants to be resumed, if it said so.
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    /// The id to resume from: that of the last event that has ended.
    pub fn last_id(&self) -> &str {
        &self.last_id
    }

    /// Comments so far: signs of life.
    pub fn comments(&self) -> u64 {
        self.comments
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), StreamFault> {
        if self.line.len() + bytes.len() + self.data.len() > READ_EVENT_BYTES_MAX {
            return Err(StreamFault);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, line: &[u8], event: &mut impl FnMut(ReadEvent)) {
        let first = !std::mem::replace(&mut self.any_line, true);
        let line = if first { line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line) } else { line };
        let line = String::from_utf8_lossy(line);
        if line.is_empty() {
            return self.dispatch(event);
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "" => self.comments += 1,
            "data" => {
                self.data.push_str(value);
                self.data.push('\n');
            }
            "event" => value.clone_into(&mut self.kind),
            "id" if !value.contains('\0') => value.clone_into(&mut self.read_id),
            "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.retry_ms = value.parse().ok().or(self.retry_ms);
            }
            _ => {}
        }
    }

    /// A blank line: what was said is an event if it has data.
    fn dispatch(&mut self, event: &mut impl FnMut(ReadEvent)) {
        let kind = std::mem::take(&mut self.kind);
        let mut data = std::mem::take(&mut self.data);
        self.last_id.clone_from(&self.read_id);
        if data.pop().is_none() {
            return;
        }
        let kind = if kind.is_empty() { "message".to_owned() } else { kind };
        event(ReadEvent { last_id: self.last_id.clone(), kind, data });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{EventFrame, append_comment};
    use super::*;

    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<ReadEvent>, EventReader) {
        let (mut reader, mut events) = (EventReader::new(), Vec::new());
        for piece in pieces {
            reader.read(piece, |event| events.push(event)).unwrap();
        }
        (events, reader)
    }

    fn event(last_id: &str, kind: &str, data: &str) -> ReadEvent {
        ReadEvent { last_id: last_id.into(), kind: kind.into(), data: data.into() }
    }

    #[test]
    fn the_examples_of_the_standard() {
        let table: &[(&str, Vec<ReadEvent>)] = &[
            ("data: YHOO\ndata: +2\ndata: 10\n\n", vec![event("", "message", "YHOO\n+2\n10")]),
            (
                ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\n\
                 data:  third event\n\n",
                vec![
                    event("1", "message", "first event"),
                    event("", "message", "second event"),
                    event("", "message", " third event"),
                ],
            ),
            ("data\n\ndata\ndata\n\ndata:", vec![event("", "message", ""), event("", "message", "\n")]),
            ("data:test\n\ndata: test\n\n", vec![event("", "message", "test"), event("", "message", "test")]),
            ("event: add\r\ndata: 7\r\r", vec![event("", "add", "7")]),
            ("\u{feff}data: a\n\n", vec![event("", "message", "a")]),
            ("id: 5\n\nretry: 10\nretry: x\ndata: a\n\n", vec![event("5", "message", "a")]),
            ("event: lost\n\ndata: a\n\n", vec![event("", "message", "a")]),
        ];
        for (stream, expected) in table {
            assert_eq!(&read([stream.as_bytes()]).0, expected, "{stream:?}");
            assert_eq!(&read(stream.as_bytes().chunks(1)).0, expected, "byte by byte: {stream:?}");
        }
    }

    #[test]
    fn retry_and_comments_are_told() {
        let (_, reader) = read([&b"retry: 250\n:\n: hello\n\n"[..]]);
        assert_eq!((reader.retry_ms(), reader.comments()), (Some(250), 2));
    }

    #[test]
    fn an_event_that_is_cut_off_is_resumed_before() {
        let stream = b"id: 1\ndata: a\n\nid: 2\ndata: b\n\n";
        for (length, expected) in [(5, ""), (14, ""), (15, "1"), (29, "1"), (30, "2")] {
            let (events, reader) = read([&stream[..length]]);
            assert_eq!(reader.last_id(), expected, "{length} bytes");
            assert_eq!(events.last().map_or("", |event| &event.last_id), expected, "{length} bytes");
        }
    }

    #[test]
    fn what_never_ends_is_refused() {
        let mut reader = EventReader::new();
        let piece = vec![b'x'; READ_EVENT_BYTES_MAX];
        assert_eq!(reader.read(&piece, |_| ()), Ok(()));
        assert_eq!(reader.read(b"y", |_| ()), Err(StreamFault));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            events in proptest::collection::vec(
                ("[^\r\n\0]{0,9}", "[^\r\n]{1,9}", "(?s).{0,40}", any::<bool>()), 1..6),
            cuts in proptest::collection::vec(0usize..400, 0..8),
        ) {
            let (mut stream, mut expected) = (Vec::new(), Vec::new());
            for (id, kind, data, comment) in &events {
                if *comment {
                    append_comment(data, &mut stream);
                }
                let (id_field, kind_field) = (Some(&id[..]), Some(&kind[..]));
                let frame = EventFrame { id: id_field, kind: kind_field, retry_ms: None, data };
                frame.append(&mut stream).unwrap();
                let data = data.replace("\r\n", "\n").replace('\r', "\n");
                expected.push(event(id, kind, &data));
            }
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (stream.len() + 1)).collect();
            places.extend([0, stream.len()]);
            places.sort_unstable();
            let pieces = places.windows(2).map(|two| &stream[two[0]..two[1]]);
            prop_assert_eq!(read(pieces).0, expected);
        }
    }
}
