//! Every capacity of the crate, with its reason.
//!
//! It must never hold a setting: what an operator may choose is an argument.

use std::time::Duration;

/// Bytes of an answer of the authority at most. The longest is a chain of certificates: some 10 KB.
pub const ANSWER_BYTES_MAX: u64 = 1 << 18;
/// Letters of the authority's own words that go into a line of the log.
pub const WORDS_MAX: usize = 500;
/// Letters of a token: those of today have 43 (RFC 8555, section 8.1 asks for 22 at least).
pub const TOKEN_BYTES_MAX: usize = 200;
/// Bytes of a packet on the line between server and agent: a name has up to 253 bytes, and a configuration
/// may have some thousand names. A datagram of a Unix socket may have twice as many by default.
pub const PACKET_BYTES_MAX: usize = 100_000;

/// Times that a request is repeated with the new nonce the authority gave (RFC 8555, section 6.5): one is
/// usual, five in a row are a fault of the authority.
pub const NONCE_TRIES_MAX: u32 = 8;
/// How long the authority may take for one answer, the connection included.
pub const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);
/// How long the authority may take to check a challenge, and to issue a certificate. Let's Encrypt gives up a
/// check after a minute.
pub const POLL_TIME_MAX: Duration = Duration::from_secs(180);
/// Pause between two looks at an order or authorization under way, where the authority names none.
pub const POLL_PAUSE: Duration = Duration::from_secs(1);
/// The longest of these pauses, whatever the authority asks for.
pub const POLL_PAUSE_MAX: Duration = Duration::from_secs(30);
/// How long the server may take to confirm that it answers a challenge: it only changes a table.
pub const PRESENT_TIME_MAX: Duration = Duration::from_secs(10);
/// Seconds by which the authority's clock may be before ours: a certificate that is valid in an hour is kept.
pub const CLOCK_AHEAD_S: u64 = 3_600;
/// Pause between two tries for the store's lock while another server holds it.
pub const LOCK_PAUSE: Duration = Duration::from_secs(2);

/// The first wait after a refusal. Let's Encrypt allows five failures of a name in an hour: with a factor of
/// three four fall into the first.
pub const REFUSED_WAIT_S: u64 = 60;
/// The factor from one wait after a refusal to the next.
pub const REFUSED_FACTOR: u64 = 3;
/// Longest file with roots that an authority is trusted by.
pub const ROOTS_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Longest file of the store, and of a key that settings name.
pub const STORED_BYTES_MAX: usize = 1024 * 1024;
/// The first wait when the authority cannot be reached: nothing is counted there.
pub const UNREACHABLE_WAIT_S: u64 = 5;
/// The longest wait when the authority cannot be reached.
pub const UNREACHABLE_WAIT_S_MAX: u64 = 3_600;
/// The longest wait of all.
pub const WAIT_S_MAX: u64 = 86_400;
/// Seconds until renewal information is asked for again where the authority names no time: RFC 9773, section
/// 4.3.2, says six hours at least.
pub const WINDOW_ASK_S: u64 = 21_600;

const _: () = assert!(REFUSED_WAIT_S < WAIT_S_MAX && UNREACHABLE_WAIT_S_MAX < WAIT_S_MAX);
const _: () = assert!(POLL_PAUSE_MAX.as_secs() < POLL_TIME_MAX.as_secs());
