//! Finds out by doing whether this process may use io_uring, and what of it.
//!
//! Owns the list of optional features and the sentences that say why not. It must never go by a version
//! number: containers, filters and distributions change what a kernel can do. Order of calls: `probe` once at
//! start; the `Features` it returns are given to every `Uring`.

use std::fmt;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use io_uring::squeue::Flags;
use io_uring::types::{DestinationSlot, Fd, Fixed};
use io_uring::{IoUring, Probe, cqueue, opcode};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use super::buffers::BUFFER_GROUP;
use super::features::Features;
use super::placement::TableSize;
use super::ring::{Ring, RingLimits, build};
use super::tuning::set_option;
use crate::Tuning;

/// Why io_uring is not used. Its `Display` is one clear sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The sysctl `kernel.io_uring_disabled` has this value.
    Disabled(u8),
    /// EPERM without that sysctl: a filter.
    Filtered,
    /// ENOSYS: a kernel built without it, or a filter that says so.
    Absent,
    /// ENOMEM.
    Memory,
    /// EMFILE or ENFILE.
    Descriptors,
    /// The kernel is too old for what is named.
    Lacks(&'static str),
    /// The trial went wrong at the step named, with this `errno`.
    Failed(&'static str, i32),
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disabled(1) => formatter
                .write_str("the setting kernel.io_uring_disabled=1 keeps io_uring for privileged processes"),
            Self::Disabled(value) => {
                write!(formatter, "the setting kernel.io_uring_disabled={value} switches io_uring off")
            }
            Self::Filtered => formatter.write_str(
                "the system call io_uring_setup is forbidden to this process (EPERM), \
                 as most containers do by a seccomp filter",
            ),
            Self::Absent => formatter.write_str("this kernel has no io_uring, or a filter hides it (ENOSYS)"),
            Self::Memory => formatter.write_str(
                "there is no memory for a ring (ENOMEM); on old kernels the cause is the limit on locked \
                 memory (ulimit -l)",
            ),
            Self::Descriptors => {
                formatter.write_str("there are no descriptors left for a ring (see ulimit -n)")
            }
            Self::Lacks(what) => write!(formatter, "this kernel's io_uring is too old: it lacks {what}"),
            Self::Failed(step, errno) => {
                let error = io::Error::from_raw_os_error(*errno);
                write!(formatter, "io_uring failed on trial at \"{step}\": {error}")
            }
        }
    }
}

impl std::error::Error for Refusal {}

/// Tries whole conversations over Unix sockets: set-up, multishot accept into a direct descriptor, multishot
/// receive with a buffer ring, send, close, and that a close takes effect. Not over TCP: a process that is
/// confined may connect to nobody, and a new network namespace has no loopback interface yet.
///
/// # Errors
/// Why io_uring cannot be used by this process.
pub fn probe() -> Result<Features, Refusal> {
    let (mut features, ring) = set_up()?;
    let parameters = ring.params();
    let needed = [
        (parameters.is_feature_nodrop(), "completions that are never dropped"),
        (parameters.is_feature_fast_poll(), "waiting for sockets without threads"),
        (parameters.is_feature_ext_arg(), "waiting with a timeout"),
        (parameters.is_feature_submit_stable(), "arguments copied at submission"),
        (parameters.is_feature_skip_cqe_on_success(), "silent successes"),
    ];
    if let Some((_, what)) = needed.iter().find(|(works, _)| !works) {
        return Err(Refusal::Lacks(what));
    }
    let mut operations = Probe::new();
    ring.submitter()
        .register_probe(&mut operations)
        .map_err(|error| refusal("list of operations", &error))?;
    features.fixed_fd_install = operations.is_supported(opcode::FixedFdInstall::CODE);
    drop(ring);
    Trial::start(&features, WHOLE)?.converse()?;
    features.divided_tables =
        Trial::start(&features, DIVIDED).and_then(Trial::accept_beside_ours).unwrap_or(false);
    features.socket_options = Trial::start(&features, WHOLE).and_then(Trial::set_options).unwrap_or(false);
    Ok(features)
}

/// Sets a small ring up with as many flags as the kernel knows, leaving one out at a time, the newest first.
fn set_up() -> Result<(Features, IoUring), Refusal> {
    let mut features = Features {
        submit_all: true,
        coop_taskrun: true,
        single_issuer: true,
        defer_taskrun: true,
        no_sqarray: true,
        fixed_fd_install: false,
        divided_tables: false,
        socket_options: false,
    };
    loop {
        match build(&features, 8, 16, false) {
            Ok(ring) => return Ok((features, ring)),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                let newest_first = [
                    &mut features.no_sqarray,
                    &mut features.defer_taskrun,
                    &mut features.single_issuer,
                    &mut features.coop_taskrun,
                    &mut features.submit_all,
                ];
                match newest_first.into_iter().find(|flag| **flag) {
                    Some(flag) => *flag = false,
                    None => return Err(Refusal::Lacks("completion queues of a chosen size")),
                }
            }
            Err(error) => return Err(refusal("setup", &error)),
        }
    }
}

