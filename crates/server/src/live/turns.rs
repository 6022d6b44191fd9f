//! A line in which clients take turns: who puts much in holds up nobody who puts in little.
//!
//! It owns whose turn it is, and how much each client has in line. Where its bounds are asked for, a client
//! that has nothing in line must never find it full because of what others have there, but at twice the
//! bound.

use std::collections::VecDeque;
use std::net::IpAddr;

use foldhash::{HashMap, HashMapExt as _};
use staunch_engine::Address;

use crate::checks::network_of;

/// Whose turn it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum LineClient {
    /// A client by its address, of IPv6 by its network.
    Network(IpAddr),
    /// Where addresses are not asked for, a connection: its worker and its slot.
    Connection(u16, u32),
    /// All readers of a worker together.
    Worker(u16),
    /// Another node.
    Node,
}

impl LineClient {
    /// The client that asks on a connection.
    pub(crate) fn of(client: Option<IpAddr>, connection: Address) -> Self {
        client.map_or(Self::Connection(connection.worker, connection.slot), |client| {
            Self::Network(network_of(client))
        })
    }
}

/// A line of `T`s in which clients take turns.
#[derive(Debug)]
pub(crate) struct Turns<T> {
    lanes: HashMap<LineClient, Lane<T>>,
    /// Clients with something in line, in the order of their turns.
    order: VecDeque<LineClient>,
    weight: usize,
}

/// What a client has in line, each with its weight.
#[derive(Debug)]
struct Lane<T> {
    items: VecDeque<(T, usize)>,
    weight: usize,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self { lanes: HashMap::new(), order: VecDeque::new(), weight: 0 }
    }
}

impl<T> Turns<T> {
    /// What all clients have in line.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    /// Whether nothing is in line.
    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Whether a client may put more in, of which all have at most `weight_max` in line, and one client
    /// `share_max`.
    pub(crate) fn has_room(&self, client: LineClient, weight_max: usize, share_max: usize) -> bool {
        match self.lanes.get(&client) {
            None => self.weight < weight_max.saturating_mul(2),
            Some(lane) => self.weight < weight_max && lane.weight < share_max,
        }
    }

    /// Puts something in line, behind what the client has there.
    pub(crate) fn push(&mut self, client: LineClient, item: T, weight: usize) {
        let lane = self.lanes.entry(client).or_insert_with(|| {
            self.order.push_back(client);
            Lane { items: VecDeque::new(), weight: 0 }
        });
        lane.items.push_back((item, weight));
        lane.weight += weight;
        self.weight += weight;
    }

    /// The first that the next client has in line.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let client = self.order.pop_front()?;
        let lane = self.lanes.get_mut(&client)?;
        let (item, weight) = lane.items.pop_front()?;
        lane.weight -= weight;
        self.weight -= weight;
        match lane.items.is_empty() {
            true => drop(self.lanes.remove(&client)),
            false => self.order.push_back(client),
        }
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use staunch_engine::StreamRef;

    use super::*;

    #[test]
    fn clients_take_turns_and_each_keeps_its_order() {
        let mut turns = Turns::default();
        let [one, other] = [LineClient::Worker(1), LineClient::Worker(2)];
        for item in 0..4 {
            turns.push(one, item, 1);
        }
        turns.push(other, 10, 5);
        assert_eq!(turns.weight(), 9);
        let order: Vec<i32> = std::iter::from_fn(|| turns.pop()).collect();
        assert_eq!(order, [0, 10, 1, 2, 3]);
        assert!(turns.is_empty() && turns.weight() == 0 && turns.lanes.is_empty());
    }

    #[test]
    fn who_has_nothing_in_line_finds_room() {
        let mut turns = Turns::default();
        let client = LineClient::Worker;
        (0..3).for_each(|item| turns.push(client(1), item, 1));
        assert!(!turns.has_room(client(1), 10, 3), "its share");
        assert!(turns.has_room(client(1), 10, 4) && !turns.has_room(client(1), 3, 10));
        assert!(turns.has_room(client(2), 3, 1), "nothing in line");
        (2..5).for_each(|number| turns.push(client(number), 0, 1));
        assert!(!turns.has_room(client(9), 3, 1), "twice the bound");
    }

    #[test]
    fn a_client_is_a_network_or_a_connection() {
        let address = Address { worker: 1, slot: 2, generation: 3, stream: StreamRef::of(4) };
        let of = |text: &str| LineClient::of(text.parse().ok(), address);
        assert_eq!(of("2001:db8::1"), of("2001:db8::2"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of(""), LineClient::Connection(1, 2));
    }
}
