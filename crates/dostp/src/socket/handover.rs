//! A socket that passes from one process to the next, which needs no right for it: sockets, port, and what is
//! known of interface and node.
//!
//! It owns the words of that. Both processes must never read at the same time: the one before stops by
//! [`Socket::lend`], and goes on by [`Socket::take_back`] only if the next one is known to be gone.

use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, ErrorKind};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use staunch_netio::clock;
use staunch_netio::datagram::{LinkAddress, LinkUdp, PacketRing};
use staunch_netio::host::interface::Interface;

use super::alarm::Alarm;
use super::body::{CONTROL_RING_BYTES, Carrier, RING_BYTES, frame_mtu, in_udp};
use super::claim::Claim;
use super::endpoint::{Endpoint, Opening};
use super::options::{Backend, Options};
use super::{Opened, Shared, Socket, given};
use crate::greeting::Link;
use crate::keys::SECRET_BYTES;

/// The secrets of both slots.
type Slots = [Option<[u8; SECRET_BYTES]>; 2];

/// What a process leaves to the next one.
#[derive(Debug)]
pub struct Lent {
    interface: Interface,
    own: Ipv4Addr,
    boot: u64,
    port: u16,
    /// The secrets in use, for a process that may not read their file.
    secrets: Option<Slots>,
    ways: LentWays,
    claim: OwnedFd,
}

/// The ways of frames, by backend.
#[derive(Debug)]
enum LentWays {
    /// A ring for messages, and a ring for control frames.
    Ring(OwnedFd, OwnedFd),
    /// A socket that carries both messages and control frames.
    Udp(OwnedFd),
}

impl LentWays {
    fn name(&self) -> &'static str {
        match self {
            Self::Ring(..) => "ring",
            Self::Udp(_) => "udp",
        }
    }

    fn descriptors(&self) -> Vec<&OwnedFd> {
        match self {
            Self::Ring(messages, control) => vec![messages, control],
            Self::Udp(socket) => vec![socket],
        }
    }

    /// The ways of this name, if there are as many descriptors as they have.
    fn read(name: &str, descriptors: Vec<OwnedFd>) -> Option<Self> {
        match name {
            "ring" => {
                <[OwnedFd; 2]>::try_from(descriptors).ok().map(|[first, second]| Self::Ring(first, second))
            }
            "udp" => <[OwnedFd; 1]>::try_from(descriptors).ok().map(|[socket]| Self::Udp(socket)),
            _ => None,
        }
    }
}

impl Lent {
    /// The name of the interface, and the port.
    pub fn place(&self) -> (&str, u16) {
        (&self.interface.name, self.port)
    }

    /// Whether frames travel in UDP.
    pub fn is_in_udp(&self) -> bool {
        matches!(self.ways, LentWays::Udp(_))
    }

    /// The secrets that the process before used.
    pub fn secrets(&self) -> Option<Slots> {
        self.secrets
    }

    /// Writes it to a stream, in one message that nobody has to wait for.
    ///
    /// # Errors
    /// Those of sendmsg(2).
    pub fn send(&self, to: &UnixStream) -> io::Result<()> {
        let Interface { name, index, link, mtu, .. } = &self.interface;
        let netmask = self.interface.netmask.unwrap_or(Ipv4Addr::UNSPECIFIED);
        let secrets = self.secrets.map_or_else(|| "- -".to_owned(), |slots| slots.map(hexadecimal).join(" "));
        let words = format!(
            "lent {} {name} {index} {} {mtu} {} {netmask} {} {} {secrets}\n",
            self.ways.name(),
            hexadecimal(Some(*link)),
            self.own,
            self.boot,
            self.port
        );
        let descriptors = self.ways.descriptors().into_iter().chain([&self.claim]);
        given::send(to, &words, &descriptors.map(AsFd::as_fd).collect::<Vec<_>>())
    }

    /// Reads it from a stream.
    ///
    /// # Errors
    /// Those of recvmsg(2); something else was left.
    pub fn receive(from: &UnixStream) -> io::Result<Self> {
        let (words, descriptors) = given::receive(from)?;
        let wrong = || io::Error::new(ErrorKind::InvalidData, "the socket of the fabric did not come");
        Self::read(words.trim_end(), descriptors).ok_or_else(wrong)
    }

