//! What a handler asks of its worker beside the exchange in hand.
//!
//! It must never act by itself: the worker does, when it has dealt with the present event.

use std::cell::RefCell;

use super::address::Address;

/// Collects what is asked for.
#[derive(Debug, Default)]
pub struct Outbox {
    wakes: RefCell<Vec<Address>>,
}

impl Outbox {
    /// Calls [`crate::Handler::ready`] for this open exchange of the same worker soon, whether or not it has
    /// room. Nothing happens if it is finished by then.
    pub fn wake(&self, address: Address) {
        self.wakes.borrow_mut().push(address);
    }

    /// Whether nothing is asked for.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.wakes.borrow().is_empty()
    }

    /// Takes all exchanges to wake, in the order in which they were named.
    pub(crate) fn take_wakes(&self) -> Vec<Address> {
        std::mem::take(&mut *self.wakes.borrow_mut())
    }
}
