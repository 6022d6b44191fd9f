//! Every limit of live data, with its reason.

/// Longest name of a topic: a URL of a Mercure topic fits, and a name is held once per worker.
pub const TOPIC_NAME_BYTES_MAX: usize = 256;
/// Most topics. A topic without a value costs about 400 bytes per worker: 40 MB.
pub const TOPICS_MAX: usize = 100_000;
/// Most different patterns, per worker: those whose literal beginnings fit are compared with the name of a
/// new topic, and all together they take some megabytes beside the topics they cover.
pub const PATTERNS_MAX: usize = 4_096;
/// Most of them that one client has brought: four clients have to conspire to take all, and as many readers
/// behind one proxy as a server has had room for.
pub const PATTERNS_PER_CLIENT_MAX: usize = 1_024;
/// Most patterns of one reader: what a stream can ask for.
pub const PATTERNS_PER_READER_MAX: usize = INTERESTS_PER_STREAM_MAX;
/// Bytes of a pattern in the tables of a worker and of the hub, beside its own: those tables are two thirds
/// full on average.
pub const PATTERN_PLACES_BYTES: usize = 512;
/// Bytes of a name that is asked for in those tables: digests that lead to groups, and to counts of readers.
pub const NAME_PLACES_BYTES: usize = 64;
/// Comparisons of patterns with topics, in one step of a worker, long ones counted several times: some 50 us.
pub const STEP_WORK_MAX: usize = 1_000;
/// Comparisons for one letter of the hub, which only tell publishers how many readers there are: less than a
/// millisecond, and enough for all patterns of four workers that begin as a topic does.
pub const COUNT_WORK_MAX: usize = 4 * PATTERNS_MAX;
/// Most topics and patterns of readers that are one group though each may change what it asks for: with more,
/// a reader has a group of its own, for to find the group of the next interest takes as long as that is.
pub const SHARED_INTERESTS_MAX: usize = 16;
/// Most wildcards of a template, or of a component of a URL pattern: those in use have a few, and each looks
/// at every byte of a name.
pub const PATTERN_PIECES_MAX: usize = 32;
/// Longest text that wildcards are compared with: a name of 256 bytes, percent-encoded, is a path of 768.
pub const COMPARED_BYTES_MAX: usize = 1023;
/// Most bytes that the regular expressions of one URL pattern take when they are compiled: some hundred
/// characters of ASCII. `\w` alone, which is all letters of Unicode, takes more.
pub const REGEXP_BYTES_MAX: usize = 16 * 1024;
/// Most groups of readers per worker: a million readers, each alone on its topic, are 256 MB beside
/// the names.
pub const GROUPS_MAX: usize = 1_000_000;
/// Most bytes of one group, its list of readers aside. The const assertion stands at the type.
pub const GROUP_BYTES_MAX: usize = 256;
/// Most topics and patterns that one stream of events asks for: the line of the request has to hold them.
pub const INTERESTS_PER_STREAM_MAX: usize = 64;
/// Most topics and patterns that one WebSocket asks for.
pub const INTERESTS_PER_SOCKET_MAX: usize = 1_000;
/// Longest value of a topic unless told otherwise: what one answer of a prepared file holds four times.
pub const VALUE_BYTES_DEFAULT: usize = 64 * 1024;
/// Longest value that may be set as the limit: a frame is sent whole, so longer ones stop others.
pub const VALUE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Longest part of what passes to the process that takes over: an update with its patch, and names of its
/// topics.
pub const CARRIED_FRAME_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Most topics of one publication: in the store, and for the process that takes over, each of them has a
/// record that names all.
pub const TOPICS_PER_PUBLICATION_MAX: usize = 100;
/// Longest `id` and `type` of an update: ids are UUIDs or URLs.
pub const ID_BYTES_MAX: usize = 256;
/// Updates in a topic's ring unless told otherwise: a minute of one update a second.
pub const RING_ENTRIES_DEFAULT: usize = 64;
/// Bytes of values in a topic's ring unless told otherwise.
pub const RING_BYTES_DEFAULT: usize = 256 * 1024;
/// Numbers kept of updates that left a ring, to say how many a reader missed: 8 KiB per busy topic.
pub const GAP_NUMBERS_MAX: usize = 1_024;
/// How long the key of a publication is remembered: publishers that try again do so within minutes.
pub const KEY_MS_MAX: u64 = 10 * 60 * 1000;
/// Most keys that are remembered: 1 MB.
pub const KEYS_MAX: usize = 10_000;
/// Longest key: UUIDs have 36 bytes.
pub const KEY_BYTES_MAX: usize = 256;
/// Longest symbol of a quote.
pub const SYMBOL_BYTES_MAX: usize = 32;
/// Most symbols of one list: a page shows no more, and each is looked up.
pub const SYMBOLS_MAX: usize = 50;
/// Most lines of a batch that is answered at its end: a second of the hub's work at most.
pub const BATCH_LINES_MAX: usize = 10_000;
/// Most bytes of such a batch.
pub const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Longest token: what stands in one field of a request.
pub const TOKEN_BYTES_MAX: usize = 8 * 1024;
/// Most topics and patterns of one token, for each action.
pub const TOKEN_GRANTS_MAX: usize = 256;
/// Most tokens that are remembered: some 20 MB with a few grants each.
pub const TOKENS_REMEMBERED_MAX: usize = 65_536;
/// Most tokens that are remembered as refused: 5 MB.
pub const TOKENS_REFUSED_REMEMBERED_MAX: usize = 65_536;
/// How far the clock of an issuer may differ from ours, in seconds: two hosts that ask a time server differ
/// by less than one, and others forget to.
pub const TOKEN_LEEWAY_S: u64 = 30;
/// Shortest shared secret (RFC 7518, section 3.2): as long as the digest.
pub const HMAC_KEY_BYTES_MIN: usize = 32;
/// Shortest RSA key (RFC 7518, section 3.3).
pub const RSA_KEY_BITS_MIN: u32 = 2048;
/// Longest RSA key: what verifying one token costs has a bound.
pub const RSA_KEY_BITS_MAX: u32 = 8192;
/// Most commands of one message of a WebSocket: clients send what waited while they connected.
pub const COMMANDS_PER_MESSAGE_MAX: usize = 256;
/// Bytes of all values, rings and forms unless told otherwise.
pub const LIVE_MEMORY_BYTES_DEFAULT: usize = 256 * 1024 * 1024;
/// Updates that wait for the hub: a second of what it can take, and 64 Ki letters of a few words.
pub const HUB_QUEUE_MAX: usize = 65_536;
/// Bytes of the values and patches of those updates: they pile up while a slow disk is synced. Four of the
/// longest values (16 MiB) fit.
pub const HUB_QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Updates that a worker may be behind the hub before the hub waits for it.
pub const WORKER_BEHIND_MAX: usize = 4_096;
/// Numbers of recent updates with their topics, per worker: a reader that is not further behind is caught up
/// without looking at each of its topics. 16 bytes each.
pub const RECENT_NUMBERS_MAX: usize = 4_096;
/// Sends of one group before the next has its turn: what one entry into the kernel takes at a time.
pub const SENDS_PER_TURN_MAX: usize = 256;
/// Batches a group's wave remembers while it goes round: readers stand at one number, or at few.
pub const REMEMBERED_BATCHES_MAX: usize = 8;
/// Slices of one delivery: what one `sendmsg` takes is 1 024 (IOV_MAX). A reader that is further behind gets
/// the rest after these.
pub const SLICES_PER_DELIVERY_MAX: usize = 256;
/// Bytes of the values of one delivery, where it is of several: a reader that takes nothing of it holds no
/// more. Sixteen values as long as they may be unless told otherwise.
pub const DELIVERY_BYTES_MAX: usize = 1024 * 1024;
/// Longest value that is told as a difference to an earlier one: while the writer makes that difference
/// nothing is published (`cargo xtask bench live-differences` takes the time).
pub const DIFFERENCE_VALUE_BYTES_MAX: usize = 1024 * 1024;
/// Shortest value that is told so: below, one segment holds it with its head anyway.
pub const DIFFERENCE_VALUE_BYTES_MIN: usize = 256;
/// Most earlier values of a topic that a reader may have for it: as many as a ring has unless told otherwise.
pub const DIFFERENCES_PER_UPDATE_MAX: usize = 64;
/// Most bytes of values that are gone through for the differences of one update: that bounds the time of the
/// writer, whoever asks for them. With 11 KB that is all of [`DIFFERENCES_PER_UPDATE_MAX`], with 1 MiB two.
pub const DIFFERENCES_WORK_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Shortest value that is compressed: below it gzip and zstd add more than they save.
pub const COMPRESSED_BYTES_MIN: usize = 100;

const _: () = assert!(VALUE_BYTES_DEFAULT <= VALUE_BYTES_MAX);
const _: () = assert!(DIFFERENCES_WORK_BYTES_MAX >= 2 * DIFFERENCE_VALUE_BYTES_MAX);
const _: () = assert!(4 * PATTERNS_PER_CLIENT_MAX <= PATTERNS_MAX);
const _: () = assert!(COMPARED_BYTES_MAX >= 3 * TOPIC_NAME_BYTES_MAX);
const _: () = assert!(SLICES_PER_DELIVERY_MAX < 1024);
const _: () = assert!(
    CARRIED_FRAME_BYTES_MAX
        > (2 * VALUE_BYTES_MAX + 2 * TOPICS_PER_PUBLICATION_MAX * TOPIC_NAME_BYTES_MAX) as u64
);