    fn read(words: &str, mut descriptors: Vec<OwnedFd>) -> Option<Self> {
        let claim = descriptors.pop()?;
        let words: Vec<&str> = words.split(' ').collect();
        let ["lent", ways, name, index, link, mtu, own, netmask, boot, port, first, second] = words[..]
        else {
            return None;
        };
        let ways = LentWays::read(ways, descriptors)?;
        let own = own.parse().ok()?;
        let slots = [first, second].map(bytes::<SECRET_BYTES>);
        let interface = Interface {
            name: name.to_owned(),
            index: index.parse().ok()?,
            link: bytes(link)?,
            mtu: mtu.parse().ok()?,
            address: Some(own),
            netmask: netmask.parse().ok().filter(|mask: &Ipv4Addr| !mask.is_unspecified()),
            is_up: true,
            is_running: true,
            is_ethernet: true,
            is_loopback: false,
        };
        let secrets = slots.iter().any(Option::is_some).then_some(slots);
        let (boot, port) = (boot.parse().ok()?, port.parse().ok()?);
        Some(Self { interface, own, boot, port, secrets, ways, claim })
    }
}

impl Socket {
    /// Stops reading and speaking, and hands out what another process needs to go on, with the secrets in
    /// use. Not by AF_XDP, nor of a socket that gets the frames of all ports.
    ///
    /// # Errors
    /// EMFILE; EOPNOTSUPP: the backend is AF_XDP, or one ring takes everything.
    pub fn lend(&mut self, secrets: Option<Slots>) -> io::Result<Lent> {
        // The thread beside it ends here; nobody else reads control frames.
        self.keeper = None;
        let mut endpoint = self.endpoint();
        endpoint.give_up_voice();
        let (messages, control, claim) = endpoint.descriptors()?;
        let ways = match (self.opened.backend, control) {
            (Backend::Udp, _) => LentWays::Udp(messages),
            (_, Some(control)) => LentWays::Ring(messages, control),
            (_, None) => return Err(ErrorKind::Unsupported.into()),
        };
        let own = endpoint.node.peers().own();
        Ok(Lent {
            interface: self.opened.interface.clone(),
            own: endpoint.own(),
            boot: own.boot,
            port: endpoint.port,
            secrets,
            ways,
            claim,
        })
    }

    /// Goes on, because the other process is gone.
    ///
    /// # Errors
    /// The thread beside the socket cannot be started.
    pub fn take_back(&mut self) -> io::Result<()> {
        let now_ms = clock::now_ms();
        let mut endpoint = self.endpoint();
        endpoint.seek();
        endpoint.take_voice(now_ms);
        let control = endpoint.control_descriptor()?;
        drop(endpoint);
        self.unkept = control.map(Arc::new);
        self.keep()
    }

    /// Goes on with what another process has lent, which needs no right. `options` say how; interface,
    /// address and port are those of that process.
    ///
    /// # Errors
    /// ENOMEM; the descriptors are none of such a socket.
    pub fn inherit(lent: Lent, options: &Options) -> io::Result<Self> {
        let Lent { interface, own, boot, port, ways, claim, .. } = lent;
        let adopt = |socket, mtu: u16, ring_bytes| {
            let link = LinkAddress(interface.link);
            let mut ring = PacketRing::adopt(socket, link, mtu.into(), options.ether_type, ring_bytes)?;
            ring.seek();
            io::Result::Ok(Carrier::Ring(ring))
        };
        let (backend, (body, control, link, mtu)) = match ways {
            LentWays::Ring(messages, control) => {
                let mtu = frame_mtu(&interface)?;
                let control = adopt(control, mtu, CONTROL_RING_BYTES)?;
                let messages = adopt(messages, mtu, RING_BYTES)?;
                (Backend::Ring, (messages, Some(control), Link(interface.link), mtu))
            }
            LentWays::Udp(socket) => {
                (Backend::Udp, in_udp(LinkUdp::adopt(socket), &interface, own, options)?)
            }
        };
        let seed = seed();
        let opening = Opening {
            link,
            own,
            body,
            control,
            backend,
            refused: Vec::new(),
            interface,
            mtu,
            port,
            claim: Claim::of(claim)?,
        };
        Self::of(opening, options, (seed, boot))
    }
}

