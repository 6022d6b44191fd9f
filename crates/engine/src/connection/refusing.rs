//! Connections and requests that are told to come back, and the word of a proxy that comes before all
//! requests.
//!
//! It must never be on the way of a request that is answered as it wants.

use staunch_protocol::Status;
use staunch_protocol::http1::authority_in;
use staunch_protocol::proxy::{Introduction, read_introduction};

use super::{Connection, Phase};
use crate::clients::TOO_MANY_CONNECTIONS;
use crate::exchange::turn::Turn;
use crate::handler::Handler;

impl Connection {
    /// The first bytes are the proxy's. Gives what came behind its word, once that is whole and the client is
    /// welcome.
    #[cold]
    pub(crate) fn be_introduced<H: Handler>(
        &mut self,
        bytes: &[u8],
        turn: &mut Turn<'_, H>,
    ) -> Option<Vec<u8>> {
        let joined = self.session.take_kept(bytes);
        match read_introduction(&joined) {
            Introduction::NeedMore => {
                let count = joined.len();
                self.session.keep_last(joined, count);
                None
            }
            Introduction::Fault(_) => {
                turn.context.stats.connections.proxy_faults.add(1);
                self.phase = Phase::Ending { linger: false };
                None
            }
            Introduction::Header { source, bytes_used } => {
                self.phase = Phase::Open;
                let (slot, now_ms) = (turn.context.address.slot, turn.now_ms);
                let clients = turn.context.clients.as_deref_mut();
                if clients.is_none_or(|clients| clients.introduce(slot, source, now_ms, turn.context.stats)) {
                    return Some(joined[bytes_used..].to_vec());
                }
                self.turn_away(turn);
                None
            }
        }
    }

    /// Its client has too many connections.
    #[cold]
    pub(crate) fn turn_away<H: Handler>(&mut self, turn: &mut Turn<'_, H>) {
        let mut outgoing = self.outgoing(turn.spare);
        let status = Status::TOO_MANY_REQUESTS;
        let (fields, body) = TOO_MANY_CONNECTIONS;
        self.session.turn_away(status, fields.into(), body, turn.context.date, outgoing.bytes());
        self.put_outgoing(outgoing, turn.spare);
        self.phase = Phase::Ending { linger: true };
        turn.tell(None, status, body.len(), None);
    }

    /// Plain HTTP came where TLS is spoken: the answer names the address that is meant, as far as the head
    /// tells it.
    #[cold]
    pub(crate) fn refuse_plain<H: Handler>(&mut self, head: &[u8], turn: &mut Turn<'_, H>) {
        let address = authority_in(head).map_or_else(String::new, |host| format!(": https://{host}/"));
        let body = format!("400 Bad Request: this port speaks HTTPS{address}\n");
        let fields = format!("Content-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n", body.len());
        let mut outgoing = self.outgoing(turn.spare);
        let status = Status::BAD_REQUEST;
        let (fields, date) = (fields.as_bytes().into(), turn.context.date);
        self.session.turn_away(status, fields, body.as_bytes(), date, outgoing.bytes());
        self.put_outgoing(outgoing, turn.spare);
        self.phase = Phase::Ending { linger: true };
        turn.tell(None, status, body.len(), None);
    }
}
