//! Every bound of the transport, with its reason. Those a peer can see stand in `docs/dostp.md`.

/// Bytes of a frame's header.
pub const HEADER_BYTES: usize = 16;

/// Bytes of a greeting, the payload of control frames.
pub const GREETING_BYTES: usize = 32;

/// Bytes of the checksum that follows the payload where SUM is set.
pub const SUM_BYTES: usize = 4;

/// The longest trailer: counter word and Poly1305's tag.
pub const TRAILER_BYTES_MAX: usize = 24;

/// The smallest MTU of an interface: a greeting with its header and trailer fits twice.
pub const MTU_MIN: u16 = 128;

/// The MTU of every Ethernet. Larger frames are sent only after one has been answered.
pub const MTU_ETHERNET: u16 = 1500;

/// Fragments of one message: the sequence has 8 bits.
pub const FRAGMENTS_MAX: usize = 256;

/// Frames that are joined at most. Where two neighbours of so many change places on their way, the ids of the
/// later one are still among the 63 that a receiver remembers before the newest.
pub const JOINED_FRAMES_MAX: usize = 32;

/// Bytes of one message, by default: what a peer may have under way at most.
pub const MESSAGE_BYTES_MAX: usize = 256 << 10;

/// Bytes one source may have under way in incomplete messages: one message of the greatest size.
pub const SOURCE_BYTES_MAX: usize = 256 << 10;

/// Incomplete messages of one source: a node that sends from so many ports at once is busy indeed.
pub const SOURCE_MESSAGES_MAX: usize = 64;

/// Bytes all sources may have under way in incomplete messages: sixteen at their bound. A flood of fragments
/// with forged sources makes a node hold no more.
pub const NODE_BYTES_MAX: usize = 4 << 20;

/// Incomplete messages of all sources, so that tiny fragments are bounded by number as well.
pub const NODE_MESSAGES_MAX: usize = 4096;

/// How long a message may take from its first fragment to its last: on a LAN it takes microseconds.
pub const MESSAGE_AGE_MS_MAX: u64 = 1_000;

/// How long the ids of a sender that is silent are remembered. A copy made by a switch comes within
/// milliseconds, and a program that is started again begins with another id.
pub const IDS_AGE_MS_MAX: u64 = 1_000;

/// Sets of the table of remembered ids, with [`IDS_WAYS`] places each: 1 024 flows in all, some 24 KiB.
pub const IDS_SETS: usize = 256;

/// Places in a set of that table.
pub const IDS_WAYS: usize = 4;

/// Peers a node knows, by default: sixteen times the largest cluster that was thought of (250 nodes).
pub const PEERS_MAX: usize = 4096;

/// How long a peer counts as there after a frame of it was heard: fifteen times what Linux gives ARP.
pub const FRESH_MS: u64 = 450_000;

/// After so long a silence a peer is forgotten: one announcement of it may be lost.
pub const GONE_MS: u64 = 2 * FRESH_MS;

/// The random addition to the time between announcements, so that nodes started together fall apart.
pub const ANNOUNCE_SPREAD_MS: u64 = 45_000;

/// A start's second HELLO: the first may be lost while a switch learns the port.
pub const HELLO_AGAIN_MS: u64 = 500;

/// How long a starting node may be refused its address.
pub const TRIAL_MS: u64 = 1_000;

/// Answers to a HELLO, which all nodes hear at once, are spread over this time.
pub const REPLY_SPREAD_MS: u64 = 200;

/// Between one PROBE and its repetition: a thousand round trips.
pub const PROBE_AGAIN_MS: u64 = 300;

/// How long a challenge to an unknown node is the same; its echo is taken for as long again. Longer than all
/// tries of a PROBE with their answers.
pub const INTRODUCTION_MS: u64 = 2_048;

/// Counts of believed echoes: addresses that share one ask each other's nodes once more now and then.
pub const GENERATIONS: usize = 512;

/// How often a PROBE is sent before it has failed.
pub const PROBE_TRIES: u8 = 3;

/// How long sends to an address that did not answer fail at once.
pub const UNREACHABLE_MS: u64 = 1_000;

/// Answers to challenges in a second: 250 nodes that start at once ask 500 times.
pub const REPLIES_PER_SECOND_MAX: u32 = 1_000;

/// Answers that wait for their time: those of a second.
pub const REPLIES_WAITING_MAX: usize = 1_024;

/// PROBEs of a large size that greetings make be sent in a second: each is 140 times as long as a greeting.
pub const SIZES_PER_SECOND_MAX: u32 = 100;

/// CONFLICTs in a second: a node that started wrongly hears the first.
pub const CONFLICTS_PER_SECOND_MAX: u32 = 10;

/// Addresses that are asked for at once.
pub const RESOLVING_MAX: usize = 256;

/// Messages that wait for one address: what a program sends in a burst before it hears an answer.
pub const PARKED_MESSAGES_MAX: usize = 16;

/// Bytes of messages that wait for one address.
pub const PARKED_BYTES_MAX: usize = 64 << 10;

/// When a message whose address was found, but which found no room, is tried again for the first time: a
/// queue of frames drains within that.
pub const PARKED_AGAIN_MS_MIN: u64 = 1;

/// The longest time between two such tries, each of which takes twice as long to come as the one before: a
/// message of many frames may send its first ones in vain each time. All messages behind it wait as long.
pub const PARKED_AGAIN_MS_MAX: u64 = 16;

/// How long such a message is tried: about as long as it would have waited for an address that nobody has.
pub const PARKED_PATIENCE_MS: u64 = 1_000;

/// Windows against replay: one for each port of each peer that sent something. Some 2.5 MiB, and only peers
/// that have the secret can make a node hold them.
pub const REPLAY_WINDOWS_MAX: usize = 16_384;

/// Of them for one peer: a quarter, so that one program that uses many ports leaves room for the others.
pub const REPLAY_WINDOWS_PEER_MAX: u32 = 4_096;

/// Keys of peers that are kept instead of derived again: those of both slots of as many peers as are known.
pub const KEYS_MAX: usize = 2 * PEERS_MAX;

/// A window that was not used for so long may be forgotten, if room is needed.
pub const REPLAY_IDLE_MS: u64 = 600_000;

/// Control frames that wait to be sent: the answers of one second and what a start sends.
pub const CONTROL_WAITING_MAX: usize = 2_048;

const _: () = assert!(MESSAGE_BYTES_MAX <= SOURCE_BYTES_MAX);
const _: () =
    assert!(MESSAGE_BYTES_MAX <= FRAGMENTS_MAX * (MTU_ETHERNET as usize - HEADER_BYTES - TRAILER_BYTES_MAX));
const _: () = assert!(SOURCE_BYTES_MAX <= NODE_BYTES_MAX && SOURCE_MESSAGES_MAX <= NODE_MESSAGES_MAX);
const _: () = assert!(HEADER_BYTES + GREETING_BYTES + TRAILER_BYTES_MAX <= MTU_MIN as usize);
const _: () = assert!(PROBE_AGAIN_MS * PROBE_TRIES as u64 + REPLY_SPREAD_MS < INTRODUCTION_MS);
const _: () = assert!(HELLO_AGAIN_MS + REPLY_SPREAD_MS < TRIAL_MS);
