//! Every limit of the engine, with its reason.

/// Up to this many bytes a body is copied behind its head, which makes one plain send of both; above, the
/// shared bytes are sent where they stand. Copying 16 KiB costs less than the kernel's work on a second
/// buffer.
pub(crate) const COPIED_BYTES_MAX: usize = 16 * 1024;
/// Prepared blocks of at least this size are sent with their beginning from where both stand, once asked for
/// twice in a second: of smaller ones many pipelined answers go out in one send, for which copying is
/// cheaper.
pub(crate) const RENDERED_BYTES_MIN: usize = 2 * 1024;
/// Room for status line, Server and Date.
pub(crate) const BEGINNING_BYTES: usize = 128;
/// Answers a worker keeps so: with their blocks at most 2 MiB, enough for what a crowd asks for at once.
pub(crate) const RENDERED_COUNT: usize = 64;
/// Answers waiting to be sent on one connection, shared bytes included, above which no further pipelined
/// request is looked at: enough to fill any congestion window in one turn.
pub(crate) const OUTGOING_BYTES_MAX: u64 = 256 * 1024;
/// Of them, what was written for the connection alone: many pipelined answers in one send, and little enough
/// that a client that never reads costs little.
pub(crate) const WRITTEN_BYTES_MAX: usize = 16 * 1024;
/// [`WRITTEN_BYTES_MAX`] of a connection whose requests are ahead of what it reads, and of all connections
/// when memory is tight: as much as two segments carry.
pub(crate) const BEHIND_BYTES_MAX: usize = 3 * 1024;
/// So much of a body that goes on may stand to be sent before its handler is told to stop: what a connection
/// carries in flight to a peer that is near, while the next pieces are made.
pub(crate) const OPEN_ROOM_BYTES: u64 = 64 * 1024;
/// Room for a body that goes on, which a container gets at once when there is more of that than of a head:
/// what may stand, and a piece that begins below that. Doubling instead would move it, beyond what the
/// allocator keeps.
pub(crate) const STREAMED_BYTES: usize = OPEN_ROOM_BYTES as usize + 8 * 1024;
/// An answer whose handler has pushed so much beyond that is given up.
pub(crate) const OPEN_BYTES_MAX: u64 = OUTGOING_BYTES_MAX;
/// So much of an answer that goes on in small pieces may stand in the kernel unsent, where its handler asks
/// for that: some dozens of updates, and a sixteenth of what others have.
pub(crate) const OPEN_UNSENT_BYTES: u32 = 16 * 1024;
/// After so long, or the time of a send if that is longer, it is looked whether the peer of such an answer
/// has acknowledged what was sent; after as long again it is given up if it has acknowledged nothing more.
/// With a sign of life every 45 to 55 s it is found within three of them.
pub(crate) const OPEN_GONE_MS: u32 = 50_000;
/// A send that is not over after one part in so many of its deadline is looked at for the first time: early
/// enough that what the peer takes afterwards is known at the deadline, and late enough that few are.
pub(crate) const LOOK_PART: u32 = 8;
/// To so many bytes it is noted what a peer has acknowledged: less makes no progress in any time that is
/// waited for, and two bytes of a slot tell a megabyte so.
pub(crate) const MARK_BYTES: u64 = 16;
/// Where nothing tells what a peer takes of what the kernel has taken for it, a send has so much longer: what
/// waits unsent before the kernel reports room, at 100 bytes a second.
pub(crate) const UNTOLD_MS: u64 = 128 * 1024 * 10;
/// So much that a peer sends behind its request is thrown away while it is only to listen, and no more: a
/// ping of some client, or the next request of one that does not know what a stream is.
pub(crate) const IGNORED_BYTES_MAX: u64 = 64 * 1024;
/// Exchanges woken by each other are gone through so often in one turn; what is left then waits for the next.
pub(crate) const WAKE_ROUNDS_MAX: usize = 16;
/// What one event may add to what a connection holds: input that is kept as a whole, and a container with a
/// last answer that was copied.
pub(crate) const EVENT_BYTES_MAX: u64 = 128 * 1024;
/// The least that the connections of a worker may be allowed to hold: room for some events.
pub(crate) const BUDGET_BYTES_MIN: u64 = 8 * EVENT_BYTES_MAX;
/// Connections may hold one part in so many of the memory unless somebody says otherwise: the rest is for
/// content, the sockets of the kernel and others.
pub(crate) const BUDGET_PART: u64 = 8;
/// Connections closed at once when there is too much to hold: an eighth of a budget of 16 MiB by those that
/// hold 8 KiB.
pub(crate) const GIVING_WAY_MAX: usize = 256;
/// Memory is given back so long after there was much: bursts of one crowd come closer to each other.
pub(crate) const QUIET_MS: u64 = 5_000;
/// If there was so much: less is not worth a wake-up.
pub(crate) const QUIET_PEAK_BYTES_MIN: u64 = 1024 * 1024;
/// Containers kept for the next answers: as many as one turn usually fills.
pub(crate) const SPARE_OUTGOINGS_MAX: usize = 256;
/// Memory they may keep: 8 KiB each.
pub(crate) const SPARE_BYTES_MAX: usize = SPARE_OUTGOINGS_MAX * 8 * 1024;
/// A wheel's node may come up before the keep-alive time is over by one part in so many of it: a quarter is
/// few enough wake-ups for nothing, and so far apart that moving the node costs a busy connection nothing.
pub(crate) const KEEP_ALIVE_EARLY_PART: u32 = 4;
/// How long accepting rests after the kernel had no descriptor or memory for a connection: long enough not to
/// spin, short enough not to be noticed once there is room.
pub(crate) const ACCEPT_PAUSE_MS: u64 = 100;
/// A worker whose turns are longer than this may have bytes before it that came long ago: a backend reports
/// some thousand things a turn at most, each of which costs more than two microseconds.
pub(crate) const DRAIN_TURN_MS_MAX: u64 = 10;
/// How long a queue must have been empty since a listener began to drop SYN segments: clients that were about
/// to connect have so long for the rest of their handshake, and for their first bytes, before which the
/// kernel keeps them to itself. Half a second is a slow way there and back, and what an idle connection has
/// at the end too.
pub(crate) const LEAVE_QUIET_MS: u64 = 500;
/// A queue of so many may have been full a moment ago: a worker that keeps up has fewer.
pub(crate) const LEAVE_CROWD: u32 = 16;
/// How long it must then have been empty: who finds a queue full sends again after 200, 400, 800 and 1600 ms.
pub(crate) const LEAVE_CROWD_QUIET_MS: u64 = 3_000;
/// How long a listener that is given up goes on accepting at most, for kernels that let newcomers in all the
/// same: a busy worker may need seconds for a full queue.
pub(crate) const LEAVE_MS_MAX: u64 = 30_000;
/// How soon its queue is looked at again: new connections end the wait by themselves, so this is only for the
/// last look.
pub(crate) const LEAVE_LOOK_MS: u64 = 10;
/// How long a port may still be held by a server that was just killed: the kernel takes the rings of io_uring
/// apart behind its back, in some ten milliseconds, and their listening sockets with them; on a busy host it
/// takes seconds. nginx tries as long.
pub(crate) const PORT_PATIENCE_MS: u64 = 2_500;
/// User memory of one idle connection: the wheel's node, the backend's state and the connection itself.
pub(crate) const CONNECTION_BYTES_MAX: usize = 128;
/// Connections the kernel holds for us before we accept them; it lowers this to `net.core.somaxconn`.
pub(crate) const BACKLOG_CONNECTIONS_MAX: i32 = 4096;
/// Descriptors kept back for files being sent, folders being watched, and the server's own.
pub(crate) const DESCRIPTORS_RESERVED: u64 = 512;
/// But never more than one part in so many of what there are: connections need some too.
pub(crate) const DESCRIPTORS_RESERVED_PART: u64 = 2;
/// The part of the descriptors that may be rings, as a divisor. Each ring serves as many connections as there
/// are descriptors.
pub(crate) const RINGS_PART: u64 = 8;
/// What the kernel spends on one idle TCP connection, in bytes: about 4 KiB on Linux 6.x.
pub(crate) const SOCKET_MEMORY_BYTES: u64 = 4096;
/// Connections may take one part in so many of the memory when nothing else limits them.
pub(crate) const SOCKET_MEMORY_SHARE: u64 = 4;
/// Tables of connections may take one part in so many of what the limits of the process let it map: threads,
/// rings and content need the rest.
pub(crate) const TABLES_PART: u64 = 16;
/// Most connections of one process: more than a worker's table can name is a mistake in the settings.
pub(crate) const CONNECTIONS_MAX: u64 = 1 << 20;
/// Buckets of seven clients each in the table of clients: 2 MiB for 114 000 clients that are connected or
/// have asked within a second, made only if clients are limited.
pub(crate) const CLIENT_BUCKETS_COUNT: usize = 1 << 14;
/// How often a place in the table of clients is tried for before it is given up: another worker is in the way
/// for some ten instructions, unless it was interrupted just then, which is not worth waiting for.
pub(crate) const CLIENT_ATTEMPTS_MAX: u32 = 64;

