//! The program that picks frames for an AF_XDP socket: for this host, of one EtherType and one port. All else
//! goes its way.
//!
//! It owns the program's instructions and the calls of bpf(2) that load and attach it. It must never drop a
//! frame: what it does not hand to the socket is passed to the kernel's stack.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Numbers of linux/bpf.h that `libc` does not have.
const MAP_CREATE: libc::c_long = 0;
const MAP_UPDATE: libc::c_long = 2;
const PROGRAM_LOAD: libc::c_long = 5;
const LINK_CREATE: libc::c_long = 28;
const MAP_TYPE_XSKMAP: u32 = 17;
const PROGRAM_TYPE_XDP: u32 = 6;
const ATTACH_TYPE_XDP: u32 = 37;
const FLAGS_GENERIC: u32 = 1 << 1;
const FLAGS_NATIVE: u32 = 1 << 2;

/// XDP_PASS: the frame goes on to the kernel's stack.
const PASS: i32 = 2;
/// The helper `bpf_redirect_map`.
const REDIRECT_MAP: i32 = 51;

/// Where the EtherType, the DOSTP destination port and the end of the DOSTP header stand in a frame.
const ETHER_TYPE_OFFSET: i16 = 12;
const PORT_OFFSET: i16 = 22;
const HEADERS_BYTES: i32 = 30;

/// Where the program stands that picks frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XdpMode {
    /// In the kernel's stack, right after the driver: works with every driver.
    Generic,
    /// In the driver.
    Native,
}

/// A program that is attached to an interface as long as this value lives.
#[derive(Debug)]
pub(super) struct Attached {
    _link: OwnedFd,
}

impl Attached {
    /// Hands frames to this link address or to a group, of that type and destination port, from the
    /// interface's first queue, to the socket.
    ///
    /// # Errors
    /// EPERM without CAP_BPF and CAP_NET_ADMIN; EBUSY or EEXIST: the interface has a program already; why the
    /// driver takes none.
    pub(super) fn to(
        socket: BorrowedFd<'_>,
        (interface, link): (u32, [u8; 6]),
        ether_type: u16,
        port: u16,
        mode: XdpMode,
    ) -> io::Result<Self> {
        let map = map_of_one()?;
        let program = load(&instructions(map.as_raw_fd(), link, ether_type, port))?;
        set_first(&map, socket)?;
        let flags = match mode {
            XdpMode::Generic => FLAGS_GENERIC,
            XdpMode::Native => FLAGS_NATIVE,
        };
        // Program, interface, kind of attachment, flags. The link keeps the program, and the program its map.
        let mut arguments = [program.as_raw_fd() as u32, interface, ATTACH_TYPE_XDP, flags];
        Ok(Self { _link: descriptor(call(LINK_CREATE, &mut arguments)?) })
    }
}

/// A map of one socket, by the number of a queue.
fn map_of_one() -> io::Result<OwnedFd> {
    // Type, bytes of a key, bytes of a value, entries.
    let mut arguments = [MAP_TYPE_XSKMAP, 4, 4, 1];
    call(MAP_CREATE, &mut arguments).map(descriptor)
}

/// The map's only socket.
fn set_first(map: &OwnedFd, socket: BorrowedFd<'_>) -> io::Result<()> {
    #[repr(C)]
    struct Arguments {
        map: u32,
        key: u64,
        value: u64,
        flags: u64,
    }
    let (key, value) = (0_u32, socket.as_raw_fd() as u32);
    let mut arguments = Arguments {
        map: map.as_raw_fd() as u32,
        key: (&raw const key) as u64,
        value: (&raw const value) as u64,
        flags: 0,
    };
    call(MAP_UPDATE, &mut arguments).map(|_| ())
}

fn load(instructions: &[u64]) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Arguments {
        kind: u32,
        instruction_count: u32,
        instructions: u64,
        license: u64,
        log: [u64; 2],
        kernel_version: u32,
        flags: u32,
        name: [u8; 16],
        interface: u32,
        attach_type: u32,
    }
    let mut arguments = Arguments {
        kind: PROGRAM_TYPE_XDP,
        instruction_count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        license: c"Apache-2.0".as_ptr() as u64,
        log: [0; 2],
        kernel_version: 0,
        flags: 0,
        name: *b"staunch_dostp\0\0\0",
        interface: 0,
        attach_type: ATTACH_TYPE_XDP,
    };
    call(PROGRAM_LOAD, &mut arguments).map(descriptor)
}

