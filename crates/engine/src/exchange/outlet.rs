//! Where the pieces of a body go that goes on.
//!
//! It must never send: what is put into it goes to the network by the worker, or waits for a window.

use staunch_netio::Outgoing;
use staunch_protocol::Fields;
use staunch_protocol::http1::BodyOut;

use crate::limits::{COPIED_BYTES_MAX, STREAMED_BYTES};

use super::piece::Piece;
use super::pieces::Pieces;

/// Where the pieces of a body go.
#[derive(Debug)]
pub(crate) enum Outlet<'a> {
    /// To what the connection sends next, framed: HTTP/1.1.
    Connection(&'a mut Outgoing),
    /// To what waits for the windows of a stream: HTTP/2. Trailer fields wait behind it.
    Stream { pieces: &'a mut Pieces, trailers: &'a mut Vec<u8> },
}

impl Outlet<'_> {
    /// What stands there, in bytes.
    pub(super) fn length_bytes(&self) -> u64 {
        match self {
            Self::Connection(outgoing) => outgoing.length_bytes(),
            Self::Stream { pieces, .. } => pieces.length_bytes(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Connection(outgoing) => outgoing.is_empty(),
            Self::Stream { pieces, .. } => pieces.is_empty(),
        }
    }

    /// Adds a piece of this body, as far as it has room for it. Gives how many bytes of it.
    pub(super) fn push(&mut self, piece: Piece, body: &mut BodyOut) -> u64 {
        let wanted_bytes = piece.length_bytes();
        match self {
            Self::Connection(outgoing) => {
                let count = body.begin_piece(wanted_bytes, outgoing.bytes());
                if count > 0 {
                    piece.cut(count).put(outgoing);
                    body.end_piece(outgoing.bytes());
                }
                count
            }
            Self::Stream { pieces, .. } => {
                let count = body.begin_piece(wanted_bytes, &mut Vec::new());
                if count > 0 {
                    pieces.push(piece.cut(count));
                }
                count
            }
        }
    }

    /// Adds a copy of bytes of this body, as far as it has room for them. Gives how many.
    pub(super) fn push_copied(&mut self, bytes: &[u8], body: &mut BodyOut) -> u64 {
        let Self::Connection(outgoing) = self else {
            return self.push(Piece::Bytes(bytes.to_vec()), body);
        };
        let count = body.begin_piece(bytes.len() as u64, outgoing.bytes());
        if count > 0 {
            let own = outgoing.bytes();
            let needed_bytes = own.len() + count as usize;
            if needed_bytes > own.capacity()
                && needed_bytes > COPIED_BYTES_MAX
                && needed_bytes <= STREAMED_BYTES
            {
                own.reserve_exact(STREAMED_BYTES - own.len());
            }
            own.extend_from_slice(&bytes[..count as usize]);
            body.end_piece(outgoing.bytes());
        }
        count
    }

    /// Adds a piece that carries its framing already.
    pub(super) fn push_as_it_is(&mut self, piece: Piece) {
        match self {
            Self::Connection(outgoing) => piece.put(outgoing),
            Self::Stream { pieces, .. } => pieces.push(piece),
        }
    }

    /// Adds trailer fields, with which the body ends. Whether there is anything left to be framed, `body`
    /// says.
    pub(super) fn end_with(&mut self, fields: Fields<'_>, body: &mut BodyOut) {
        match self {
            Self::Connection(outgoing) => *body = body.end_with(fields, outgoing.bytes()),
            Self::Stream { trailers, .. } => **trailers = fields.lines().to_vec(),
        }
    }
}
