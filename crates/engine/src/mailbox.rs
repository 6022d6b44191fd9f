//! Mail from other threads to the connections of a worker.
//!
//! The only thing workers share that changes. It is locked by a sender for the length of a push and by the
//! worker once a wake-up, never on the path of a request that is answered at once.

use std::sync::{Arc, Mutex};

use crate::Address;

/// One worker's mailbox.
pub struct Mailbox<M> {
    letters: Mutex<Vec<(Address, M)>>,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl<M> Mailbox<M> {
    /// An empty mailbox that calls `wake` when its first letter comes.
    pub fn new(wake: Box<dyn Fn() + Send + Sync>) -> Self {
        Self { letters: Mutex::new(Vec::new()), wake }
    }

    /// Takes all letters.
    pub fn take(&self) -> Vec<(Address, M)> {
        std::mem::take(&mut *self.letters.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    fn put(&self, address: Address, letter: M) {
        let mut letters = self.letters.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        letters.push((address, letter));
        let first = letters.len() == 1;
        drop(letters);
        if first {
            (self.wake)();
        }
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

    /// Sends a letter. It is dropped if its connection is gone by then.
    pub fn send(&self, address: Address, letter: M) {
        if let Some(mailbox) = self.mailboxes.get(usize::from(address.worker)) {
            mailbox.put(address, letter);
        }
    }
}
