//! A connection's place in a list that goes through the connections themselves; see `order.rs`.

use staunch_netio::Slot;

/// No neighbour.
pub(crate) const NONE: Slot = Slot::MAX;

/// A connection's neighbours in the list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Links {
    pub(crate) before: Slot,
    pub(crate) after: Slot,
    pub(crate) listed: bool,
}

impl Default for Links {
    fn default() -> Self {
        Self { before: NONE, after: NONE, listed: false }
    }
}
