//! The user who has made a Unix socket, asked by netlink (sock_diag(7)).
//!
//! It must never wait: the kernel answers while it is being asked.

use std::io;

use rustix::io::Errno;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

/// `struct nlmsghdr`: length, type, flags, sequence, port (netlink(7)).
const HEADER_BYTES: usize = 16;
/// `struct unix_diag_req` (linux/unix_diag.h).
const REQUEST_BYTES: usize = 24;
/// `struct unix_diag_msg`; attributes (`struct rtattr`: length, kind) follow.
const MESSAGE_BYTES: usize = 16;
/// Bytes for an answer: one socket with its user has 44 bytes; an error repeats the question.
const ANSWER_BYTES: usize = 256;
/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
/// `NLMSG_ERROR`: an errno, negative, follows the header.
const ERROR: u16 = 2;
/// `NLM_F_REQUEST`.
const REQUEST: u16 = 1;
/// `UDIAG_SHOW_UID`, and the attribute that tells it (`UNIX_DIAG_UID`).
const WITH_USER: u32 = 0x40;
const USER: u16 = 7;

/// The user who has made the Unix socket of this inode, in the network namespace of the calling thread.
/// Whoever holds it by now may be another one.
///
/// # Errors
/// ENOENT: there is no such socket (any more); or the kernel does not tell.
pub fn unix_socket_maker(inode: u32) -> io::Result<u32> {
    let socket =
        socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(SOCK_DIAG))?;
    sendto(&socket, &request(inode), SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = [0; ANSWER_BYTES];
    let (bytes, _) = recv(&socket, &mut answer[..], RecvFlags::DONTWAIT)?;
    user(&answer[..bytes])
}

fn request(inode: u32) -> [u8; HEADER_BYTES + REQUEST_BYTES] {
    let mut bytes = [0; HEADER_BYTES + REQUEST_BYTES];
    let length = bytes.len() as u32;
    bytes[..4].copy_from_slice(&length.to_ne_bytes());
    bytes[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&REQUEST.to_ne_bytes());
    let body = &mut bytes[HEADER_BYTES..];
    body[0] = AddressFamily::UNIX.as_raw() as u8;
    body[4..8].copy_from_slice(&u32::MAX.to_ne_bytes()); // in any state
    body[8..12].copy_from_slice(&inode.to_ne_bytes());
    body[12..16].copy_from_slice(&WITH_USER.to_ne_bytes());
    body[16..].fill(0xff); // with any cookie
    bytes
}

/// The user in an answer.
fn user(message: &[u8]) -> io::Result<u32> {
    let broken = || io::Error::from(Errno::BADMSG);
    let number = |at: usize| message.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    let kind = message.get(4..6).ok_or_else(broken)?;
    if kind == ERROR.to_ne_bytes() {
        let code = number(HEADER_BYTES).map(i32::from_ne_bytes).ok_or_else(broken)?;
        return Err(io::Error::from_raw_os_error(code.wrapping_neg()));
    }
    let mut attributes = message.get(HEADER_BYTES + MESSAGE_BYTES..).ok_or_else(broken)?;
    while let [low, high, kind_low, kind_high, behind @ ..] = attributes {
        let length = usize::from(u16::from_ne_bytes([*low, *high]));
        if u16::from_ne_bytes([*kind_low, *kind_high]) == USER {
            return behind.first_chunk().map(|user| u32::from_ne_bytes(*user)).ok_or_else(broken);
        }
        // Attributes begin at multiples of four (RTA_ALIGN).
        attributes = attributes.get(length.next_multiple_of(4).max(4)..).unwrap_or_default();
    }
    Err(broken())
}

#[cfg(test)]
mod tests {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    use super::*;

    #[test]
    fn whoever_has_made_a_socket_is_named() {
        let address = SocketAddr::from_abstract_name(format!("maker-{}", std::process::id())).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        let inode = rustix::fs::fstat(&socket).unwrap().st_ino as u32;
        assert_eq!(unix_socket_maker(inode).unwrap(), rustix::process::geteuid().as_raw());
        drop(socket);
        assert_eq!(unix_socket_maker(inode).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn answers_that_are_cut_are_errors() {
        let mut answer = vec![0; HEADER_BYTES + MESSAGE_BYTES];
        answer[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
        for attribute in [[8_u16, 3], [8, USER]] {
            answer.extend(attribute.iter().flat_map(|half| half.to_ne_bytes()));
            answer.extend(1_000_u32.to_ne_bytes());
        }
        assert_eq!(user(&answer).unwrap(), 1_000);
        for length in 0..answer.len() {
            assert!(user(&answer[..length]).is_err(), "{length} bytes");
        }
    }
}
