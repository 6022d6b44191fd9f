//! What is asked in each loop, and whether what comes is the answer to it, from bytes in any pieces.
//!
//! It owns no socket, and must never wait for anything. Order: `begin` for each loop, then `hear` what comes;
//! when the peer has closed, `end`.

use staunch_protocol::answer::{AnswerReader, HeadMemory, Step};

use super::fault::Fault;
use super::plan::Plan;
use crate::results::Protocol;

/// The status of an answer that has what was asked for.
const OK: u16 = 200;

/// What each loop says.
pub(super) fn request(plan: &Plan) -> String {
    let Plan { address, bytes, .. } = plan;
    match plan.protocol {
        Protocol::Paper => format!("{bytes}\n"),
        Protocol::Http => {
            format!("GET /{bytes} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
        }
        Protocol::KeepAlive => format!("GET /{bytes} HTTP/1.1\r\nHost: {address}\r\n\r\n"),
    }
}

/// How far an answer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// The answer goes on, or the peer has still to close: both protocols do so then, and the port is free at
    /// once.
    More,
    /// The answer is right, and the connection stays.
    Whole,
}

/// The answer of one loop.
pub(super) struct AnswerInPart {
    protocol: Protocol,
    wanted: u64,
    bytes: u64,
    reader: AnswerReader,
    /// Whether nothing may come any more but the end of the connection.
    is_over: bool,
}

impl AnswerInPart {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            protocol: plan.protocol,
            wanted: plan.bytes as u64,
            bytes: 0,
            reader: AnswerReader::new(),
            is_over: false,
        }
    }

    /// The next answer is awaited, whatever became of the one before.
    pub(super) fn begin(&mut self) {
        self.bytes = 0;
        self.is_over = false;
        self.reader = AnswerReader::new();
        self.reader.begin(false);
    }

    /// Bytes of the body that came.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes what came.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn hear(&mut self, memory: &mut HeadMemory, input: &[u8]) -> Result<Heard, Fault> {
        if self.protocol == Protocol::Paper {
            self.bytes += input.len() as u64;
            return Ok(Heard::More);
        }
        if self.is_over {
            return Err(Fault::Long);
        }
        let mut body = |piece: &[u8]| self.bytes += piece.len() as u64;
        match self.reader.read_with(memory, input, &mut body) {
            Ok(Step::More) => Ok(Heard::More),
            Ok(Step::Complete { consumed, .. }) if consumed < input.len() => Err(Fault::Long),
            Ok(Step::Complete { status, keep, .. }) => {
                right(status)?;
                self.is_over = true;
                if keep && self.protocol == Protocol::KeepAlive {
                    return self.judge().map(|()| Heard::Whole);
                }
                Ok(Heard::More)
            }
            Err(_) => Err(Fault::NotHttp),
        }
    }

    /// The peer has closed.
    ///
    /// # Errors
    /// The answer is not whole, or not the right one.
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        if self.protocol != Protocol::Paper && !self.is_over {
            let ended = self.reader.end().map_err(|_| Fault::Short)?.ok_or(Fault::Short)?;
            right(ended.status)?;
        }
        self.judge()
    }

    fn judge(&self) -> Result<(), Fault> {
        match self.bytes {
            bytes if bytes < self.wanted => Err(Fault::Short),
            bytes if bytes > self.wanted => Err(Fault::Long),
            _ => Ok(()),
        }
    }
}

fn right(status: u16) -> Result<(), Fault> {
    if status == OK { Ok(()) } else { Err(Fault::Status(status)) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::results::AskedBy;

    fn answer(protocol: Protocol) -> AnswerInPart {
        let (address, patience) = (([127, 0, 0, 1], 80).into(), Duration::from_secs(1));
        let client = AskedBy::Processes;
        let mut answer =
            AnswerInPart::new(&Plan { address, children: 1, loops: 1, bytes: 4, protocol, client, patience });
        answer.begin();
        answer
    }

    /// What came of these pieces, and of the end if it was waited for.
    fn outcome(answer: &mut AnswerInPart, pieces: &[&[u8]]) -> Result<Heard, Fault> {
        let mut memory = HeadMemory::new();
        for piece in pieces {
            if answer.hear(&mut memory, piece)? == Heard::Whole {
                return Ok(Heard::Whole);
            }
        }
        answer.end().map(|()| Heard::More)
    }

    /// What is spoken, what comes, and what is made of it.
    type Case = (Protocol, &'static [&'static [u8]], Result<Heard, Fault>);

    #[test]
    fn every_answer_is_judged() {
        use Protocol::{Http, KeepAlive, Paper};
        const KEPT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nxxxx";
        const CLOSED: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nxxxx";
        const ENDLESS: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";
        const MISSING: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nxxxx";
        const LESS: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nxxx";
        let table: [Case; 15] = [
            (Paper, &[b"xx", b"xx"], Ok(Heard::More)),
            (Paper, &[b"xx"], Err(Fault::Short)),
            (Paper, &[b"xx", b"xxx"], Err(Fault::Long)),
            (KeepAlive, &[KEPT], Ok(Heard::Whole)),
            (KeepAlive, &[CLOSED], Ok(Heard::More)),
            (KeepAlive, &[MISSING], Err(Fault::Status(404))),
            (KeepAlive, &[KEPT, KEPT], Ok(Heard::Whole)),
            (KeepAlive, &[LESS], Err(Fault::Short)),
            (Http, &[KEPT], Ok(Heard::More)),
            (Http, &[CLOSED, b"x"], Err(Fault::Long)),
            (Http, &[ENDLESS, b"xx", b"xx"], Ok(Heard::More)),
            (Http, &[ENDLESS, b"xxxxx"], Err(Fault::Long)),
            (Http, &[ENDLESS, b"x"], Err(Fault::Short)),
            (Http, &[b"xxxx\r\n\r\n"], Err(Fault::NotHttp)),
            (Http, &[], Err(Fault::Short)),
        ];
        for (protocol, pieces, expected) in table {
            let mut answer = answer(protocol);
            assert_eq!(outcome(&mut answer, pieces), expected, "{protocol:?} {pieces:?}");
            // Nothing of it is left in the next.
            let next: &[u8] = if protocol == Paper { b"xxxx" } else { CLOSED };
            answer.begin();
            assert_eq!((outcome(&mut answer, &[next]), answer.bytes()), (Ok(Heard::More), 4));
        }
    }

    #[test]
    fn what_comes_behind_an_answer_is_too_much() {
        for protocol in [Protocol::Http, Protocol::KeepAlive] {
            let both = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nxxxxx";
            assert_eq!(outcome(&mut answer(protocol), &[both]), Err(Fault::Long), "{protocol:?}");
        }
    }
}
