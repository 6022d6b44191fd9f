//! Drives a reader of FastCGI over bytes in any pieces, and notes what can be seen of an answer.
//!
//! Tests and a fuzz target share it. It must never know what the bytes mean.

use staunch_protocol::fastcgi::FastCgiReader;
use staunch_protocol::http1::relay::{RelayFault, RelayStep};

/// What came of an answer.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) fields: String,
    pub(crate) length_bytes: Option<u64>,
    pub(crate) body: Vec<u8>,
    pub(crate) errors: String,
    /// Whether the connection may serve another request; `None` before the end.
    pub(crate) keeps: Option<bool>,
    pub(crate) fault: Option<RelayFault>,
}

/// Reads one answer from bytes in any pieces, and then the end of the application.
pub(crate) fn read<'p>(pieces: impl IntoIterator<Item = &'p [u8]>, asked_by_head: bool) -> Answer {
    let mut reader = FastCgiReader::new();
    reader.begin(asked_by_head);
    let mut answer = Answer::default();
    answer.fault = try_read(&mut reader, pieces, &mut answer).err();
    answer
}

fn try_read<'p>(
    reader: &mut FastCgiReader,
    pieces: impl IntoIterator<Item = &'p [u8]>,
    answer: &mut Answer,
) -> Result<(), RelayFault> {
    for mut input in pieces {
        loop {
            match reader.next(&mut input)? {
                RelayStep::More => break,
                RelayStep::Interim(_) => panic!("an interim answer"),
                RelayStep::Head(head) => {
                    answer.code = head.status.code();
                    answer.fields = String::from_utf8_lossy(head.fields.lines()).into_owned();
                    answer.length_bytes = head.length_bytes;
                }
                RelayStep::Piece(piece) => {
                    assert!(!piece.is_empty());
                    answer.body.extend_from_slice(piece);
                }
                RelayStep::End { keeps, .. } => {
                    answer.keeps = Some(keeps);
                    answer.errors = String::from_utf8_lossy(reader.errors()).into_owned();
                }
            }
        }
    }
    if answer.keeps.is_some() {
        assert_eq!(reader.held_bytes(), 0, "something is held at rest");
    }
    reader.end().map(|_| ())
}
