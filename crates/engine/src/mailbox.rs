//! Mail from other threads to the connections of a worker, and orders to the worker itself.
//!
//! The only thing workers share that changes. It is locked by a sender for the length of a push and by the
//! worker once a wake-up, never on the path of a request that is answered at once.

use std::sync::{Arc, Mutex, MutexGuard};

use crate::exchange::address::Address;
use crate::exchange::owner::Owner;
use crate::order::Order;

/// The letters and orders that wait for a worker, and how it is woken for them.
pub struct Mailbox<M> {
    bag: Mutex<Bag<M>>,
    wake: Box<dyn Fn() + Send + Sync>,
}

/// An exchange, or a part of a handler, that a letter comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipient {
    /// The exchange of this address, if it is not over by then.
    Exchange(Address),
    /// A part of the worker's handler, whatever its exchanges are.
    Owner(Owner),
}

struct Bag<M> {
    letters: Vec<(Recipient, M)>,
    orders: Vec<Order>,
}

impl<M> Mailbox<M> {
    /// An empty mailbox that calls `wake` when its first letter or order comes.
    pub fn new(wake: Box<dyn Fn() + Send + Sync>) -> Self {
        Self { bag: Mutex::new(Bag { letters: Vec::new(), orders: Vec::new() }), wake }
    }

    /// Wakes the worker without a letter: it hears of it after everything that happened before.
    pub(crate) fn probe(&self) {
        (self.wake)();
    }

    /// Takes all letters, each with its recipient.
    pub fn take(&self) -> Vec<(Recipient, M)> {
        std::mem::take(&mut self.open().letters)
    }

    /// Takes all orders, the oldest first.
    pub(crate) fn take_orders(&self) -> Vec<Order> {
        std::mem::take(&mut self.open().orders)
    }

    fn put(&self, recipient: Recipient, letter: M) {
        let mut bag = self.open();
        bag.letters.push((recipient, letter));
        let first = bag.letters.len() == 1;
        drop(bag);
        if first {
            (self.wake)();
        }
    }

    fn open(&self) -> MutexGuard<'_, Bag<M>> {
        self.bag.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Where orders to a worker are put, whatever its mail is.
pub(crate) trait Inbox: Send + Sync {
    /// Sends an order.
    fn order(&self, order: Order);
}

impl<M: Send> Inbox for Mailbox<M> {
    fn order(&self, order: Order) {
        self.open().orders.push(order);
        (self.wake)();
    }
}

/// The post office: sends mail to any worker's connections. Cheap to clone.
pub struct Post<M> {
    mailboxes: Arc<[Arc<Mailbox<M>>]>,
}

impl<M> Clone for Post<M> {
    fn clone(&self) -> Self {
        Self { mailboxes: Arc::clone(&self.mailboxes) }
    }
}

impl<M> Post<M> {
    /// A post office for these mailboxes, one a worker in the workers' order.
    pub fn new(mailboxes: Vec<Arc<Mailbox<M>>>) -> Self {
        Self { mailboxes: mailboxes.into() }
    }

    /// Sends a letter to an exchange. It is dropped if that is finished by then.
    pub fn send(&self, address: Address, letter: M) {
        if let Some(mailbox) = self.mailboxes.get(usize::from(address.worker)) {
            mailbox.put(Recipient::Exchange(address), letter);
        }
    }

    /// Sends a letter to a part of a worker's handler, whatever its exchanges are: it comes to
    /// [`crate::Handler::mail`].
    pub fn send_to_worker(&self, worker: u16, owner: Owner, letter: M) {
        if let Some(mailbox) = self.mailboxes.get(usize::from(worker)) {
            mailbox.put(Recipient::Owner(owner), letter);
        }
    }

    /// How many workers there are.
    pub fn workers(&self) -> u16 {
        self.mailboxes.len() as u16
    }
}
