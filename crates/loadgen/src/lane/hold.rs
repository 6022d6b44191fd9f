//! Clients that connect and stay: up to millions of idle connections.
//!
//! It must never wake up for a connection that does nothing.

use staunch_netio::Io;

use crate::client::LaneClient;
use crate::connection::{ClientConnection, ConnectionState};
use crate::dialer::Dialer;
use crate::network_side::NetworkSide;

/// The lane.
pub(crate) struct Hold {
    pub(crate) client: LaneClient,
    pub(crate) dialer: Dialer,
    request_first: bool,
    /// How many connections stand: see [`Hold::stands`].
    pub(crate) held: u64,
}

impl Hold {
    pub(crate) fn new(
        client: LaneClient,
        connections: u32,
        open_per_s: Option<f64>,
        request_first: bool,
    ) -> Self {
        Self { client, dialer: Dialer::new(connections, open_per_s), request_first, held: 0 }
    }

    /// Begins what is due. Returns when something is due again.
    pub(crate) fn due<I: Io>(&mut self, net: &mut NetworkSide<I>) -> u64 {
        let request_first = self.request_first;
        let (dial_ns, full) = self.dialer.due(&mut self.client, net, u64::MAX, |client, net, slot| {
            if request_first {
                client.ask(net, slot, net.now_ns);
            }
        });
        if full && request_first {
            self.client.leave_unsent();
        }
        self.client.expire(net).min(dial_ns)
    }

    /// Something has happened to a connection: counts it, or no longer.
    pub(crate) fn recount(&mut self, connection: &mut ClientConnection) {
        let stands = Self::stands(connection);
        if stands != connection.held {
            connection.held = stands;
            self.held = if stands { self.held + 1 } else { self.held - 1 };
        }
    }

    /// Whether a connection is held: made, kept by the server as far as one knows, and answered if it has
    /// asked. One in the queue of the kernel is made, but its request is held by nobody until then.
    pub(crate) fn stands(connection: &ClientConnection) -> bool {
        connection.state == ConnectionState::Open && connection.flights.is_empty()
    }
}
