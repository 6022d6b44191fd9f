//! Connections that wait for an answer, in the order their oldest requests were meant to start: the first is
//! the first whose client loses patience.
//!
//! A list through the connections themselves: adding and removing cost the same however many wait, and a
//! connection that does not wait takes no room. It must never be used by two lanes.

use staunch_netio::Slot;

use crate::connection::ClientConnection;
use crate::links::{Links, NONE};

/// First and last of the list.
#[derive(Debug)]
pub(crate) struct WaitingOrder {
    first: Slot,
    last: Slot,
}

impl Default for WaitingOrder {
    fn default() -> Self {
        Self { first: NONE, last: NONE }
    }
}

impl WaitingOrder {
    /// The one that has waited longest.
    #[inline]
    pub(crate) fn first(&self) -> Option<Slot> {
        (self.first != NONE).then_some(self.first)
    }

    /// Puts a connection in its place, unless it is listed already. That is the end, but for pipelined
    /// requests whose predecessors were answered: they have waited already, and their place is looked for
    /// from the end.
    #[inline]
    pub(crate) fn insert(&mut self, connections: &mut [ClientConnection], slot: Slot) {
        if connections[slot as usize].links.listed {
            return;
        }
        let since_ns = connections[slot as usize].waits_since_ns();
        let (mut before, mut after) = (self.last, NONE);
        while before != NONE && connections[before as usize].waits_since_ns() > since_ns {
            after = before;
            before = connections[before as usize].links.before;
        }
        connections[slot as usize].links = Links { before, after, listed: true };
        match before {
            NONE => self.first = slot,
            before => connections[before as usize].links.after = slot,
        }
        match after {
            NONE => self.last = slot,
            after => connections[after as usize].links.before = slot,
        }
    }

    /// Takes a connection out, if it is listed.
    #[inline]
    pub(crate) fn remove(&mut self, connections: &mut [ClientConnection], slot: Slot) {
        let links = std::mem::take(&mut connections[slot as usize].links);
        if !links.listed {
            return;
        }
        match links.before {
            NONE => self.first = links.after,
            before => connections[before as usize].links.after = links.after,
        }
        match links.after {
            NONE => self.last = links.before,
            after => connections[after as usize].links.before = links.before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use crate::connection::Flight;

    proptest! {
        #[test]
        fn it_keeps_the_order_of_a_sorted_list(steps in vec((any::<bool>(), 0u32..8, 0u64..20), 0..200)) {
            let mut connections: Vec<ClientConnection> = Vec::new();
            connections.resize_with(8, ClientConnection::default);
            let (mut order, mut plain) = (WaitingOrder::default(), Vec::<(u64, Slot)>::new());
            for (insert, slot, intended_ns) in steps {
                if !insert {
                    order.remove(&mut connections, slot);
                    plain.retain(|listed| listed.1 != slot);
                } else if !plain.iter().any(|listed| listed.1 == slot) {
                    connections[slot as usize].flights = [Flight { intended_ns, entry: 0 }].into();
                    order.insert(&mut connections, slot);
                    let place = plain.partition_point(|listed| listed.0 <= intended_ns);
                    plain.insert(place, (intended_ns, slot));
                } else {
                    order.insert(&mut connections, slot);
                }
                prop_assert_eq!(order.first(), plain.first().map(|listed| listed.1));
            }
            for (_, slot) in plain {
                prop_assert_eq!(order.first(), Some(slot));
                order.remove(&mut connections, slot);
            }
            prop_assert_eq!(order.first(), None);
        }
    }
}