/// The program. The registers: 1 the context and arguments, 2 the frame's start, 3 its end, 4 and 5 what is
/// compared, 0 the verdict.
fn instructions(map: i32, link: [u8; 6], ether_type: u16, port: u16) -> [u64; 24] {
    // A frame's numbers are big-endian; they are compared as they lie in memory.
    let in_frame = |number: u16| i32::from(u16::from_ne_bytes(number.to_be_bytes()));
    let [a, b, c, d, e, f] = link;
    let (link_start, link_end) = (i32::from_ne_bytes([a, b, c, d]), i32::from(u16::from_ne_bytes([e, f])));
    let load_word = 0x61;
    let load_half = 0x69;
    let load_byte = 0x71;
    let jump_if_not = 0x55;
    [
        step(load_word, 2, 1, 0, 0),                      // r2 = context.data
        step(load_word, 3, 1, 4, 0),                      // r3 = context.data_end
        step(0xbf, 4, 2, 0, 0),                           // r4 = r2
        step(0x07, 4, 0, 0, HEADERS_BYTES),               // r4 += 30
        step(0x2d, 4, 3, 17, 0),                          // if r4 > r3: to `pass`
        step(load_word, 5, 2, 0, 0),                      // r5 = receiver, first four bytes
        step(0x56, 5, 0, 2, link_start),                  // if others: to `group` (32 bits are compared)
        step(load_half, 5, 2, 4, 0),                      // r5 = the other two
        step(0x15, 5, 0, 3, link_end),                    // if they are this host's: to `type`
        step(load_byte, 5, 2, 0, 0),                      // `group`: r5 = receiver, first byte
        step(0x45, 5, 0, 1, 1),                           // if it is a group's: to `type`
        step(0x05, 0, 0, 10, 0),                          // to `pass`
        step(load_half, 5, 2, ETHER_TYPE_OFFSET, 0),      // `type`: r5 = EtherType
        step(jump_if_not, 5, 0, 8, in_frame(ether_type)), // if another: to `pass`
        step(load_half, 5, 2, PORT_OFFSET, 0),            // r5 = destination port
        step(jump_if_not, 5, 0, 6, in_frame(port)),       // if another: to `pass`
        step(load_word, 2, 1, 16, 0),                     // r2 = context.rx_queue_index
        step(0x18, 1, 1, 0, map),                         // r1 = the map (first half)
        step(0, 0, 0, 0, 0),                              // (second half)
        step(0xb7, 3, 0, 0, PASS),                        // r3 = what else: pass
        step(0x85, 0, 0, 0, REDIRECT_MAP),                // r0 = redirect_map(r1, r2, r3)
        step(0x95, 0, 0, 0, 0),                           // return
        step(0xb7, 0, 0, 0, PASS),                        // `pass`: r0 = pass
        step(0x95, 0, 0, 0, 0),                           // return
    ]
}

/// Encodes an instruction: code, register that is written, register that is read, offset, number.
fn step(code: u8, to: u8, from: u8, offset: i16, number: i32) -> u64 {
    let registers = if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from };
    let [a, b] = offset.to_ne_bytes();
    let [c, d, e, f] = number.to_ne_bytes();
    u64::from_ne_bytes([code, registers, a, b, c, d, e, f])
}

/// bpf(2). The kernel takes arguments that are shorter than its own: the rest counts as zeros.
fn call<T>(command: libc::c_long, arguments: &mut T) -> io::Result<libc::c_long> {
    // SAFETY: the arguments are a beginning of the kernel's union, laid out as this command wants it, and as
    // long as is said. What they point to lives in the caller for the length of the call.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(arguments), size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The descriptor that a command has returned.
fn descriptor(number: libc::c_long) -> OwnedFd {
    // SAFETY: the kernel has just made this descriptor for this process, and nobody else knows it.
    unsafe { OwnedFd::from_raw_fd(number as i32) }
}
