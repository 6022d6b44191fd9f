//! Which ports are open, and whether they take transactions.

use crate::header::Kind;

/// Words of a set of all ports.
const WORDS: usize = 65_536 / 64;

/// The open ports of a node: two bits for each.
#[derive(Debug, Clone)]
pub struct Ports {
    open: Box<[u64; WORDS]>,
    transactions: Box<[u64; WORDS]>,
}

impl Default for Ports {
    fn default() -> Self {
        Self { open: Box::new([0; WORDS]), transactions: Box::new([0; WORDS]) }
    }
}

impl Ports {
    /// Opens a port for datagrams.
    pub fn open(&mut self, port: u16) {
        set(&mut self.open, port);
    }

    /// Opens a port for datagrams and transactions.
    pub fn open_for_transactions(&mut self, port: u16) {
        set(&mut self.open, port);
        set(&mut self.transactions, port);
    }

    /// Closes a port.
    pub fn close(&mut self, port: u16) {
        self.open[usize::from(port) / 64] &= !(1 << (port % 64));
        self.transactions[usize::from(port) / 64] &= !(1 << (port % 64));
    }

    /// Whether a port is open.
    #[inline]
    pub fn is_open(&self, port: u16) -> bool {
        has(&self.open, port)
    }

    /// Whether an open port takes frames of this kind.
    #[inline]
    pub fn takes(&self, port: u16, kind: Kind) -> bool {
        kind == Kind::Data || has(&self.transactions, port)
    }
}

fn set(words: &mut [u64; WORDS], port: u16) {
    words[usize::from(port) / 64] |= 1 << (port % 64);
}

#[inline]
fn has(words: &[u64; WORDS], port: u16) -> bool {
    words[usize::from(port) / 64] >> (port % 64) & 1 == 1
}
