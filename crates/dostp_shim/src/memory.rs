//! What programs of C hand over, as values: addresses, buffers, messages.
//!
//! It must never write beyond the lengths that are said.

use std::ffi::{c_int, c_void};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

use libc::{iovec, msghdr, sockaddr, sockaddr_in, socklen_t};

use crate::real;

const ADDRESS_BYTES: socklen_t = size_of::<sockaddr_in>() as socklen_t;

/// The IPv4 address that a pointer shows; `None` for none or another family.
///
/// # Safety
/// The pointer is null, or shows as many bytes as are said.
pub(crate) unsafe fn address(pointer: *const sockaddr, length: socklen_t) -> Option<SocketAddrV4> {
    if pointer.is_null() || length < ADDRESS_BYTES {
        return None;
    }
    // SAFETY: the bytes of a sockaddr_in are there, as was just checked.
    let address = unsafe { pointer.cast::<sockaddr_in>().read_unaligned() };
    (c_int::from(address.sin_family) == libc::AF_INET).then(|| of_c(&address))
}

/// Writes an address where a program wants it, as much of it as fits, and its length.
///
/// # Safety
/// Both pointers are null, or show a length and as many bytes as it says.
pub(crate) unsafe fn put_address(address: SocketAddrV4, to: *mut sockaddr, length: *mut socklen_t) {
    if to.is_null() || length.is_null() {
        return;
    }
    let from = to_c(address);
    // SAFETY: as many bytes as the length says may be written, and no more are.
    unsafe {
        let fits = (*length).min(ADDRESS_BYTES) as usize;
        std::ptr::copy_nonoverlapping((&raw const from).cast::<u8>(), to.cast::<u8>(), fits);
        *length = ADDRESS_BYTES;
    }
}

/// Room for the name of a sender.
pub(crate) struct SenderName {
    address: sockaddr_in,
    length: socklen_t,
}

impl SenderName {
    /// Room that holds no sender's name yet.
    pub(crate) fn none() -> Self {
        let address = to_c(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
        Self { address, length: ADDRESS_BYTES }
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut sockaddr {
        (&raw mut self.address).cast()
    }

    pub(crate) fn length(&mut self) -> &mut socklen_t {
        &mut self.length
    }

    /// The name that was written here, if it is one of IPv4.
    pub(crate) fn address(&self) -> Option<SocketAddrV4> {
        // SAFETY: the room is there, and the length says how much of it was written.
        unsafe { address((&raw const self.address).cast(), self.length) }
    }
}

/// Bytes that are to be sent.
///
/// # Safety
/// As many bytes as are said can be read while the slice is used.
pub(crate) unsafe fn bytes<'a>(pointer: *const c_void, length: usize) -> &'a [u8] {
    if pointer.is_null() {
        return &[];
    }
    // SAFETY: the caller says so.
    unsafe { std::slice::from_raw_parts(pointer.cast(), length) }
}

/// Copies as much as fits to where a program wants it; says how much.
///
/// # Safety
/// As many bytes as are said can be written.
pub(crate) unsafe fn put(from: &[u8], to: *mut c_void, length: usize) -> usize {
    let count = if to.is_null() { 0 } else { from.len().min(length) };
    // SAFETY: the caller says so, and the bytes are not ours.
    unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.cast::<u8>(), count) };
    count
}

/// All bytes of a message that is to be sent.
///
/// # Safety
/// The message and its vectors can be read.
pub(crate) unsafe fn gather(message: &msghdr) -> Vec<u8> {
    let mut all = Vec::new();
    // SAFETY: the caller says so.
    for vector in unsafe { vectors(message) } {
        // SAFETY: as above.
        all.extend_from_slice(unsafe { bytes(vector.iov_base, vector.iov_len) });
    }
    all
}

/// Copies as much as fits into the vectors of a message; says how much.
///
/// # Safety
/// The message's vectors can be written.
pub(crate) unsafe fn scatter(from: &[u8], message: &msghdr) -> usize {
    let mut done = 0;
    // SAFETY: the caller says so.
    for vector in unsafe { vectors(message) } {
        // SAFETY: as above.
        done += unsafe { put(&from[done..], vector.iov_base, vector.iov_len) };
    }
    done
}

/// # Safety
/// As many vectors as are said can be read.
unsafe fn vectors<'a>(message: &msghdr) -> &'a [iovec] {
    #[allow(clippy::unnecessary_cast, reason = "the field's type differs between C libraries")]
    let count = message.msg_iovlen as usize;
    if message.msg_iov.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: the caller says so.
    unsafe { std::slice::from_raw_parts(message.msg_iov, count) }
}

/// Where a UDP socket is bound.
pub(crate) fn local(fd: c_int) -> io::Result<SocketAddrV4> {
    let mut address = to_c(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
    let mut length = ADDRESS_BYTES;
    // SAFETY: the address and its length live for the length of the call.
    let result = unsafe { real::getsockname(fd, (&raw mut address).cast(), &raw mut length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(of_c(&address)) }
}

/// Binds a UDP socket.
pub(crate) fn bind(fd: c_int, address: SocketAddrV4) -> io::Result<()> {
    let address = to_c(address);
    // SAFETY: the address lives for the length of the call.
    let result = unsafe { real::bind(fd, (&raw const address).cast(), ADDRESS_BYTES) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A socket option that is a number, or a struct of the C library.
pub(crate) fn option<T: Copy>(fd: c_int, name: c_int, zero: T) -> T {
    let mut value = zero;
    let mut length = size_of::<T>() as socklen_t;
    // SAFETY: the value is as long as is said; the kernel writes no more. An error leaves it as it was.
    unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, name, (&raw mut value).cast(), &raw mut length) };
    value
}

/// Whether calls of this socket wait.
pub(crate) fn waits(fd: c_int, flags: c_int) -> bool {
    // SAFETY: asking for flags touches no memory.
    flags & libc::MSG_DONTWAIT == 0 && unsafe { libc::fcntl(fd, libc::F_GETFL) } & libc::O_NONBLOCK == 0
}

fn of_c(address: &sockaddr_in) -> SocketAddrV4 {
    SocketAddrV4::new(
        Ipv4Addr::from_bits(u32::from_be(address.sin_addr.s_addr)),
        u16::from_be(address.sin_port),
    )
}

fn to_c(address: SocketAddrV4) -> sockaddr_in {
    sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: address.ip().to_bits().to_be() },
        sin_zero: [0; 8],
    }
}
