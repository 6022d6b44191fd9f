//! The wire of a link: HTTP/1.1 or FastCGI, which differ in how requests are framed and answers are read.
//!
//! Places, lines, retries and bodies must never know which of them it is.

use std::net::IpAddr;

use staunch_protocol::fastcgi::{FastCgiReader, Script, renumber, write_end, write_piece};
use staunch_protocol::http1::BodyOut;
use staunch_protocol::http1::relay::{RelayFault, RelayReader, RelayStep};

use crate::scripts::ScriptCall;

/// The reader of a link's answers.
#[derive(Debug)]
pub(super) enum LinkReader {
    Http(RelayReader),
    FastCgi(FastCgiReader),
}

impl LinkReader {
    pub(super) fn new(is_fastcgi: bool) -> Self {
        match is_fastcgi {
            true => Self::FastCgi(FastCgiReader::new()),
            false => Self::Http(RelayReader::new()),
        }
    }

    pub(super) fn is_fastcgi(&self) -> bool {
        matches!(self, Self::FastCgi(_))
    }

    /// See [`RelayReader::begin`] and [`RelayReader::begin_upgrade`].
    pub(super) fn begin(&mut self, asked_by_head: bool, asks_upgrade: bool) {
        match self {
            Self::Http(reader) if asks_upgrade => reader.begin_upgrade(),
            Self::Http(reader) => reader.begin(asked_by_head),
            Self::FastCgi(reader) => reader.begin(asked_by_head),
        }
    }

    /// See [`RelayReader::next`].
    pub(super) fn next<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<RelayStep<'s>, RelayFault> {
        match self {
            Self::Http(reader) => reader.next(input),
            Self::FastCgi(reader) => reader.next(input),
        }
    }

    /// See [`RelayReader::end`].
    pub(super) fn end(&mut self) -> Result<bool, RelayFault> {
        match self {
            Self::Http(reader) => reader.end(),
            Self::FastCgi(reader) => reader.end(),
        }
    }

    /// See [`RelayReader::has_begun`].
    pub(super) fn has_begun(&self) -> bool {
        match self {
            Self::Http(reader) => reader.has_begun(),
            Self::FastCgi(reader) => reader.has_begun(),
        }
    }

    /// Gives bytes of a request the number by which its answer is awaited, if there are numbers.
    pub(super) fn number(&self, bytes: &mut [u8]) {
        if let Self::FastCgi(reader) = self {
            renumber(bytes, reader.request());
        }
    }

    /// Lines of errors that the application wrote while it answered.
    pub(super) fn errors(&self) -> &[u8] {
        match self {
            Self::Http(_) => b"",
            Self::FastCgi(reader) => reader.errors(),
        }
    }
}

/// The way in which the body of a request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Framing {
    /// As it is: its length was told.
    #[default]
    Plain,
    /// Each piece behind its size; a size of 0 ends it.
    Chunks,
    /// FastCGI's own, of which an empty one ends it.
    Records,
}

impl Framing {
    /// A piece of the body, as it is sent.
    pub(super) fn piece(self, piece: Vec<u8>) -> Vec<u8> {
        let mut frame = Vec::new();
        match self {
            Self::Plain => return piece,
            Self::Chunks => {
                let mut framing = BodyOut::Chunked;
                framing.begin_piece(piece.len() as u64, &mut frame);
                frame.extend_from_slice(&piece);
                framing.end_piece(&mut frame);
            }
            Self::Records => write_piece(&piece, &mut frame),
        }
        frame
    }

    /// The bytes behind the body; empty if there are none.
    pub(super) fn end(self) -> Vec<u8> {
        let mut frame = Vec::new();
        match self {
            Self::Plain => {}
            Self::Chunks => _ = BodyOut::Chunked.end(&mut frame),
            Self::Records => write_end(&mut frame),
        }
        frame
    }
}

/// The script of a call, for whoever writes the request.
pub(super) fn script(call: &ScriptCall, client: Option<IpAddr>, keeps: bool) -> Script<'_> {
    Script { root: &call.root, name: &call.name, path_info: &call.path_info, client, keeps }
}