/// Plain bytes of an answer that are sealed at a time: four records, enough to fill the congestion window of
/// a connection that is near while the next piece is made, and all that a slow reader holds of a large
/// answer.
pub(crate) const PIECE_BYTES_MAX: usize = 64 * 1024;
/// [`PIECE_BYTES_MAX`] while memory is tight: one record.
pub(crate) const PIECE_TIGHT_BYTES_MAX: usize = 16 * 1024;
/// Slices sealed in one step: the heads and bodies of a page's pipelined requests.
pub(crate) const DRAWN_SLICES_MAX: usize = 16;
/// Sealed bytes of the protocol itself (key updates, alerts) that may wait for a peer to read them: a hundred
/// key updates. Whoever asks for more and reads nothing is closed.
pub(crate) const OWED_BYTES_MAX: usize = 4 * 1024;
/// Handshakes at work of one worker: at 12 KiB each 12 MiB, and a tenth of a second of a processor's time.
pub(crate) const HANDSHAKES_MAX: u32 = 1024;
/// Secured connections of one worker that keep their keys at hand: about 2 MiB, and those of a page that is
/// being loaded.
pub(crate) const AWAKE_MAX: usize = 1024;
/// A connection keeps its keys at hand for so long after it was used: the requests of a page come within it.
pub(crate) const AWAKE_MS: u64 = 1_000;
/// Connections looked at in one step to find one that may sleep.
pub(crate) const LOOKS_MAX: usize = 16;
/// Connections laid to sleep in one turn: some ten microseconds.
pub(crate) const ASLEEP_A_TURN_MAX: usize = 64;
/// A file that nobody has read ahead yet, because that thread has too much to do, is tried again after so
/// long.
pub(crate) const COLD_RETRY_MS: u64 = 2;

