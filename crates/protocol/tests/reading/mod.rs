//! Drives a reader of answers over bytes in any pieces, and notes everything that can be seen of it.
//!
//! Property tests and fuzz targets share it. It must never know what the bytes mean.

use staunch_protocol::answer::{AnswerFault, AnswerReader, HeadMemory, Step};

/// What came of a connection.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Status, body, and whether the connection stays open, of each complete answer.
    pub(crate) answers: Vec<(u16, Vec<u8>, bool)>,
    /// Body bytes of an answer that was not completed.
    pub(crate) rest: Vec<u8>,
    /// What was wrong; nothing when the peer closed after a complete answer.
    pub(crate) fault: Option<AnswerFault>,
}

/// Delivers the pieces, then the end of the peer. `asked_by_head` says, answer by answer, whether HEAD asked;
/// when it ends nothing more is asked for.
pub(crate) fn read<'p>(pieces: impl IntoIterator<Item = &'p [u8]>, asked_by_head: &[bool]) -> Reading {
    read_with(None, pieces, asked_by_head)
}

/// Reads answers as `read` does, with the help of a memory of heads.
pub(crate) fn read_with<'p>(
    memory: Option<&mut HeadMemory>,
    pieces: impl IntoIterator<Item = &'p [u8]>,
    asked_by_head: &[bool],
) -> Reading {
    let mut reading = Reading::default();
    if let Err(fault) = try_read(memory, pieces, asked_by_head, &mut reading) {
        reading.fault = Some(fault);
    }
    reading
}

fn try_read<'p>(
    mut memory: Option<&mut HeadMemory>,
    pieces: impl IntoIterator<Item = &'p [u8]>,
    asked_by_head: &[bool],
    reading: &mut Reading,
) -> Result<(), AnswerFault> {
    let mut reader = AnswerReader::new();
    let mut asked = asked_by_head.iter();
    let begin_next = |reader: &mut AnswerReader, asked: &mut std::slice::Iter<'_, bool>| {
        asked.next().into_iter().for_each(|head| reader.begin(*head));
    };
    begin_next(&mut reader, &mut asked);
    for piece in pieces {
        let mut input = piece;
        while !input.is_empty() {
            let rest = &mut reading.rest;
            let mut take = |bytes: &[u8]| rest.extend_from_slice(bytes);
            let step = match memory.as_deref_mut() {
                Some(memory) => reader.read_with(memory, input, &mut take),
                None => reader.read(input, &mut take),
            };
            match step? {
                Step::More => break,
                Step::Complete { consumed, status, keep } => {
                    reading.answers.push((status, std::mem::take(&mut reading.rest), keep));
                    input = &input[consumed..];
                    begin_next(&mut reader, &mut asked);
                }
            }
        }
    }
    if let Some(complete) = reader.end()? {
        reading.answers.push((complete.status, std::mem::take(&mut reading.rest), false));
    }
    Ok(())
}
