//! Clients that connect and stay: up to millions of idle connections.
//!
//! It must never wake up for a connection that does nothing.

use staunch_netio::Io;

use crate::client::Client;
use crate::desk::Desk;
use crate::dialer::Dialer;

/// The lane.
pub(crate) struct Hold {
    pub(crate) client: Client,
    pub(crate) dialer: Dialer,
    request_first: bool,
}

impl Hold {
    pub(crate) fn new(
        client: Client,
        connections: u32,
        open_per_s: Option<f64>,
        request_first: bool,
    ) -> Self {
        Self { client, dialer: Dialer::new(connections, open_per_s), request_first }
    }

    /// Begins what is due. Returns when something is due again.
    pub(crate) fn due<I: Io>(&mut self, desk: &mut Desk<I>) -> u64 {
        let request_first = self.request_first;
        let (dial_ns, full) = self.dialer.due(&mut self.client, desk, u64::MAX, |client, desk, slot| {
            if request_first {
                client.ask(desk, slot, desk.now_ns);
            }
        });
        if full && request_first {
            self.client.leave_unsent();
        }
        self.client.expire(desk).min(dial_ns)
    }
}
