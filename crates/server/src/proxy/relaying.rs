//! Bytes of an application become an answer.
//!
//! It must never pass on what the strict reader has not understood.

use staunch_engine::Open;
use staunch_protocol::http1::relay::{RelayFault, RelayStep};

use super::exchange::{AnswerHead, Forwarded};
use super::wire::LinkReader;

/// How far an answer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relayed {
    More,
    /// The answer is complete; whether its link may serve another exchange.
    Ended {
        keeps: bool,
    },
}

/// Takes what came of an answer. Its body goes to `open`, if its client is being sent it, else it is kept.
pub(super) fn relay(
    reader: &mut LinkReader,
    mut input: &[u8],
    forwarded: &mut Forwarded,
    mut open: Option<&mut Open<'_>>,
) -> Result<Relayed, RelayFault> {
    let answer = &mut forwarded.answer;
    loop {
        match reader.next(&mut input)? {
            RelayStep::More => return Ok(Relayed::More),
            RelayStep::Interim(head) if answer.head.is_none() && !answer.is_open => {
                answer.interim.push(head.fields.lines().to_vec());
            }
            RelayStep::Interim(_) => {}
            RelayStep::Head(head) => {
                answer.head = Some(AnswerHead {
                    status: head.status,
                    fields: head.fields.lines().to_vec(),
                    length_bytes: head.length_bytes,
                    has_body: head.has_body,
                    says_upgrade: head.says_upgrade,
                });
            }
            RelayStep::Piece(piece) => match &mut open {
                Some(open) => answer.pass(piece, open),
                None => answer.keep(piece),
            },
            RelayStep::End { trailers, keeps } => {
                answer.trailers = trailers.lines().to_vec();
                answer.has_ended = true;
                // No request has asked for what is left.
                return Ok(Relayed::Ended { keeps: keeps && input.is_empty() });
            }
        }
    }
}
