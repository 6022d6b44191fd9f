//! Every limit of the content store and its threads, with its reason.

/// Largest file held in memory, in bytes. Above it the kernel sends a file from its own cache at less cost
/// than the memory is worth; below it one prepared block is cheaper than any system call.
pub const HELD_FILE_BYTES_MAX: u64 = 1024 * 1024;
/// A single file may take at most this part of the budget, so that a few files cannot push out all others.
pub const HELD_FILE_BUDGET_PART: u64 = 8;
/// Files too large to be held are kept open, at most this many: they are few, and descriptors are for peers.
pub const OPEN_FILES_MAX: usize = 256;
/// Shards of the store. A change copies one shard: with 100 000 files that is about 25 pointers.
pub const STORE_SHARDS: usize = 4096;
/// The first preparation of a whole site stops at this part of the budget (in sixteenths): the rest is room
/// for encodings and for what is asked for.
pub const WALK_BUDGET_SIXTEENTHS: u64 = 12;
/// Most files the first preparation looks at: the list of their names is kept while it runs.
pub const WALK_FILES_MAX: usize = 1_000_000;
/// Deepest folder the first preparation enters: deeper ones are read when asked for.
pub const WALK_DEPTH_MAX: usize = 64;

/// Most different paths waiting for the loader. A loader serves some 20 000 files a second from the page
/// cache: more would wait longer than a person does.
pub const LOADS_QUEUED_MAX: usize = 4096;
/// Most requests waiting for one or another load. Each is a few words.
pub const LOADS_WAITING_MAX: usize = 65_536;
/// Threads that load. Two, so that one slow disk read does not hold up everything.
pub const LOADER_THREADS: usize = 2;
/// A file that changes while it is read is read again so often before it is sent unheld instead.
pub const READ_TRIES_MAX: usize = 4;
/// Coarsest step of a file system's time stamps, in milliseconds (100 ticks a second): within it two changes
/// may leave the same stamp.
pub const STAMP_STEP_MS: u64 = 10;

/// Smallest body that is worth an encoding, in bytes: below it the additional fields eat what is gained.
pub const ENCODED_BYTES_MIN: usize = 200;
/// An encoding is kept only if it saves at least so many bytes: about the cost of its own fields.
pub const ENCODING_GAIN_BYTES_MIN: usize = 64;
/// Brotli's window is at most 2^22 bytes: what every decoder takes without asking (RFC 7932, section 9.1).
pub const BROTLI_WINDOW_LOG_MAX: i32 = 22;
/// Zstandard's window is at most 2^23 bytes: what decoders of HTTP content must take (RFC 9659, section 3).
pub const ZSTD_WINDOW_LOG_MAX: u32 = 23;
/// Most hints from workers that wait to be seen by the encoder; further ones are dropped, being hints.
pub const ENCODER_HINTS_MAX: usize = 1024;
/// Listings above this size in bytes are not encoded: they change with every file and take seconds to encode.
pub const ENCODED_LISTING_BYTES_MAX: usize = 64 * 1024;

/// Most ranges one request may ask for; beyond, the whole is sent (RFC 9110, section 14.2).
pub const RANGES_MAX: usize = 64;
/// Files up to this size are read and sent by one call in the mode without a store; above, the kernel sends
/// them.
pub const UNHELD_READ_BYTES_MAX: u64 = 64 * 1024;
/// Longest path in bytes that is looked up: the kernel takes none longer than 4095.
pub const PATH_BYTES_MAX: usize = 4095;
/// Folders watched for changes are at most so many; entries of further ones are checked once a second on use.
pub const WATCHES_MAX: usize = 524_288;
/// After changes the watcher rests this long, in milliseconds, so that a burst costs few wake-ups.
pub const WATCH_REST_MS: u64 = 10;

const _: () = assert!(STORE_SHARDS.is_power_of_two());
const _: () = assert!(ENCODING_GAIN_BYTES_MIN < ENCODED_BYTES_MIN);
const _: () = assert!(UNHELD_READ_BYTES_MAX <= HELD_FILE_BYTES_MAX);
const _: () = assert!(WALK_BUDGET_SIXTEENTHS <= 16);
