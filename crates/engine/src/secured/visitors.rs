//! Identities of the clients of secured connections, as far as certificates tell them.
//!
//! It owns one identity for all connections of a client. Nothing is held for a connection whose client showed
//! no certificate. It must never outlive the connection: the next one in its slot is another's.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use staunch_netio::Slot;
use staunch_tls::ClientIdentity;

/// The identities of one worker's connections.
#[derive(Debug, Default)]
pub(crate) struct Visitors {
    by_slot: HashMap<Slot, Arc<ClientIdentity>>,
    known: HashSet<Arc<ClientIdentity>>,
}

impl Visitors {
    /// The client of a connection has proved who it is.
    pub(crate) fn insert(&mut self, slot: Slot, identity: Arc<ClientIdentity>) {
        let known = self.known.get(&identity).cloned().unwrap_or_else(|| {
            self.known.insert(Arc::clone(&identity));
            identity
        });
        self.by_slot.insert(slot, known);
    }

    /// A connection is over.
    #[inline]
    pub(crate) fn remove(&mut self, slot: Slot) {
        if !self.by_slot.is_empty() {
            self.forget(slot);
        }
    }

    #[inline(never)]
    fn forget(&mut self, slot: Slot) {
        let Some(identity) = self.by_slot.remove(&slot) else { return };
        // Two handles are left: `identity` here, and the one among those that are known.
        if Arc::strong_count(&identity) == 2 {
            self.known.remove(&identity);
        }
    }

    /// The identity of a connection's client.
    pub(crate) fn get(&self, slot: Slot) -> Option<&ClientIdentity> {
        self.by_slot.get(&slot).map(Arc::as_ref)
    }

    /// Memory that counts for a connection, in bytes: as if no other were of the same client, and twice the
    /// two entries, for tables have room to spare.
    pub(crate) fn held_bytes(&self, slot: Slot) -> usize {
        const ENTRIES_BYTES: usize = 2 * (size_of::<(Slot, Arc<ClientIdentity>)>() + size_of::<usize>());
        self.get(slot).map_or(0, |identity| identity.held_bytes() + ENTRIES_BYTES)
    }

    /// Gives memory back.
    pub(crate) fn shrink(&mut self) {
        self.by_slot.shrink_to_fit();
        self.known.shrink_to_fit();
    }
}