fn refusal(step: &'static str, error: &io::Error) -> Refusal {
    match error.raw_os_error() {
        Some(libc::EPERM) => match std::fs::read("/proc/sys/kernel/io_uring_disabled").as_deref() {
            Ok([digit @ b'1'..=b'9', ..]) => Refusal::Disabled(digit - b'0'),
            _ => Refusal::Filtered,
        },
        Some(libc::ENOSYS) => Refusal::Absent,
        Some(libc::ENOMEM) => Refusal::Memory,
        Some(libc::EMFILE | libc::ENFILE) => Refusal::Descriptors,
        errno => Refusal::Failed(step, errno.unwrap_or(libc::EIO)),
    }
}

fn socket() -> io::Result<OwnedFd> {
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

/// A listener under a name that the kernel finds.
fn listener() -> io::Result<OwnedFd> {
    let listener = socket()?;
    rustix::net::bind(&listener, &SocketAddrUnix::new_unnamed())?;
    rustix::net::listen(&listener, 4)?;
    Ok(listener)
}

fn client_of(listener: &OwnedFd) -> io::Result<UnixStream> {
    let client = socket()?;
    rustix::net::connect(&client, &rustix::net::getsockname(listener)?)?;
    let client = UnixStream::from(client);
    client.set_read_timeout(Some(STEP_TIMEOUT))?;
    Ok(client)
}

/// How long one step of the trial may take.
const STEP_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a peer may wait for the end of a connection that was closed. Linux 6.1 lets it wait for a second,
/// and 6.12 until all older operations on direct descriptors have ended: one idle connection then keeps all
/// that are closed after it (axboe/liburing, issue 1192).
const END_TIMEOUT: Duration = Duration::from_millis(500);

/// What the accept of the trial completes with, each time.
const ACCEPT: u64 = 1;

/// A table that is the kernel's alone, and one of which the upper half is ours.
const WHOLE: TableSize = TableSize { accepted: 4, connected_first: 4, connected: 0 };
const DIVIDED: TableSize = TableSize { accepted: 2, connected_first: 2, connected: 2 };

/// Conversations of this process with itself.
struct Trial {
    ring: Ring,
    batch: Vec<cqueue::Entry>,
    listener: OwnedFd,
}

impl Trial {
    fn start(features: &Features, table: TableSize) -> Result<Self, Refusal> {
        let ring = Ring::new(features, RingLimits { table, buffers: 4, watched: false }).map_err(
            |error| match error.raw_os_error() {
                Some(libc::EINVAL) => Refusal::Lacks("direct descriptors or buffer rings"),
                _ => refusal("direct descriptors and buffer ring", &error),
            },
        )?;
        let listener = listener().map_err(|error| refusal("listening", &error))?;
        Ok(Self { ring, batch: Vec::new(), listener })
    }

    /// Tries a server in small: one connection stays idle while another is served and closed.
    fn converse(mut self) -> Result<(), Refusal> {
        let mut idle = self.client()?;
        let accept = opcode::AcceptMulti::new(Fd(self.listener.as_raw_fd())).allocate_file_index(true);
        let accepted = self.run("multishot accept", accept.build().user_data(ACCEPT))?;
        if !cqueue::more(accepted.flags()) {
            return Err(Refusal::Lacks("multishot accept"));
        }
        idle.write_all(b"hello").map_err(|error| refusal("sending to the trial", &error))?;
        let receive = opcode::RecvMulti::new(Fixed(accepted.result() as u32), BUFFER_GROUP);
        let received = self.run("multishot receive", receive.build().user_data(2))?;
        let buffer = cqueue::buffer_select(received.flags());
        if !cqueue::more(received.flags())
            || buffer.is_none_or(|buffer| self.ring.buffers.bytes(buffer, 5) != b"hello")
        {
            return Err(Refusal::Lacks("multishot receive into provided buffers"));
        }
        let client = self.client()?;
        let connection = Fixed(self.complete("second accept", ACCEPT)?.result() as u32);
        let send = opcode::Send::new(connection, b"world".as_ptr(), 5).build().user_data(3);
        let close = opcode::Close::new(connection).build().user_data(4);
        self.ring.push(&send.flags(Flags::IO_LINK | Flags::SKIP_SUCCESS));
        self.run("send and close", close)?;
        read_to_end(client)?;
        self.fail_chain(connection)
    }

    /// Whether the kernel places accepted connections in its part of a table alone, also after one in ours
    /// was closed: some kernels look for a free place from there on.
    fn accept_beside_ours(mut self) -> Result<bool, Refusal> {
        let ours = socket().map_err(|error| refusal("socket", &error))?;
        let descriptor = ours.as_raw_fd();
        let last = DIVIDED.descriptors() - 1;
        let place = opcode::FilesUpdate::new(&raw const descriptor, 1).offset(last as i32).build();
        self.run("placing a socket", place.user_data(1))?;
        self.run("closing it", opcode::Close::new(Fixed(last)).build().user_data(2))?;
        for user_data in 3..3 + u64::from(DIVIDED.accepted) {
            let _client = self.client()?;
            let listener = Fd(self.listener.as_raw_fd());
            let accept = opcode::Accept::new(listener, std::ptr::null_mut(), std::ptr::null_mut())
                .file_index(Some(DestinationSlot::auto_target()));
            let accepted = self.run("accept beside ours", accept.build().user_data(user_data))?;
            if accepted.result() as u32 >= DIVIDED.accepted {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether options of a TCP socket in the table can be set. It is never connected.
    fn set_options(mut self) -> Result<bool, Refusal> {
        let tcp = |family| rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let socket = tcp(AddressFamily::INET).or_else(|_| tcp(AddressFamily::INET6));
        let socket = socket.map_err(|errno| refusal("socket of TCP", &errno.into()))?;
        let descriptor = socket.as_raw_fd();
        let place = opcode::FilesUpdate::new(&raw const descriptor, 1).offset(0).build();
        self.run("placing a socket", place.user_data(1))?;
        let tuning = Tuning::UserTimeout(4711);
        let (_, _, value) = tuning.option();
        let set = set_option(Fixed(0), tuning, &raw const value);
        self.run("setting an option", set.user_data(2))?;
        Ok(sockopt::tcp_user_timeout(&socket) == Ok(4711))
    }

    fn client(&self) -> Result<UnixStream, Refusal> {
        client_of(&self.listener).map_err(|error| refusal("connection to itself", &error))
    }

    /// Checks that a chain whose first operation fails completes once: by that operation. Here it fails
    /// because the connection is closed.
    fn fail_chain(&mut self, connection: Fixed) -> Result<(), Refusal> {
        const STEP: &str = "chain that fails";
        let send = opcode::Send::new(connection, b"never".as_ptr(), 5).build().user_data(5);
        let second = opcode::Nop::new().build().user_data(6);
        self.ring.push_chain(&[send.flags(Flags::IO_LINK | Flags::SKIP_SUCCESS), second]);
        let third = self.run(STEP, opcode::Nop::new().build().user_data(7));
        let completed = |user_data| self.batch.iter().any(|completion| completion.user_data() == user_data);
        match third {
            Ok(_) if completed(5) && !completed(6) => Ok(()),
            Ok(_) => Err(Refusal::Lacks("chains that fail as one")),
            Err(refusal) => Err(refusal),
        }
    }

    /// Runs one operation and returns its completion.
    fn run(&mut self, step: &'static str, entry: io_uring::squeue::Entry) -> Result<cqueue::Entry, Refusal> {
        self.ring.push(&entry);
        self.complete(step, entry.get_user_data())
    }

    /// Waits for a completion.
    fn complete(&mut self, step: &'static str, user_data: u64) -> Result<cqueue::Entry, Refusal> {
        self.batch.clear();
        for _ in 0..3 {
            self.ring.enter(Some(STEP_TIMEOUT)).map_err(|error| refusal(step, &error))?;
            self.batch.reserve(8);
            self.ring.take_completions(&mut self.batch);
            if let Some(completion) = self.batch.iter().find(|completion| completion.user_data() == user_data)
            {
                return match completion.result() {
                    0.. => Ok(completion.clone()),
                    error => Err(Refusal::Failed(step, -error)),
                };
            }
        }
        Err(Refusal::Failed(step, libc::ETIMEDOUT))
    }
}

/// Checks that the client got all bytes, and their end soon.
fn read_to_end(mut client: UnixStream) -> Result<(), Refusal> {
    const STEP: &str = "answer of the trial";
    let mut bytes = [0; 5];
    client.read_exact(&mut bytes).map_err(|error| refusal(STEP, &error))?;
    if &bytes != b"world" {
        return Err(Refusal::Failed(STEP, libc::EBADMSG));
    }
    client.set_read_timeout(Some(END_TIMEOUT)).map_err(|error| refusal(STEP, &error))?;
    loop {
        return match client.read(&mut bytes) {
            Ok(0) => Ok(()),
            Ok(_) => Err(Refusal::Failed(STEP, libc::EBADMSG)),
            // The ring's own work interrupts the thread.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(Refusal::Lacks("closing a connection at once while another is idle (Linux 6.13)"))
            }
            Err(error) => Err(refusal(STEP, &error)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_is_one_sentence() {
        let refusals = [
            Refusal::Disabled(1),
            Refusal::Disabled(2),
            Refusal::Filtered,
            Refusal::Absent,
            Refusal::Memory,
            Refusal::Descriptors,
            Refusal::Lacks("a thing"),
            Refusal::Failed("a step", libc::EIO),
        ];
        for refusal in refusals {
            let sentence = refusal.to_string();
            assert!(!sentence.is_empty() && !sentence.contains('\n'), "{sentence}");
        }
    }

    #[test]
    fn a_probe_comes_to_an_answer() {
        match probe() {
            Ok(features) => assert!(features.to_string().starts_with("multishot")),
            Err(refusal) => println!("{refusal}"),
        }
    }
}
