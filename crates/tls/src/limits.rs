//! Every capacity of the crate, with its reason.
//!
//! It must never hold a setting: what an operator may choose is an argument.

/// Bytes of a record's head: type, version, length (RFC 8446, section 5.1).
pub const RECORD_HEAD_BYTES: usize = 5;
/// Plain bytes in one record at most: 2^14 (RFC 8446, section 5.1).
pub const RECORD_PLAIN_BYTES_MAX: usize = 1 << 14;
/// Bytes that sealing may add in TLS 1.3: 256 (RFC 8446, section 5.2).
pub const EXPANSION_13_BYTES_MAX: usize = 256;
/// Bytes that sealing may add in TLS 1.2 with the suites spoken here: an explicit nonce of 8 and a tag of 16
/// (RFC 5288, section 3). RFC 5246 allows 2 048 for suites that are not spoken.
pub const EXPANSION_12_BYTES_MAX: usize = 24;
/// A receive buffer of this size holds any whole record.
pub const RECORD_BYTES_MAX: usize = RECORD_HEAD_BYTES + RECORD_PLAIN_BYTES_MAX + EXPANSION_13_BYTES_MAX;
/// Bytes that a record of ours adds at most to its content: head, explicit nonce or type, tag.
pub const RECORD_OVERHEAD_BYTES_MAX: usize = RECORD_HEAD_BYTES + EXPANSION_12_BYTES_MAX;

/// Bytes of a ClientHello at most. Browsers with a post-quantum share send under 2 KiB, tickets add 1 KiB
/// each.
pub const HELLO_BYTES_MAX: usize = 1 << 14;
/// Records that a ClientHello may come in. Records of 64 bytes, the least that RFC 8449 lets a client ask
/// for, would be as many for the longest hello. The bound keeps small from looking again at each what came
/// before.
pub const HELLO_RECORDS_MAX: u32 = 256;
/// Bytes a peer may send before its handshake is over. A chain of client certificates is the largest part.
pub const HANDSHAKE_BYTES_MAX: usize = 1 << 16;
/// Bytes that rustls holds for a handshake at work, beside the connection itself: transcript, key exchange,
/// messages that are not whole. Measured: 4 to 7 KiB.
pub const HANDSHAKE_HELD_BYTES: usize = 8 * 1024;
/// Extensions in a ClientHello at most. Browsers send about 20.
pub const EXTENSIONS_MAX: usize = 64;
/// Longest name in a ClientHello: a DNS name in text (RFC 1035, section 2.3.4).
pub const SERVER_NAME_BYTES_MAX: usize = 253;

/// Records sealed with one key before ours is changed: 2^23, half of what AES-GCM bears with full records
/// (RFC 8446, section 5.5: 2^24.5). The peer is asked for a new key after as many of its own.
pub const RECORDS_BEFORE_UPDATE_MAX: u64 = 1 << 23;
/// Records opened or sealed with one key at all, for AES-GCM: 2^24 (RFC 8446, section 5.5).
pub const RECORDS_GCM_MAX: u64 = 1 << 24;
/// Records with one key for ChaCha20-Poly1305, which has no bound but the number itself (RFC 8446, section
/// 5.5).
pub const RECORDS_CHACHA_MAX: u64 = u64::MAX - 1;
/// Oddities in a row (empty records, warnings, key updates) before the connection ends, as in BoringSSL.
/// Data between them forgives them here; the sum is told to the caller.
pub const ODDITIES_IN_A_ROW_MAX: u8 = 32;

/// An answer up to this goes out in records as large as they can be: it fits the first window of a
/// connection, ten segments (RFC 6928), so smaller records would bring nothing earlier.
pub const FLIGHT_BYTES: usize = 14_000;
/// Plain bytes of a small record. With its 22 bytes around, and 60 of TCP and IPv6 with time stamps, it fills
/// one segment of an Ethernet frame, so a browser reads the head of a long answer from the first segment.
pub const SMALL_RECORD_BYTES: usize = 1_400;
/// Small records at the beginning of a long answer after a rest: those of the first window.
pub const SMALL_RECORDS_COUNT: u32 = 10;

/// Bytes of a traffic secret or of a key with its nonce: SHA-384 has the longest.
pub const SECRET_BYTES_MAX: usize = 48;
/// Bytes of a sleeping connection: two secrets, two counters, a suite.
pub const ASLEEP_BYTES_MAX: usize = 128;

/// Bytes of a key of ML-KEM-768, which a client sends (FIPS 203, table 3).
pub const MLKEM_KEY_BYTES: usize = 1_184;
/// Bytes of its ciphertext, which the server answers.
pub const MLKEM_CIPHERTEXT_BYTES: usize = 1_088;

/// Seconds after which tickets are sealed with a new key.
pub const TICKET_KEY_SECONDS: u64 = 8 * 60 * 60;
/// Seconds a ticket is good for: as long as its key is kept in any case.
pub const TICKET_LIFETIME_SECONDS: u32 = 16 * 60 * 60;
/// Keys that are kept: the current and the two before.
pub const TICKET_KEYS_COUNT: usize = 3;
/// Keys read from files at most: a current one and a week of daily ones, with room.
pub const TICKET_FILES_MAX: usize = 16;
/// Bytes of a ticket at most. Client certificates in it are the largest part.
pub const TICKET_BYTES_MAX: usize = 1 << 14;

/// Bytes of a session with a client's certificates at most, for which a ticket is made: twice as many would
/// not leave room in a ClientHello for anything else. Three certificates with RSA keys of 4 096 bits take
/// 6 KB.
pub const SESSION_BYTES_MAX: usize = 1 << 13;
/// Bytes of a client's name at most: a subject of ten parts with 64 characters each, the longest that
/// RFC 5280, appendix A.1, allows for most of them, and their types.
pub const SUBJECT_BYTES_MAX: usize = 1 << 10;
/// Authorities of clients at most. Each is tried in turn for a client whose issuer has several keys, and
/// their names stand in every handshake.
pub const AUTHORITIES_MAX: usize = 64;
/// Lists of revoked certificates at most: two for each authority.
pub const LISTS_MAX: usize = 2 * AUTHORITIES_MAX;
/// Bytes of a file with such lists at most: 300 000 revoked certificates take 12 MB.
pub const LISTS_BYTES_MAX: usize = 1 << 24;

/// Bytes of a PEM file at most: a chain of ten certificates with RSA keys of 4 096 bits takes 30 KB.
pub const PEM_BYTES_MAX: usize = 1 << 20;
/// Certificates in a chain at most. Public chains have two to four.
pub const CHAIN_CERTIFICATES_MAX: usize = 16;
/// RSA keys below this are weak (NIST SP 800-131A).
pub const RSA_BITS_MIN: usize = 2_048;
/// RSA keys above this cannot be signed with here (ring's limit).
pub const RSA_BITS_MAX: usize = 4_096;
/// A key of so many bits in PKCS #8 is shorter: eight numbers, two as long as the modulus and five half as
/// long.
pub const RSA_KEY_BYTES_MAX: usize = 2_500;

const _: () = assert!(TICKET_LIFETIME_SECONDS as u64 <= TICKET_KEY_SECONDS * (TICKET_KEYS_COUNT as u64 - 1));
const _: () = assert!(HELLO_BYTES_MAX < HANDSHAKE_BYTES_MAX);
const _: () = assert!(SESSION_BYTES_MAX < HELLO_BYTES_MAX && SESSION_BYTES_MAX < TICKET_BYTES_MAX);
const _: () = assert!(RECORDS_BEFORE_UPDATE_MAX < RECORDS_GCM_MAX);
