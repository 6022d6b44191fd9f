//! The client in each slot of a worker, and what each client may take: connections at a time, and requests
//! a second.
//!
//! It owns a seat for each slot, and a share in the one table of the process. A worker to which clients mean
//! nothing has none of this. It must never wait, and never refuse anybody because the table is full.
//!
//! Order of calls for a slot: `arrive` once; after `Arrival::Unintroduced` `introduce` once; `address` and
//! `may_ask` for each request; `leave` once.

mod policy;
mod table;
mod trusted;

use std::net::{IpAddr, SocketAddr};

use staunch_protocol::Request;

pub use self::policy::{ClientPolicy, ClientRate};
pub use self::table::ClientTable;
use self::table::{Client, Entry, Table, Ticket, Turn};
pub use self::trusted::{Trusted, client_of};
use crate::stats::Stats;

/// Fields and body of the answer to a client that has too many connections.
pub(crate) const TOO_MANY_CONNECTIONS: (&[u8], &[u8]) = (
    b"Retry-After: 1\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 69\r\n",
    b"429 Too Many Requests: too many connections at once from this client\n",
);
/// The body of the answer to a request that comes too soon.
pub(crate) const TOO_SOON_BODY: &[u8] = b"429 Too Many Requests: this client asks too often\n";

/// What becomes of a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The connection is served.
    Welcome,
    /// A proxy will tell first who it is.
    Unintroduced,
    /// Its client has as many as it may.
    TooMany,
    /// The connection should come from a proxy, and does not.
    Stranger,
}

/// The client that is connected in a slot.
#[derive(Debug, Default)]
struct Seat {
    /// The client's address, as far as the connection itself tells.
    address: Option<IpAddr>,
    ticket: Option<Ticket>,
}

/// The clients of one worker.
#[derive(Debug)]
pub(crate) struct Clients {
    policy: ClientPolicy,
    /// Fields of the answer to a request that comes too soon.
    too_soon_fields: Vec<u8>,
    table: ClientTable,
    seats: Vec<Seat>,
}

impl Clients {
    pub(crate) fn new(policy: ClientPolicy, table: ClientTable) -> Self {
        Self { too_soon_fields: too_soon_fields(&policy), policy, table, seats: Vec::new() }
    }

    /// Other rules from now on. Who is connected stays, and stays counted.
    pub(crate) fn set_policy(&mut self, policy: ClientPolicy) {
        self.too_soon_fields = too_soon_fields(&policy);
        self.policy = policy;
    }

    /// A client connected from `peer`.
    pub(crate) fn arrive(
        &mut self,
        slot: u32,
        peer: Option<SocketAddr>,
        now_ms: u64,
        stats: &Stats,
    ) -> Arrival {
        let address = peer.map(|peer| peer.ip().to_canonical());
        let index = slot as usize;
        if self.seats.len() <= index {
            self.seats.resize_with(index + 1, Seat::default);
        }
        self.seats[index] = Seat { address, ticket: None };
        if !self.policy.proxy_protocol {
            return if self.seat(slot, now_ms, stats) { Arrival::Welcome } else { Arrival::TooMany };
        }
        let trusted = &self.policy.trusted;
        if trusted.is_empty() || address.is_some_and(|address| trusted.contains(address)) {
            return Arrival::Unintroduced;
        }
        stats.connections.proxy_faults.add(1);
        Arrival::Stranger
    }

    /// The proxy has told where the client is, or that there is none. Whether it is served.
    pub(crate) fn introduce(
        &mut self,
        slot: u32,
        source: Option<SocketAddr>,
        now_ms: u64,
        stats: &Stats,
    ) -> bool {
        if let Some(source) = source {
            self.seats[slot as usize].address = Some(source.ip().to_canonical());
        } else {
            // The proxy itself, which looks whether we are here: no client's connection.
            return true;
        }
        self.seat(slot, now_ms, stats)
    }

