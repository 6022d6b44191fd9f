//! Drives a reader of an application's answers over bytes in any pieces, and notes every step.
//!
//! It checks on the way what must always hold: memory has its bound, and at rest there is none. Tests and a
//! fuzz target share it. It must never know what the bytes mean.

use staunch_protocol::http1::relay::{RelayFault, RelayHead, RelayReader, RelayStep};
use staunch_protocol::limits::RELAYED_HEAD_BYTES_MAX;

/// What came of a connection to an application.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) steps: Vec<Step>,
    /// What was wrong; nothing when the application closed after a complete answer.
    pub(crate) fault: Option<RelayFault>,
}

/// A step, copied. Pieces that follow one another are one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Interim(Head),
    Head(Head),
    Body(Vec<u8>),
    /// The trailers, and whether the connection may serve another request.
    End(String, bool),
    /// The application closed, and that was the end of the body.
    Closed,
}

/// A head, copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) code: u16,
    pub(crate) fields: Vec<u8>,
    pub(crate) length_bytes: Option<u64>,
    pub(crate) has_body: bool,
}

impl Head {
    fn of(head: RelayHead<'_>) -> Self {
        Self {
            code: head.status.code(),
            fields: head.fields.lines().to_vec(),
            length_bytes: head.length_bytes,
            has_body: head.has_body,
        }
    }
}

/// As much as a reader holds at most: a head whose every byte is passed on, in two vectors that have doubled.
const HELD_BYTES_MAX: usize = 4 * RELAYED_HEAD_BYTES_MAX;

/// Delivers the pieces, then the end of the application. `asked_by_head` says, answer by answer, whether HEAD
/// asked; when it ends nothing more is asked for.
pub(crate) fn read<'p>(pieces: impl IntoIterator<Item = &'p [u8]>, asked_by_head: &[bool]) -> Reading {
    let mut reading = Reading::default();
    reading.fault = try_read(pieces, asked_by_head, &mut reading.steps).err();
    reading
}

fn try_read<'p>(
    pieces: impl IntoIterator<Item = &'p [u8]>,
    asked_by_head: &[bool],
    steps: &mut Vec<Step>,
) -> Result<(), RelayFault> {
    let mut reader = RelayReader::new();
    let mut asked = asked_by_head.iter();
    let mut begin_next = |reader: &mut RelayReader| asked.next().map(|head| reader.begin(*head)).is_some();
    let mut is_awaited = begin_next(&mut reader);
    for piece in pieces {
        let mut input = piece;
        loop {
            let before_bytes = input.len();
            match reader.next(&mut input)? {
                RelayStep::More => {
                    assert!(input.is_empty(), "input is left, and more is asked for");
                    assert!(is_awaited || reader.held_bytes() == 0, "something is held at rest");
                    break;
                }
                RelayStep::Interim(head) => steps.push(Step::Interim(Head::of(head))),
                RelayStep::Head(head) => steps.push(Step::Head(Head::of(head))),
                RelayStep::Piece(piece) => {
                    assert!(!piece.is_empty() && piece.len() <= before_bytes - input.len());
                    match steps.last_mut() {
                        Some(Step::Body(body)) => body.extend_from_slice(piece),
                        _ => steps.push(Step::Body(piece.to_vec())),
                    }
                }
                RelayStep::End { trailers, keeps } => {
                    let trailers = String::from_utf8_lossy(trailers.lines()).into_owned();
                    steps.push(Step::End(trailers, keeps));
                    is_awaited = begin_next(&mut reader);
                }
            }
            assert!(reader.held_bytes() <= HELD_BYTES_MAX, "{} bytes are held", reader.held_bytes());
        }
    }
    if reader.end()? {
        steps.push(Step::Closed);
    }
    Ok(())
}

/// The answers that are complete: status, body, and whether the connection stays.
pub(crate) fn answers(reading: &Reading) -> Vec<(u16, Vec<u8>, bool)> {
    let mut answers = Vec::new();
    let (mut code, mut so_far) = (0, Vec::new());
    for step in &reading.steps {
        match step {
            Step::Interim(_) => {}
            Step::Head(head) => code = head.code,
            Step::Body(body) => so_far.extend_from_slice(body),
            Step::End(_, keeps) => answers.push((code, std::mem::take(&mut so_far), *keeps)),
            Step::Closed => answers.push((code, std::mem::take(&mut so_far), false)),
        }
    }
    answers
}
