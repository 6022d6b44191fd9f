//! Sockets on their way from a normal descriptor into a ring's table, and the addresses they will connect to.
//!
//! Owns the memory the kernel reads when such operations are handed over. It must never give it up before
//! that. Order of calls: `add`, push the operations, hand over, `clear`.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::net::SocketAddrAny;

/// How many normal descriptors are in use for this at most: few beside any limit, and enough that handing
/// over costs little for each.
const PASSAGES_MAX: usize = 64;

/// A socket and the address that it is to connect to.
struct Passage {
    descriptor: RawFd,
    address: SocketAddrAny,
    _socket: OwnedFd,
}

/// Those that are not handed over yet.
#[derive(Default)]
pub(crate) struct Passages {
    // Never longer than it was at first, for the kernel is told where its elements stand.
    waiting: Vec<Passage>,
}

/// Where the operations find the descriptor and the address, until `clear`.
pub(crate) struct Pointers {
    /// The socket's normal descriptor.
    pub(crate) descriptor: *const RawFd,
    /// The peer's address.
    pub(crate) address: *const libc::sockaddr,
    /// Its length.
    pub(crate) address_bytes: libc::socklen_t,
}

impl Passages {
    /// Keeps a socket and an address. There must be room.
    pub(crate) fn add(&mut self, socket: OwnedFd, address: SocketAddrAny) -> Pointers {
        assert!(!self.is_full(), "what waits must not be moved");
        if self.is_empty() {
            self.waiting.reserve_exact(PASSAGES_MAX);
        }
        let index = self.waiting.len();
        self.waiting.push(Passage { descriptor: socket.as_raw_fd(), address, _socket: socket });
        let passage = &self.waiting[index];
        Pointers {
            descriptor: &raw const passage.descriptor,
            address: passage.address.as_ptr().cast(),
            address_bytes: passage.address.addr_len(),
        }
    }

    /// Whether no more can be added before a hand-over.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= PASSAGES_MAX
    }

    /// Whether there are none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Everything was handed over: the tables hold the sockets now, and the addresses were read.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
    }
}
