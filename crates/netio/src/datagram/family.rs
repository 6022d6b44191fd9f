//! A socket of the family that the kernel module `dostp` registers.
//!
//! This file owns the system calls and the control message that names a message's kind. It must never know
//! what a kind means: numbers go in and come out. The other side is `kernel/dostp/transact.h`.

use std::io;
use std::mem::zeroed;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with};

/// The level of options and of control messages (`SOL_DOSTP`).
const LEVEL: libc::c_int = 0x88b5;
/// The option by which a socket takes messages of all kinds (`DOSTP_TRANSACTIONS`).
const TRANSACTIONS: libc::c_int = 1;
/// The control message that names a message (`DOSTP_MESSAGE_NAME`).
const MESSAGE_NAME: libc::c_int = 1;
/// Bytes of that name.
const NAME_BYTES: usize = 4;

/// Kind and id of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FamilyName {
    /// The number of the kind.
    pub kind: u8,
    /// The number of the message.
    pub id: u16,
}

/// The control message, as long as the kernel aligns it.
#[repr(C, align(8))]
struct NameControl {
    header: libc::cmsghdr,
    kind: u8,
    unused: u8,
    id: u16,
}

impl NameControl {
    /// A control message whose header is not written yet.
    fn of(name: FamilyName) -> Self {
        // SAFETY: all zeros are a valid header of a control message.
        let header = unsafe { zeroed() };
        Self { header, kind: name.kind, unused: 0, id: name.id }
    }
}

/// The `cmsg_len` of that control message: header and name, without what aligns it.
const NAME_CONTROL_BYTES: usize = size_of::<libc::cmsghdr>() + NAME_BYTES;

const _: () = assert!(std::mem::offset_of!(NameControl, kind) == size_of::<libc::cmsghdr>());
const _: () = assert!(size_of::<NameControl>() == NAME_CONTROL_BYTES.next_multiple_of(size_of::<usize>()));

/// A socket of the family that takes messages of all kinds.
#[derive(Debug)]
pub struct FamilySocket {
    socket: OwnedFd,
}

impl FamilySocket {
    /// Opens a socket of the family with this number, and binds it.
    ///
    /// # Errors
    /// EAFNOSUPPORT: no module has that number; EPERM: CAP_NET_RAW is missing; EOPNOTSUPP, ENOPROTOOPT: the
    /// module knows no other kinds than datagrams; those of bind(2).
    pub fn bind(family: u16, address: SocketAddrV4) -> io::Result<Self> {
        let family = AddressFamily::from_raw(family);
        let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        let on: libc::c_int = 1;
        // SAFETY: the descriptor is open for the length of the call, and the value is an int.
        let result = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                LEVEL,
                TRANSACTIONS,
                std::ptr::from_ref(&on).cast(),
                size_of_val(&on) as libc::socklen_t,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        bind(&socket, &address)?;
        Ok(Self { socket })
    }

    /// Where the socket is bound.
    ///
    /// # Errors
    /// Those of getsockname(2).
    pub fn local_addr(&self) -> io::Result<SocketAddrV4> {
        Ok(SocketAddrV4::try_from(getsockname(&self.socket)?)?)
    }

    /// How long receiving waits; `None` for ever.
    ///
    /// # Errors
    /// EINVAL.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        Ok(set_socket_timeout(&self.socket, Timeout::Recv, timeout)?)
    }

    /// Sends a message by this name.
    ///
    /// # Errors
    /// EINVAL: no such kind may be sent there or with these bytes; those of UDP's sendmsg(2).
    pub fn send(&self, payload: &[u8], name: FamilyName, to: SocketAddrV4) -> io::Result<usize> {
        let mut address = address_of(to);
        let mut vector = libc::iovec { iov_base: payload.as_ptr().cast_mut().cast(), iov_len: payload.len() };
        let mut control = NameControl::of(name);
        control.header.cmsg_len = NAME_CONTROL_BYTES as _;
        control.header.cmsg_level = LEVEL;
        control.header.cmsg_type = MESSAGE_NAME;
        let message = message(&mut address, &mut vector, &mut control);
        // SAFETY: name, vector and control message live until the call returns, and the kernel only reads
        // them and the payload.
        let sent = unsafe { libc::sendmsg(self.socket.as_raw_fd(), &raw const message, 0) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// Waits for a message and copies as much of it as fits. Says how much, its name, and from whom.
    ///
    /// # Errors
    /// EAGAIN: the time is up; ENETDOWN; EBADMSG: the kernel named no message.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, FamilyName, SocketAddrV4)> {
        let mut address = address_of(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
        let mut vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let mut control = NameControl::of(FamilyName { kind: 0, id: 0 });
        let mut message = message(&mut address, &mut vector, &mut control);
        // SAFETY: name, vector, buffer and control message live until the call returns, and the kernel writes
        // at most as much into each as the message says.
        let length = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut message, 0) };
        let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
        if control.header.cmsg_level != LEVEL || control.header.cmsg_type != MESSAGE_NAME {
            return Err(io::Error::from_raw_os_error(libc::EBADMSG));
        }
        let (host, port) = (u32::from_be(address.sin_addr.s_addr), u16::from_be(address.sin_port));
        let from = SocketAddrV4::new(host.into(), port);
        Ok((length, FamilyName { kind: control.kind, id: control.id }, from))
    }
}

impl AsFd for FamilySocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn address_of(address: SocketAddrV4) -> libc::sockaddr_in {
    // SAFETY: all zeros are a valid address.
    let mut written: libc::sockaddr_in = unsafe { zeroed() };
    written.sin_family = libc::AF_INET as _;
    written.sin_port = address.port().to_be();
    written.sin_addr.s_addr = address.ip().to_bits().to_be();
    written
}

/// A message of these parts. It holds pointers to them, so they must live as long.
fn message(
    address: &mut libc::sockaddr_in,
    vector: &mut libc::iovec,
    control: &mut NameControl,
) -> libc::msghdr {
    // SAFETY: all zeros are a valid message without any part.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_name = std::ptr::from_mut(address).cast();
    message.msg_namelen = size_of_val(address) as libc::socklen_t;
    message.msg_iov = vector;
    message.msg_iovlen = 1;
    message.msg_control = std::ptr::from_mut(control).cast();
    message.msg_controllen = size_of_val(control) as _;
    message
}
