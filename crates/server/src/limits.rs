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
/// Threads that load, for all sites together: enough that two sites whose disks hang leave a third alone.
pub const LOADER_THREADS: usize = 4;
/// Threads that load for one site at most. Two, so that one slow disk read does not hold up everything.
pub const LOADS_AT_ONCE_PER_SITE_MAX: usize = 2;
/// A file that changes while it is read is read again so often before it is sent unheld instead.
pub const READ_TRIES_MAX: usize = 4;
/// Coarsest step of a file system's time stamps, in milliseconds (100 ticks a second): within it two changes
/// may leave the same stamp.
pub const STAMP_STEP_MS: u64 = 10;

/// Largest text in bytes that is encoded although it is too large to be held: it stands in memory as often as
/// there are threads that encode, for as long as they do.
pub const ENCODED_FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
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
/// Versions of one path that are known as dictionaries: the current one and the last four before it.
pub const VERSIONS_OF_PATH_MAX: usize = 5;
/// Versions of a pattern of paths that are known: a bundle of each release, and some of them at once.
pub const VERSIONS_OF_PATTERN_MAX: usize = 32;
/// Paths or patterns whose versions are known, per site: some hundred bytes each.
pub const DICTIONARY_FAMILIES_MAX: usize = 65_536;
/// Differences that are held of one path or pattern; then those are let go, and made again when asked for.
pub const DIFFERENCES_PER_FAMILY_MAX: usize = 64;
/// Most differences that wait to be made, per site; further ones are asked for by the next request.
pub const DIFFERENCES_WANTED_MAX: usize = 256;
/// Part of the budget that former versions and differences may take at most; they give way before all else.
pub const SPARE_BUDGET_PART: u64 = 4;
/// Listings above this size in bytes are encoded quickly, as they are made: they change with every file, and
/// at the best ratio take seconds to encode.
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

/// Most path rules and redirects of a site: each is compared with every path that is not held.
pub const RULES_MAX: usize = 1024;
/// Longest fields a site's rules may add to a response, in bytes: with the server's own they must fit into
/// the buffer most clients have for a head (8 KiB).
pub const RULE_FIELDS_BYTES_MAX: usize = 6 * 1024;
/// Different combinations of rules that are kept. There are few; only a hostile choice of paths makes many.
pub const RULINGS_KEPT_MAX: usize = 1024;

/// Most credentials waiting to be checked by one rule. At 50 ms each the last waits three seconds, which is
/// what a person waits for a password.
pub const CHECKS_PER_RULE_MAX: usize = 64;
/// Most of them of one client: as many people behind one address as log in within one moment, and a quarter
/// of all, so that four clients have to conspire to fill the line.
pub const CHECKS_PER_CLIENT_MAX: usize = 16;
/// Most requests waiting for the same check: a page loads with some dozens of requests.
pub const CHECKS_JOINED_MAX: usize = 128;
/// Asks for checks that are remembered, with who made them; then all count half. At most so many clients, and
/// as many connections, are known thereby: 64 bytes each, 2 MiB.
pub const ASKS_REMEMBERED_MAX: u32 = 16 * 1024;
/// Leading bits of an IPv6 address that make a client: a subscriber has at least 64.
pub const CLIENT_PREFIX_IPV6: u32 = 64;
/// Threads that check credentials. One: a check is made to be expensive, and guessing must not cost the
/// server more than one processor and the memory of one check.
pub const CHECKER_THREADS: usize = 1;
/// Good credentials remembered, for each worker and for each rule. 1024 are 32 KiB.
pub const CREDENTIALS_KEPT_MAX: usize = 1024;
/// For how long good credentials are remembered, in seconds.
pub const CREDENTIALS_KEPT_S: u32 = 600;
/// Memory a check by argon2id may take, in KiB: ten times what is recommended (RFC 9106, section 4).
pub const ARGON2_MEMORY_KIB_MAX: u32 = 640 * 1024;
/// Passes a check by argon2id may take: above, it lasts for seconds.
pub const ARGON2_PASSES_MAX: u32 = 32;
/// Highest cost of bcrypt: 15 takes about two seconds, each one more twice as long.
pub const BCRYPT_COST_MAX: u32 = 15;
/// Longest password that is tried against `$apr1$` and `{SHA}`: a thousand rounds of MD5 over a whole field
/// would take a quarter of a second.
pub const OLD_PASSWORD_BYTES_MAX: usize = 256;
/// Longest password that bcrypt hashes whole: the cipher takes 72 bytes of key.
pub const BCRYPT_PASSWORD_BYTES_MAX: usize = 72;
/// Longest file of users in bytes: some ten thousand names.
pub const USERS_FILE_BYTES_MAX: usize = 1024 * 1024;
/// The longest message for syslog; the end of a longer one is cut off. RFC 3164 asks receivers for 1024,
/// which the line of a long request passes; rsyslog and syslog-ng take 8 KiB unless told otherwise.
pub(crate) const SYSLOG_BYTES_MAX: usize = 8 * 1024;

