//! What a network interface is: number, hardware address, MTU, IPv4 address, state.
//!
//! It asks the kernel by ioctl (netdevice(7)) in the namespace of the calling thread. It must never change an
//! interface.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// An interface as it was when it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The name that the host gives it.
    pub name: String,
    /// Its number.
    pub index: u32,
    /// Its hardware address; all zero if it has none of six bytes.
    pub link: [u8; 6],
    /// Bytes a frame's payload may have.
    pub mtu: u32,
    /// Its first IPv4 address.
    pub address: Option<Ipv4Addr>,
    /// The netmask of that address.
    pub netmask: Option<Ipv4Addr>,
    /// Whether it was switched on.
    pub is_up: bool,
    /// Whether its link is there.
    pub is_running: bool,
    /// Whether it is an Ethernet: `lo` and tunnels are not.
    pub is_ethernet: bool,
    /// Whether it reaches this host alone, as `lo`.
    pub is_loopback: bool,
}

impl Interface {
    /// Asks for the interface of this name.
    ///
    /// # Errors
    /// ENODEV: there is none; EINVAL: no interface can have this name.
    pub fn find(name: &str) -> io::Result<Self> {
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains('\0') {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        let ask = |request| Request::of(name).ask(&socket, request);
        let index = ask(libc::SIOCGIFINDEX)?.number();
        let hardware = ask(libc::SIOCGIFHWADDR)?;
        let flags = ask(libc::SIOCGIFFLAGS)?.flags();
        let is_ethernet = hardware.family() == libc::ARPHRD_ETHER;
        Ok(Self {
            name: name.to_owned(),
            index: index as u32,
            link: if is_ethernet { hardware.link() } else { [0; 6] },
            mtu: ask(libc::SIOCGIFMTU)?.number() as u32,
            address: ask(libc::SIOCGIFADDR).ok().map(|answer| answer.ipv4()),
            netmask: ask(libc::SIOCGIFNETMASK).ok().map(|answer| answer.ipv4()),
            is_up: flags & libc::IFF_UP != 0,
            is_running: flags & libc::IFF_RUNNING != 0,
            is_ethernet,
            is_loopback: flags & libc::IFF_LOOPBACK != 0,
        })
    }
}

/// How many queues of an interface receive frames: one where the driver has no word for it.
///
/// # Errors
/// ENODEV: there is no such interface.
pub fn receive_queues(name: &str) -> io::Result<u32> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let mut channels = Channels { command: GET_CHANNELS, ..Channels::default() };
    let mut request = Request::of(name);
    request.0.ifr_ifru.ifru_data = (&raw mut channels).cast();
    match request.ask(&socket, ETHTOOL) {
        Ok(_) => Ok((channels.receive_count + channels.combined_count).max(1)),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(1),
        Err(error) => Err(error),
    }
}

/// SIOCETHTOOL, and its command ETHTOOL_GCHANNELS: `libc` has neither.
const ETHTOOL: libc::c_ulong = 0x8946;
const GET_CHANNELS: u32 = 0x3c;

/// A struct ethtool_channels.
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    _most: [u32; 4],
    receive_count: u32,
    _send_count: u32,
    _other_count: u32,
    combined_count: u32,
}

/// A struct ifreq: a name, and sixteen bytes or more that the request gives their meaning.
struct Request(libc::ifreq);

impl Request {
    fn of(name: &str) -> Self {
        // SAFETY: all zeros are a valid ifreq: an empty name, and numbers.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *place = byte.cast_signed();
        }
        Self(request)
    }

    /// What the request answers. Its number has another type in glibc than in musl.
    fn ask(mut self, socket: &OwnedFd, request: libc::c_ulong) -> io::Result<Self> {
        // SAFETY: the descriptor is open for the length of the call; every request used here reads the name
        // and writes within the struct it is given, or within the one that struct points to.
        let result = unsafe { libc::ioctl(socket.as_raw_fd(), request as libc::Ioctl, &raw mut self.0) };
        if result == 0 { Ok(self) } else { Err(io::Error::last_os_error()) }
    }

    fn number(&self) -> i32 {
        // SAFETY: every bit pattern is a number, and the struct was zeroed before the kernel wrote to it.
        unsafe { self.0.ifr_ifru.ifru_ifindex }
    }

    fn flags(&self) -> i32 {
        // SAFETY: as for `number`.
        i32::from(unsafe { self.0.ifr_ifru.ifru_flags })
    }

    fn family(&self) -> u16 {
        // SAFETY: as for `number`.
        unsafe { self.0.ifr_ifru.ifru_hwaddr }.sa_family
    }

    fn link(&self) -> [u8; 6] {
        // SAFETY: as for `number`.
        let data = unsafe { self.0.ifr_ifru.ifru_hwaddr }.sa_data;
        std::array::from_fn(|place| data[place].cast_unsigned())
    }

    fn ipv4(&self) -> Ipv4Addr {
        // SAFETY: as for `number`. In a sockaddr_in the port stands in the first two bytes of the data, and
        // the address in the four behind it.
        let data = unsafe { self.0.ifr_ifru.ifru_addr }.sa_data;
        Ipv4Addr::from(std::array::from_fn(|place| data[place + 2].cast_unsigned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_no_ethernet_and_what_is_not_there_is_named() {
        let loopback = Interface::find("lo").unwrap();
        assert!(loopback.is_loopback && !loopback.is_ethernet && loopback.index > 0 && loopback.mtu > 1_000);
        assert_eq!(loopback.address, Some(Ipv4Addr::LOCALHOST));
        let error = |name: &str| Interface::find(name).unwrap_err().raw_os_error();
        assert_eq!(error("nothing-here"), Some(libc::ENODEV));
        assert_eq!(error("a-name-that-is-too-long"), Some(libc::EINVAL));
        assert_eq!(receive_queues("lo").unwrap(), 1);
        assert_eq!(receive_queues("nothing-here").unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }
}