impl Socket {
    /// A socket of what was opened.
    pub(super) fn of(
        mut opening: Opening,
        options: &Options,
        (seed, boot): ([u8; 16], u64),
    ) -> io::Result<Self> {
        let alarm = (!opening.body.tells_errors()).then(Alarm::new).transpose()?.map(Arc::new);
        let of_body = opening.body.descriptor()?;
        let descriptor = match &alarm {
            Some(alarm) => alarm.beside(&of_body)?,
            None => of_body,
        };
        let control_descriptor = opening.control.as_ref().map(Carrier::descriptor).transpose()?;
        let refused = std::mem::take(&mut opening.refused);
        let (backend, interface) = (opening.backend, opening.interface.clone());
        let mut endpoint = Endpoint::new(opening, options, seed, boot, clock::now_ns());
        let opened = Opened { backend, refused, interface, remarks: endpoint.strangers() };
        endpoint.name(options.udp_peers.as_deref().unwrap_or_default())?;
        endpoint.tend(clock::now_ms())?;
        let shared = Shared { wait: options.wait, ..Shared::default() };
        let mut socket = Self {
            endpoint: Arc::new(Mutex::new(endpoint)),
            descriptor: Arc::new(descriptor),
            keeper: None,
            unkept: control_descriptor.map(Arc::new),
            settings: Arc::new(Mutex::new(shared)),
            opened: Arc::new(opened),
            alarm,
        };
        if !options.is_kept_later {
            socket.keep()?;
        }
        Ok(socket)
    }
}

/// A random number without a file: a confined process may open none. The hasher's keys are the kernel's.
fn seed() -> [u8; 16] {
    let [first, second] = [(); 2].map(|()| RandomState::new().hash_one(std::process::id()));
    ((u128::from(first) << 64) | u128::from(second)).to_le_bytes()
}

fn hexadecimal<const N: usize>(bytes: Option<[u8; N]>) -> String {
    let written = |bytes: [u8; N]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.map_or_else(|| "-".to_owned(), written)
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * place..2 * place + 2)?, 16).ok()?;
    }
    (text.len() == 2 * N).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn what_is_lent_is_read_as_it_was_written() {
        let file = || OwnedFd::from(File::open("/dev/null").unwrap());
        let interface = Interface {
            name: "eth1".into(),
            index: 7,
            link: [2, 0, 0, 0, 0, 9],
            mtu: 9_000,
            address: Some(Ipv4Addr::new(10, 0, 0, 7)),
            netmask: None,
            is_up: true,
            is_running: true,
            is_ethernet: true,
            is_loopback: false,
        };
        let own = Ipv4Addr::new(10, 0, 0, 7);
        for secrets in [None, Some([Some([1; SECRET_BYTES]), None]), Some([None, Some([0xfe; SECRET_BYTES])])]
        {
            let is_in_udp = secrets.is_none();
            let ways = match is_in_udp {
                true => LentWays::Udp(file()),
                false => LentWays::Ring(file(), file()),
            };
            let (interface, claim) = (interface.clone(), file());
            let lent = Lent { interface, own, boot: u64::MAX, port: 5290, secrets, ways, claim };
            let (from, to) = UnixStream::pair().unwrap();
            lent.send(&from).unwrap();
            let read = Lent::receive(&to).unwrap();
            assert_eq!((read.port, read.secrets, read.is_in_udp()), (5290, secrets, is_in_udp));
            assert_eq!((read.interface, read.own, read.boot), (lent.interface, own, u64::MAX));
        }
    }

    #[test]
    fn descriptors_that_do_not_go_with_the_backend_are_refused() {
        for (ways, count, is_right) in
            [("udp", 1, true), ("udp", 0, false), ("udp", 2, false), ("ring", 2, true), ("ring", 1, false)]
        {
            let descriptors = (0..count + 1).map(|_| File::open("/dev/null").unwrap().into()).collect();
            let words = format!("lent {ways} eth1 7 020000000009 1500 10.0.0.7 255.255.0.0 1 5290 - -");
            assert_eq!(Lent::read(&words, descriptors).is_some(), is_right, "{ways} with {count}");
        }
    }

    #[test]
    fn something_else_is_refused() {
        let (from, to) = UnixStream::pair().unwrap();
        given::send(&from, "lent eth1\n", &[]).unwrap();
        assert_eq!(Lent::receive(&to).unwrap_err().kind(), ErrorKind::InvalidData);
        drop(from);
        assert_eq!(Lent::receive(&to).unwrap_err().kind(), ErrorKind::InvalidData);
    }
}
