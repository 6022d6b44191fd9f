//! The port of an exchange: the protocol that carries it, as its life sees that.
//!
//! A port stands for one exchange at a time: the only one of a connection of HTTP/1.1
//! (`connection/http1.rs`), or that of one stream of HTTP/2 (`connection/http2/port.rs`). A port must never
//! call a handler, nor decide where an exchange goes: `life.rs` does.

use staunch_netio::Outgoing;
use staunch_protocol::Request;

use super::Exchange;
use super::address::Address;
use super::open::OpenState;
use super::outlet::Outlet;
use super::pen::Pen;
use super::rendered::Rendered;
use super::under_way::UnderWay;

/// The protocol that carries an exchange, as the life of the exchange sees it.
pub(crate) trait Port {
    /// Where the exchange stands; nothing where its stream is gone.
    fn under_way(&self) -> Option<&UnderWay>;

    /// As [`Self::under_way`], to change it.
    fn under_way_mut(&mut self) -> Option<&mut UnderWay>;

    /// A request is not answered at once: [`Self::put`] follows.
    fn begin(&mut self, _request: &Request<'_>) {}

    /// Keeps an exchange that is not over.
    fn put(&mut self, exchange: Box<Exchange>);

    /// The exchange is over: all is given back but what still has to be sent. The next one of the connection
    /// may have another address.
    fn end(&mut self, address: &mut Address);

    /// The exchange is over before its time: all is given back.
    fn discard(&mut self, address: &mut Address);

    /// Whether the peer still awaits the answer.
    fn awaits(&self) -> bool {
        true
    }

    /// The worker is coming to its end, and a request that waited is about to be answered.
    fn note_draining(&mut self) {}

    /// The pen that writes the answer, and the bytes that it writes to.
    fn pen<'a>(&'a mut self, rendered: &'a mut Rendered) -> (Pen<'a>, &'a mut Outgoing);

    /// Where the pieces of an answer go that goes on.
    fn outlet(&mut self) -> Option<Outlet<'_>>;

    /// Whether there is room for more of an answer that goes on.
    fn has_room(&self) -> bool;

    /// Whether bytes of the exchange that were handed over before are still being sent.
    fn is_sending(&self) -> bool;

    /// Whether the peer sends no more.
    fn peer_ended(&self) -> bool;

    /// Whether the connection came when only reserved slots were left.
    fn turned_away(&self) -> bool;

    /// Hands over what was pushed, if that waits for more than the next container. Whether anything moved.
    fn hand_over(&mut self) -> bool {
        false
    }

    /// The answer's body is complete: its end is written, and noted as concluded, if it can be now. Whether
    /// it was.
    fn conclude(&mut self, state: OpenState) -> bool;

    /// The peer is told that the answer will never be complete. The exchange is given back already.
    fn reset(&mut self);

    /// The body of the request is waited for from now on.
    fn begin_reading(&mut self) {}

    /// The handler has got so many bytes of the request's body.
    fn taken(&mut self, _bytes: usize) {}

    /// The handler needs the request of an answer that goes on no more: it is given back, if it can be.
    fn rest(&mut self) {}
}