const _: () = assert!(PIECE_TIGHT_BYTES_MAX < PIECE_BYTES_MAX);
const _: () = assert!(RENDERED_BYTES_MIN < COPIED_BYTES_MAX);
const _: () = assert!(COPIED_BYTES_MAX as u64 * 4 <= OUTGOING_BYTES_MAX);
const _: () = assert!(BEHIND_BYTES_MAX < WRITTEN_BYTES_MAX);
/// Reserved connections, 1 % of all, unless somebody says otherwise: at least enough that a burst is told to
/// come back, at most what a worker answers within milliseconds.
pub(crate) const RESERVED_CONNECTIONS_MIN: u64 = 8;
/// See [`RESERVED_CONNECTIONS_MIN`].
pub(crate) const RESERVED_CONNECTIONS_MAX: u64 = 256;
/// Never more than one part in so many is reserved: slots are for serving.
pub(crate) const RESERVED_PART_MIN: u64 = 8;
/// Idle time that is left to a connection when the table is full: a page's next request comes within it.
pub(crate) const KEEP_ALIVE_CROWDED_MS: u32 = 1_000;
/// A connection is idle enough to be closed for another after so long; a page being loaded pauses for less.
pub(crate) const EVICTED_IDLE_MS_MIN: u64 = 1_000;
/// Slots looked at for one connection to close: the oldest idle one of 16 is among the oldest twelfth of all
/// in three of four cases, and to look at them costs a fraction of accepting.
pub(crate) const EVICTION_SLOTS_COUNT: u32 = 16;
/// So many times as many are looked at, and one of each is closed, when the tables of HTTP/2 hold too much: a
/// newcomer adds no more than one of them holds.
pub(crate) const FIELDS_LOOKS_MAX: usize = 8;
/// Accepting begins anew when one in ten slots is free, or so many: enough that it does not stop again at
/// once.
pub(crate) const ROOM_CONNECTIONS_MAX: u32 = 64;
/// How long accepting rests at most when every slot is taken: then it is tried whether that is still so.
pub(crate) const FULL_PAUSE_MS: u64 = 1_000;
/// Time for everything about a connection that is to be turned away: a head, an answer, a farewell.
pub(crate) const TURNED_AWAY_MS: u32 = 2_000;
/// The clock is read again within a turn after so many completions: 20 ns among some 100 us.
pub(crate) const STEP_COMPLETIONS_MAX: u32 = 32;
/// Or, if requests are slow, after about one part in so many of the patience.
pub(crate) const PATIENCE_STEP_PART: u64 = 16;
/// So many connections may always wait in the kernel's queue: a browser opens six at once.
pub(crate) const VALVE_WAITING_MIN: u64 = 16;
/// The kernel's queue is looked at this often while there is no pressure.
pub(crate) const VALVE_LOOK_MS: u64 = 100;
/// Or after so many connections in one turn: a microsecond among some 200.
pub(crate) const VALVE_CROWD: u32 = 16;
/// Newcomers are read from in one turn for so much work: a tenth of what people find quick, and hundreds of
/// prepared answers, so that calls of the kernel are still shared.
pub(crate) const NEWCOMERS_NS: u64 = 2_000_000;
/// But so many at least, however slow the work: fewer would cost a call of the kernel each.
pub(crate) const NEWCOMERS_MIN: u64 = 4;
/// Pressure is over when newcomers had no reason to be kept out for so long.
pub(crate) const VALVE_CALM_MS: u64 = 1_000;
/// The operator is told something once in so long.
pub(crate) const COMPLAINT_MS: u64 = 1_000;
/// Lines for people that wait to be written: each is said once a second at most, by a handful of places, so
/// minutes of a terminal that hangs.
pub(crate) const LINES_WAITING_MAX: usize = 256;
