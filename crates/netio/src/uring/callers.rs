//! Room for the addresses of those who connect, for the accepts of one listener.
//!
//! Owns the memory the kernel writes an address into while an accept is with it. It must never move or free
//! that before the accept is over. Order of calls: `expect` for each accept, `take` when it is over.

use std::net::SocketAddr;

use rustix::net::SocketAddrAny;
use rustix::net::addr::SocketAddrStorage;

use crate::socket;

/// How many accepts of one listener can learn addresses at once: one bit each of a word.
pub(crate) const CALLERS_MAX: u32 = 32;

/// Room for one address, as accept(2) wants it.
#[derive(Clone, Copy)]
struct Room {
    address: SocketAddrStorage,
    address_bytes: libc::socklen_t,
}

/// The rooms of one listener.
#[derive(Default)]
pub(crate) struct Callers {
    /// Allocated once, when first needed.
    rooms: Vec<Room>,
    /// A bit for each room in use.
    used: u32,
}

/// What an accept is told about its room, which `number` names afterwards.
pub(crate) struct Caller {
    /// Where the address goes.
    pub(crate) address: *mut libc::sockaddr,
    /// Where its length stands.
    pub(crate) address_bytes: *mut libc::socklen_t,
    /// 0 for none.
    pub(crate) number: u16,
}

impl Caller {
    /// An accept that does not ask for the peer's address.
    pub(crate) const UNKNOWN: Self =
        Self { address: std::ptr::null_mut(), address_bytes: std::ptr::null_mut(), number: 0 };
}

impl Callers {
    /// Room for one accept more. There must be some.
    pub(crate) fn expect(&mut self) -> Caller {
        let index = self.used.trailing_ones();
        assert!(index < CALLERS_MAX, "more accepts than rooms");
        if self.rooms.is_empty() {
            // SAFETY: a sockaddr_storage is made of integers, for which all zeroes are valid.
            let address: SocketAddrStorage = unsafe { std::mem::zeroed() };
            self.rooms = vec![Room { address, address_bytes: 0 }; CALLERS_MAX as usize];
        }
        self.used |= 1 << index;
        let room = &mut self.rooms[index as usize];
        room.address_bytes = size_of::<SocketAddrStorage>() as libc::socklen_t;
        Caller {
            address: (&raw mut room.address).cast(),
            address_bytes: &raw mut room.address_bytes,
            number: index as u16 + 1,
        }
    }

    /// The numbers of the accepts that are not over.
    pub(crate) fn expected(&self) -> impl Iterator<Item = u16> + use<> {
        let used = self.used;
        (0..CALLERS_MAX).filter(move |index| used & 1 << index != 0).map(|index| index as u16 + 1)
    }

    /// The accept is over: what its room says, which is free now (see [`socket::peer`]). `None` without a
    /// room, or without an address in it; means nothing if the accept has failed.
    pub(crate) fn take(&mut self, number: u16) -> Option<SocketAddr> {
        let index = number.checked_sub(1)?;
        self.used &= !(1 << index);
        let room = &self.rooms[usize::from(index)];
        let lengths = size_of::<libc::sa_family_t>()..=size_of::<SocketAddrStorage>();
        if !lengths.contains(&(room.address_bytes as usize)) {
            return None;
        }
        // SAFETY: the room is initialized memory of at least this length.
        let address = unsafe { SocketAddrAny::read(&raw const room.address, room.address_bytes) };
        socket::peer(address)
    }
}