const _: () = assert!(LOADS_AT_ONCE_PER_SITE_MAX <= LOADER_THREADS);
const _: () = assert!(CHECKS_PER_CLIENT_MAX * 4 <= CHECKS_PER_RULE_MAX);
const _: () = assert!(STORE_SHARDS.is_power_of_two());
const _: () = assert!(ENCODING_GAIN_BYTES_MIN < ENCODED_BYTES_MIN);
const _: () = assert!(UNHELD_READ_BYTES_MAX <= HELD_FILE_BYTES_MAX);
const _: () = assert!(WALK_BUDGET_SIXTEENTHS <= 16);

/// Lines of quotes that are kept, per worker: as many as there may be topics unless told otherwise.
pub const QUOTE_LINES_MAX: usize = 100_000;
/// How long a poll waits for an update unless it says otherwise, in seconds.
pub const POLL_WAIT_S: u32 = 30;
/// How long it may ask to wait: proxies close after 60 s.
pub const POLL_WAIT_S_MAX: u32 = 55;
/// Tokens that wait to be checked, each by a request that waits: a check takes some 100 us at most, so about
/// as many as are checked within a patience.
pub const TOKENS_WAITING_MAX: usize = 8192;
/// Those of one client: a quarter, so that one that shows false tokens leaves room for others.
pub const TOKENS_PER_CLIENT_MAX: usize = TOKENS_WAITING_MAX / 4;
/// How often the log says that tokens are refused, for each reason, in seconds: peers choose how many they
/// show.
pub const TOKEN_REFUSAL_TOLD_S: u64 = 10;
/// Shortest token for publishing: as long as the digest of a signature (RFC 7518, section 3.2).
pub const PUBLISH_TOKEN_BYTES_MIN: usize = 32;
/// Longest body of one publication, as a multiple of the longest value: in JSON a byte may take two, and in a
/// form three.
pub const PUBLICATION_BYTES_PART: usize = 3;
/// Beside that: names of topics and the other fields.
pub const PUBLICATION_BYTES_EXTRA: usize = 16 * 1024;
/// Lines of a feed that are with the writer before the feed is not read any more: enough that the writer has
/// work while the next lines come.
pub const FEED_LINES_AHEAD_MAX: usize = 512;
/// Updates that the writer takes at a time: one letter a worker for all of them, and few enough that it sees
/// soon when a worker falls behind.
pub const WRITER_BATCH_MAX: usize = 1024;
/// Bytes of such a batch: what is made of them stands in one letter, and the next publisher waits for it.
pub const WRITER_BATCH_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of values of which forms are made for readers before publications have a turn again, and as many of
/// which codings are made: some 10 ms each. One delivery, and one value, is always made whole.
pub const WRITER_MADE_BYTES: usize = 256 * 1024;
/// Deliveries whose forms wait to be made: what a crowd wants that comes back at once. Each has at most 256
/// forms of 24 bytes, and stands here twice: 12 MiB.
pub const FORMS_WAITING_MAX: usize = 1024;
/// Those of one client: a quarter, so that a client alone does not fill it.
pub const FORMS_PER_CLIENT_MAX: usize = FORMS_WAITING_MAX / 4;
/// Codings of polled values that wait to be made. Beyond, values are sent without.
pub const CODINGS_WAITING_MAX: usize = 256;
/// Those of one client.
pub const CODINGS_PER_CLIENT_MAX: usize = CODINGS_WAITING_MAX / 4;
/// Nothing was sent to a reader for so long: it gets a sign of life. Proxies close after 60 s.
pub const HEARTBEAT_S: u32 = 45;
/// All readers are looked at once in so long: signs of life come so much late at most.
pub const HEARTBEAT_ROUND_S: u32 = 10;
/// Readers looked at before a worker turns to everything else.
pub const WAVE_READERS_MAX: usize = 1024;
/// Sites with live data of their own: each has a thread, and a part in every worker.
pub const LIVE_SITES_MAX: usize = 256;

/// Shortest delivery that is counted, in bytes, in the account of a connection whose peer has not taken it.
pub const LONG_DELIVERY_BYTES_MIN: usize = 16 * 1024;

