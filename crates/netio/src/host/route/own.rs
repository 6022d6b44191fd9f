//! Which addresses are this host's own: those of routes of type local, in every table of the network
//! namespace of the calling thread, and word that they may have changed.
//!
//! It owns two netlink sockets: by one it asks, by the other it is told. It must never wait, and never take
//! word of a change for the change: what was told is only a reason to read all of them again. Order:
//! [`OwnAddresses::open`], [`OwnAddresses::read`], then that again whenever [`OwnAddresses::may_differ`].

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, sendto, socket_with,
};

use super::message::{self, Answer, Message, Request, messages};

/// The kernel answers in pieces of at most 32 KiB (`netlink_dump`, af_netlink.c).
const ANSWER_BYTES: usize = 32 * 1024;
/// Groups of those who are told (linux/rtnetlink.h): of interfaces, and of addresses and routes of both
/// families. IPv4 takes routes of an interface that goes away with it, without a word for each.
const GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400;
/// How often a table is read anew that was changed meanwhile.
const TRIES: u32 = 4;
/// Where struct rtmsg has the type of a route.
const TYPE_AT: usize = 7;
/// Pieces of news taken at once: the rest is read with the next look.
const PIECES_MAX: u32 = 256;

/// The addresses of this host, and news of their changes.
#[derive(Debug)]
pub struct OwnAddresses {
    asking: OwnedFd,
    told: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

/// An address and how many of its bits are the same for all of its prefix.
pub type OwnPrefix = (IpAddr, u8);

impl OwnAddresses {
    /// From now on changes are told.
    ///
    /// # Errors
    /// Those of socket(2) and bind(2).
    pub fn open() -> io::Result<Self> {
        let (asking, told) = (netlink()?, netlink()?);
        ask_strictly(&asking);
        bind(&told, &SocketAddrNetlink::new(0, GROUPS))?;
        Ok(Self { asking, told, sequence: 0, buffer: vec![0; ANSWER_BYTES] })
    }

    /// Whether something was told, since it was asked last, by which they may be others now.
    ///
    /// # Errors
    /// Those of recv(2), but for word that was lost: then they may be others.
    pub fn may_differ(&mut self) -> io::Result<bool> {
        let mut differ = false;
        for _ in 0..PIECES_MAX {
            match recv(&self.told, &mut self.buffer[..], RecvFlags::DONTWAIT) {
                Ok((length, _)) => {
                    differ |= messages(&self.buffer[..length]).any(|word| matters(&word));
                }
                Err(Errno::AGAIN | Errno::INTR) => return Ok(differ),
                Err(Errno::NOBUFS) => differ = true,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// All of them.
    ///
    /// # Errors
    /// Those of send(2) and recv(2), what the kernel says; EAGAIN if it went on to change them.
    pub fn read(&mut self) -> io::Result<Vec<OwnPrefix>> {
        let mut prefixes = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            self.read_family(family as u8, &mut prefixes)?;
        }
        prefixes.sort_unstable();
        prefixes.dedup();
        Ok(prefixes)
    }

    fn read_family(&mut self, family: u8, prefixes: &mut Vec<OwnPrefix>) -> io::Result<()> {
        let before = prefixes.len();
        for _ in 0..TRIES {
            prefixes.truncate(before);
            if self.dump(family, prefixes)? {
                return Ok(());
            }
        }
        Err(Errno::AGAIN.into())
    }

    /// Says whether the table stood still meanwhile.
    fn dump(&mut self, family: u8, prefixes: &mut Vec<OwnPrefix>) -> io::Result<bool> {
        let mut head = [0; message::ROUTE_BYTES];
        (head[0], head[TYPE_AT]) = (family, libc::RTN_LOCAL);
        self.sequence = self.sequence.wrapping_add(1);
        let request = Request::dump(libc::RTM_GETROUTE, self.sequence, &head);
        sendto(&self.asking, &request.bytes(), SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut stands_still = true;
        loop {
            let (length, _) = recv(&self.asking, &mut self.buffer[..], RecvFlags::DONTWAIT)?;
            for message in messages(&self.buffer[..length]) {
                if message.sequence != self.sequence {
                    continue;
                }
                stands_still &= message.flags & libc::NLM_F_DUMP_INTR as u16 == 0;
                if let Some(errno) = message.end() {
                    return if errno == 0 {
                        Ok(stands_still)
                    } else {
                        Err(io::Error::from_raw_os_error(errno))
                    };
                }
                prefixes.extend(message.answer().ok().and_then(|route| prefix(&route, family)));
            }
        }
    }
}

/// NETLINK_ROUTE is protocol 0.
fn netlink() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?)
}

/// The kernel is to leave out what was not asked for: a router has a million other routes. One that cannot
/// (before Linux 4.20) tells all of them.
fn ask_strictly(socket: &OwnedFd) {
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open for the length of the call, and the value is an int.
    let _ = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_NETLINK,
            libc::NETLINK_GET_STRICT_CHK,
            std::ptr::from_ref(&on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
}

/// Whether addresses may be others after this word. Routers tell a thousand routes a second that are not
/// local.
fn matters(word: &Message<'_>) -> bool {
    match word.kind {
        libc::RTM_NEWROUTE | libc::RTM_DELROUTE => word.body.get(TYPE_AT) == Some(&libc::RTN_LOCAL),
        _ => true,
    }
}

/// The prefix of a route, if it is one of those asked for.
fn prefix(route: &Answer<'_>, family: u8) -> Option<OwnPrefix> {
    if route.u8_at(0) != family || route.u8_at(TYPE_AT) != libc::RTN_LOCAL {
        return None;
    }
    let bytes = route.attribute(libc::RTA_DST);
    // The route to everything names nothing.
    let address = match i32::from(family) {
        libc::AF_INET => IpAddr::from(<[u8; 4]>::try_from(bytes.unwrap_or(&[0; 4])).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(bytes.unwrap_or(&[0; 16])).ok()?),
    };
    Some((address, route.u8_at(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn what_loopback_has_is_this_hosts_own() {
        let mut own = OwnAddresses::open().unwrap();
        let all = own.read().unwrap();
        assert!(all.contains(&(Ipv4Addr::LOCALHOST.into(), 32)), "{all:?}");
        assert!(all.contains(&(Ipv4Addr::new(127, 0, 0, 0).into(), 8)), "{all:?}");
        if std::path::Path::new("/proc/net/if_inet6").exists() {
            assert!(all.contains(&(Ipv6Addr::LOCALHOST.into(), 128)), "{all:?}");
        }
        assert!(!all.iter().any(|(address, _)| address.is_multicast()), "{all:?}");
        assert!(own.may_differ().is_ok());
    }

    #[test]
    fn word_of_other_routes_does_not_matter() {
        let route = |kind| [libc::AF_INET as u8, 24, 0, 0, 254, 0, 0, kind, 0, 0, 0, 0];
        for (kind, body, expected) in [
            (libc::RTM_NEWROUTE, &route(libc::RTN_LOCAL)[..], true),
            (libc::RTM_DELROUTE, &route(libc::RTN_LOCAL), true),
            (libc::RTM_NEWROUTE, &route(libc::RTN_UNICAST), false),
            (libc::RTM_DELROUTE, &route(libc::RTN_BROADCAST), false),
            (libc::RTM_NEWROUTE, &[], false),
            (libc::RTM_NEWADDR, &[], true),
            (libc::RTM_DELLINK, &[], true),
        ] {
            assert_eq!(matters(&Message { kind, flags: 0, sequence: 0, body }), expected, "{kind} {body:?}");
        }
    }
}
