//! Tunnels: streams that speak another protocol than HTTP (RFC 8441).
//!
//! This module owns how a tunnel is asked for and begun. None must ever begin by an answer that means to be
//! one of HTTP: its client would take the body for bytes of the other protocol.

use super::{ResponseHead, Session};
use crate::http2::frame;
use crate::http2::opening::{HeadFields, Opening, push_head};
use crate::http2::stream::{Mark, Stream};
use crate::message::Fields;
use crate::status::Status;

impl ResponseHead<'_> {
    /// The head that answers a request for a tunnel instead of this one. A success would begin a tunnel,
    /// which [`Session::begin_tunnel`] alone does.
    pub(super) fn without_tunnel(self) -> Self {
        match self.status.code() {
            200..300 => {
                let fields = HeadFields::Lines(Fields::NONE);
                Self { status: Status::NOT_IMPLEMENTED, fields, has_body: false }
            }
            _ => self,
        }
    }
}

impl Session {
    /// Whether a request asks for a tunnel, or has begun one.
    pub fn is_tunnel(&self, stream: u32) -> bool {
        self.find(stream).is_some_and(|stream| stream.is(Mark::Tunnel))
    }

    /// Begins the tunnel that a request has asked for: appends HEADERS with status 200. What follows comes
    /// and goes as bodies do.
    ///
    /// # Panics
    /// When there is no such request, it asks for no tunnel, or its response has begun.
    #[cold]
    pub fn begin_tunnel(&mut self, stream: u32, fields: Fields<'_>, opening: &Opening, out: &mut Vec<u8>) {
        let is_asked = |waiting: &&mut Stream| waiting.is(Mark::Tunnel) && !waiting.is(Mark::Begun);
        let waiting = self.find_live(stream).filter(is_asked).expect("a tunnel without a request");
        waiting.set(Mark::Begun, true);
        let start = frame::begin_block(out);
        self.push_table_size(out);
        push_head(Status::OK, opening, HeadFields::Lines(fields), out);
        frame::end_block(start, stream, false, out);
    }
}