/// Letters that wait for who follows live data beside the workers: some seconds of a busy hub. What they hold
/// is most often held by topics as well.
pub const FOLLOWED_LETTERS_MAX: usize = 1_024;
/// Prepared answers to polls, per worker and site: what a page shows at once, many times over.
pub const DOCUMENTS_MAX: usize = 4096;
/// Memory of prepared answers to polls, per worker and site.
pub const DOCUMENTS_BYTES_MAX: usize = 32 * 1024 * 1024;
/// A poll waits while the writer makes the difference to what it has of a value up to this long: a client
/// that polls alone would never get one. Of a longer value, which takes longer, the whole is sent at once.
pub const AWAITED_DIFFERENCE_BYTES_MAX: usize = 64 * 1024;
/// A polled value this long is compressed when it is asked for twice; below, one segment holds it anyway.
pub const DOCUMENT_CODED_BYTES_MIN: usize = 1024;
/// Commands of a WebSocket that wait for their turn: those of a few messages. One that waits costs some 100
/// bytes beside its texts, which are no longer than what was sent.
pub const COMMANDS_WAITING_MAX: usize = 1024;
/// Longest time, in seconds, that a message of a WebSocket may take to arrive, with more for what of it is
/// there: about as long as a peer may be silent.
pub const MESSAGE_S_MAX: usize = 45;
/// What a peer sends of a message in a second at least, so that a long one has its time.
pub const MESSAGE_BYTES_PER_S_MIN: usize = 1024;
/// So much of answers to what came on a WebSocket, and no more is looked at before there is room: what came
/// while nothing was sent may be long, and inflated far longer.
pub const SOCKET_ANSWERS_BYTES: usize = 64 * 1024;
/// Most bytes of values in one answer of a channel's history: the worker writes it, and serves nobody else
/// meanwhile.
pub const HISTORY_BYTES_MAX: usize = 64 * 1024;
/// A reader of a stream whose group never holds more than this rests, and has it in no account: a group with
/// a few names, or with the pattern of everything. Another keeps its request, and all is counted.
pub const RESTING_BYTES_MAX: usize = 1024;
/// Shortest time after which a reader that was cut comes back, in milliseconds.
pub const RETRY_MS_MIN: u64 = 1_000;
/// Longest: so many at once come back evenly within it.
pub const RETRY_MS_MAX: u64 = 5_000;
/// Longest time, in seconds, that a reader is asked to stay away when there are as many as may be.
pub const AWAY_S_MAX: u64 = 30;

/// Seconds after which what is used is looked at again, though its changes should be heard of: those of other
/// machines, through mappings, and of mounts are not.
pub(crate) const LOOK_AGAIN_S: u64 = 2;
/// Entries that wait to be looked at again. A look takes microseconds; what finds no room is asked for again.
pub(crate) const LOOKS_QUEUED_MAX: usize = 4_096;

/// Bytes of an answer that are taken off an application for a client that takes them slowly, as long as
/// there is memory for all of them: what most pages have.
pub const PROXY_ANSWER_BYTES_KEPT: usize = 1024 * 1024;
/// Bytes that are taken so where memory is short: as much as a worker sends at a time.
pub const PROXY_ANSWER_BYTES_MIN: usize = 64 * 1024;

/// Part of the links of a worker, and of the line of an application, that one client holds at most while
/// others are there: three more that take as much find room.
pub(crate) const PROXY_CLIENT_PART: u32 = 4;
/// Links that a client may hold in each worker whatever its part is: a browser opens six connections to a
/// site by HTTP/1.1, and two of its tabs may hold a stream of events.
pub(crate) const PROXY_CLIENT_LINKS_MIN: u32 = 8;
/// Requests that a client may have in line whatever its part is. A line may have room for two alone.
pub(crate) const PROXY_CLIENT_LINE_MIN: u32 = 1;
/// Part of the links of a worker that a client does not get if it is the only one: whoever comes next finds
/// room, and a load balancer that is this client loses no more than an eighth.
pub(crate) const PROXY_LINKS_RESERVED_PART: u32 = 8;
/// A part of the links that is kept for requests that take a place: half of what is kept from a client alone,
/// so that the next one finds room for a WebSocket as well.
pub(crate) const PROXY_LINKS_PLACED_PART: u32 = 16;
/// Time for which another client counts as being there, in milliseconds. A client that holds links for long
/// must not have all of them because the others paused; people come back to a page within minutes.
pub(crate) const PROXY_OTHERS_SEEN_MS: u64 = 10 * 60 * 1_000;
/// Time after which a line that was full is one with room again, in milliseconds: as long as clients that
/// were refused are asked to stay away at least.
pub(crate) const PROXY_LINE_CROWDED_MS: u64 = 1_000;