    /// Where the client of a slot is.
    #[inline]
    pub(crate) fn address(&self, slot: u32) -> Option<IpAddr> {
        self.seats.get(slot as usize)?.address
    }

    /// Where a request of this slot comes from.
    pub(crate) fn client(&self, slot: u32, request: &Request<'_>) -> Option<IpAddr> {
        self.address(slot).map(|peer| client_of(request, peer, &self.policy.trusted))
    }

    /// Whether the peer of a connection is a proxy whose word about its clients is believed.
    pub(crate) fn is_trusted(&self, slot: u32) -> bool {
        self.address(slot).is_some_and(|peer| self.policy.trusted.contains(peer))
    }

    /// Whether a request may be made now.
    pub(crate) fn may_ask(&self, slot: u32, request: &Request<'_>, now_ms: u64, stats: &Stats) -> bool {
        let Some(rate) = self.policy.rate else { return true };
        let Some(address) = self.client(slot, request) else { return true };
        let client = Client::new(address, self.policy.prefix_ipv6);
        match self.table().ask(client, rate, in_ns(now_ms)) {
            Turn::Granted => true,
            Turn::TooSoon => {
                stats.clients.rate.add(1);
                self.policy.dry_run
            }
            Turn::NoPlace => {
                stats.clients.table_full.add(1);
                true
            }
        }
    }

    /// Fields of the answer to a request that may not.
    pub(crate) fn too_soon_fields(&self) -> &[u8] {
        &self.too_soon_fields
    }

    /// The connection of a slot is over.
    pub(crate) fn leave(&mut self, slot: u32) {
        let Some(seat) = self.seats.get_mut(slot as usize) else { return };
        if let Some(ticket) = std::mem::take(seat).ticket {
            self.table().leave(ticket);
        }
    }

    /// Counts the connection if connections are limited. A proxy's are not its clients'.
    fn seat(&mut self, slot: u32, now_ms: u64, stats: &Stats) -> bool {
        let (Some(most), Some(address)) = (self.policy.connections_max, self.address(slot)) else {
            return true;
        };
        if self.policy.trusted.contains(address) {
            return true;
        }
        let most = u64::from(most.get());
        let client = Client::new(address, self.policy.prefix_ipv6);
        let enforced = if self.policy.dry_run { u64::MAX } else { most };
        match self.table().enter(client, enforced, in_ns(now_ms)) {
            Entry::Counted(ticket, count) => {
                stats.clients.connections.add(u64::from(count > most));
                self.seats[slot as usize].ticket = Some(ticket);
                true
            }
            Entry::TooMany => {
                stats.clients.connections.add(1);
                false
            }
            Entry::NoPlace => {
                stats.clients.table_full.add(1);
                true
            }
        }
    }

    fn table(&self) -> &Table {
        self.table.get()
    }
}

impl Drop for Clients {
    /// A worker that ends takes its connections with it.
    fn drop(&mut self) {
        for ticket in self.seats.drain(..).filter_map(|seat| seat.ticket) {
            self.table.get().leave(ticket);
        }
    }
}

fn too_soon_fields(policy: &ClientPolicy) -> Vec<u8> {
    let rate = policy.rate.map_or_else(|| "Retry-After: 1\r\n".to_owned(), ClientRate::fields);
    let length_bytes = TOO_SOON_BODY.len();
    let content = format!("Content-Type: text/plain; charset=utf-8\r\nContent-Length: {length_bytes}\r\n");
    format!("{rate}{content}").into_bytes()
}

fn in_ns(ms: u64) -> u64 {
    ms * 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_announced() {
        let (fields, body) = TOO_MANY_CONNECTIONS;
        let announced = |fields: &[u8]| {
            let text = String::from_utf8_lossy(fields).into_owned();
            text.split_once("Content-Length: ").unwrap().1.split_once('\r').unwrap().0.parse().ok()
        };
        assert_eq!(announced(fields), Some(body.len()));
    }
}
