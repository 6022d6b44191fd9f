//! Events for one exchange of a connection that is not over at once, whichever protocol carries it.
//!
//! This module must never be on the way of a request that is answered at once, nor decide where an exchange
//! goes.

use staunch_protocol::Request;

use super::http1::OnlyPort;
use super::{Connection, Phase};
use crate::exchange::address::Address;
use crate::exchange::answer::Answer;
use crate::exchange::answered::Answered;
use crate::exchange::exchanges::Exchanges;
use crate::exchange::life;
use crate::exchange::open::Ended;
use crate::exchange::turn::Turn;
use crate::exchange::under_way::UnderWay;
use crate::handler::Handler;
use crate::upstream::{Upstream, UpstreamEvent};

impl Connection {
    /// Whether an exchange is not over yet.
    pub(crate) fn is_under_way(&self, address: Address) -> bool {
        let under_way = self.exchanges.find(address.stream);
        self.generation == address.generation
            && self.phase == Phase::Open
            && under_way.is_some_and(|under_way| !under_way.is_nothing())
    }

    /// The handler is asked by `ask` about the request that waits.
    pub(crate) fn resume<H: Handler>(
        &mut self,
        ask: impl FnOnce(&mut H, &Request<'_>, Answer<'_>) -> Answered,
        turn: &mut Turn<'_, H>,
    ) {
        match self.exchanges {
            Exchanges::One(_) => self.with_only(turn, |port, turn| life::resume(port, turn, ask)),
            Exchanges::Streams(_) => self.with_stream(turn, |port, turn| life::resume(port, turn, ask)),
        }
    }

    /// The handler wants to be asked again about an exchange.
    pub(crate) fn wake<H: Handler>(&mut self, turn: &mut Turn<'_, H>) {
        match self.exchanges {
            Exchanges::One(_) => self.with_only(turn, |port, turn| life::wake(port, turn)),
            Exchanges::Streams(_) => self.with_stream(turn, |port, turn| life::wake(port, turn)),
        }
    }

    /// Something has happened on the upstream of an exchange: the handler is told, and what it has said of
    /// the answer is carried out.
    #[cold]
    pub(crate) fn hear<H: Handler>(
        &mut self,
        upstream: Upstream,
        event: UpstreamEvent<'_>,
        turn: &mut Turn<'_, H>,
    ) {
        match self.exchanges {
            Exchanges::One(_) => {
                self.with_only(turn, |port, turn| life::hear(port, upstream, event, turn));
            }
            Exchanges::Streams(_) => {
                self.with_stream(turn, |port, turn| life::hear(port, upstream, event, turn));
            }
        }
    }

    /// No exchange under way, if there is any, will come to its end.
    pub(crate) fn break_exchanges<H: Handler>(&mut self, why: Ended, turn: &mut Turn<'_, H>) {
        match self.exchanges {
            Exchanges::One(UnderWay::Nothing) => {}
            Exchanges::One(_) => self.lend_only(turn, |port, turn| life::break_off(port, why, turn)),
            Exchanges::Streams(_) => {
                self.with_round(turn, |round, _| round.break_all(why));
            }
        }
    }

    /// Lends the life of the only exchange what it needs, and then goes on with the connection.
    fn with_only<H: Handler>(
        &mut self,
        turn: &mut Turn<'_, H>,
        act: impl FnOnce(&mut OnlyPort<'_>, &mut Turn<'_, H>),
    ) {
        self.lend_only(turn, act);
        self.converse(&[], turn);
    }

    /// Lends the life of the only exchange what it needs.
    pub(super) fn lend_only<H>(
        &mut self,
        turn: &mut Turn<'_, H>,
        act: impl FnOnce(&mut OnlyPort<'_>, &mut Turn<'_, H>),
    ) {
        let mut outgoing = self.outgoing(turn.spare);
        act(&mut self.port(&mut outgoing, turn.now_ms), turn);
        self.put_outgoing(outgoing, turn.spare);
    }
}
