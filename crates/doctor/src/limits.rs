//! Thresholds of the checks, each with its reason.
//!
//! It must never hold a value that depends on the host: that is worked out where it is judged.

/// The least host that is advised anything by its size: smaller ones are judged as this.
pub(crate) const CONNECTIONS_MIN: u64 = 65_536;
/// As many connections as one process can have: the kernel's default of fs.nr_open.
pub(crate) const CONNECTIONS_MAX: u64 = 1_048_576;
/// What a connection is reckoned at, as the server itself does: a quarter of memory at 4 KiB each.
pub(crate) const CONNECTION_BYTES: u64 = 4096;
/// Fewer descriptors than this do not hold one evening's crowd: ten thousand clients and some files.
pub(crate) const DESCRIPTORS_HARD_MIN: u64 = 16_384;
/// The backlog the server asks for. The kernel cuts it down to net.core.somaxconn.
pub(crate) const BACKLOG_COUNT: u64 = 4096;
/// A backlog below this overflows in a burst that any page with a link on television sees.
pub(crate) const BACKLOG_COUNT_MIN: u64 = 512;
/// A listener with fewer places is full after some milliseconds of a crowd: 128 are 25 ms of 5000 connections
/// a second, which is the line a gate keeps before a server.
pub(crate) const PLACES_MIN: u32 = 128;
/// Before so few places a gate stands aside, for they bound the server by themselves (docs/gate.md).
pub(crate) const PLACES_ASIDE: u32 = 16;
/// So many listeners are named; of others their number is said.
pub(crate) const LISTENERS_NAMED: usize = 6;
/// Per cent of a table that may be filled before it is said: there is time left to do something.
pub(crate) const FILLED_PERCENT_MAX: u64 = 80;
/// A container below this cannot hold the default budget of prepared content, sockets and the program.
pub(crate) const CONTAINER_MEMORY_BYTES: u64 = 64 << 20;
/// Threads a server needs: workers, preparation, watching, logs, with room for encoders.
pub(crate) const CONTAINER_PIDS_MIN: u64 = 64;
/// Send buffer that fills 100 Mbit/s over 300 ms, and receive buffer for bodies that are thrown away.
pub(crate) const SEND_BUFFER_BYTES: u64 = 4 << 20;
/// Receive buffers matter less to a server: requests are small.
pub(crate) const RECEIVE_BUFFER_BYTES: u64 = 1 << 20;
/// Above this, what each connection begins with is a cost and no use.
pub(crate) const FIRST_BUFFER_BYTES_MAX: u64 = 256 << 10;
/// Per cent of processor time a hypervisor may keep before it is said.
pub(crate) const STEAL_PERCENT_MAX: u64 = 5;
