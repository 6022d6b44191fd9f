//! Every limit of the protocol, with its reason.

/// Longest request line. 8 KiB is what other servers take; longer ones get 414.
pub const REQUEST_LINE_BYTES_MAX: usize = 8 * 1024;
/// Longest head, request line included: a proxy's cookies fit several times; longer ones get 431.
pub const HEAD_BYTES_MAX: usize = 32 * 1024;
/// Most header fields of one request: browsers send about 20; more than 100 get 431.
pub const FIELDS_MAX: usize = 100;
/// Most bytes of a request body that are read and thrown away to keep a connection. Larger bodies end it.
pub const DISCARDED_BODY_BYTES_MAX: u64 = 1024 * 1024;
/// Longest line of a chunk's size with its extensions: enough for any honest one.
pub const CHUNK_LINE_BYTES_MAX: usize = 256;
/// Most bytes of a chunked body's trailer section.
pub const TRAILER_BYTES_MAX: usize = 8 * 1024;
/// Most bytes of input a session keeps while it waits (a partial head, or pipelined requests behind an
/// answer that is not ready): one full head and one receive buffer more.
pub const SPILL_BYTES_MAX: usize = HEAD_BYTES_MAX + 16 * 1024;
/// Most bytes of an answer's head that a client reads. Servers send less than 2 KiB as a rule, but policies
/// and cookies grow beyond what a server takes of a client.
pub const ANSWER_HEAD_BYTES_MAX: usize = 128 * 1024;
/// Most fields of an answer that a client reads; for each there is room of 32 bytes while the head is read.
pub const ANSWER_FIELDS_MAX: usize = 1024;
/// Most bytes of an answer's head that a proxy reads: it holds them until the head is complete, for as many
/// connections as it has to applications. Applications send less than 4 KiB as a rule.
pub const RELAYED_HEAD_BYTES_MAX: usize = 64 * 1024;
/// Most fields of an answer that a proxy reads: several times what the largest set of cookies and links has.
pub const RELAYED_FIELDS_MAX: usize = 256;
/// Most bytes that are kept of what a FastCGI application says of its errors, in one request: some lines for
/// a log.
pub const FASTCGI_ERRORS_BYTES_MAX: usize = 4 * 1024;
/// Most fields that Connection may name, of a request or an answer that is passed on: each is looked for
/// among all fields. Honest peers name two.
pub const NAMED_FIELDS_MAX: usize = 16;
/// Most proxies that a request may have come through (Via): a way has two or three.
pub const HOPS_MAX: usize = 16;
/// Most interim answers (100 to 199) before the final one: honest servers send one or two.
pub const INTERIM_ANSWERS_MAX: u8 = 16;
/// Longest header of PROXY protocol version 1, CRLF included (proxy-protocol.txt, section 2.1).
pub const PROXY_LINE_BYTES_MAX: usize = 107;
/// Longest header of PROXY protocol version 2: addresses of Unix sockets and 3 KiB of further fields, such as
/// the names in a client's certificate. Without fields a proxy sends at most 232 bytes.
pub const PROXY_V2_BYTES_MAX: usize = 4096;
/// Longest event that is read from a stream: values of 16 MiB, the most a topic may be set to, in base64, and
/// what stands around them.
pub const READ_EVENT_BYTES_MAX: usize = 24 * 1024 * 1024;
/// Longest payload of a control frame (RFC 6455, section 5.5).
pub const CONTROL_BYTES_MAX: usize = 125;
/// Longest message that a client of a WebSocket may send unless told otherwise: commands are short, and what
/// is half received is held.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Most frames of one message of a WebSocket that carry nothing: they are allowed, and no client needs them
/// but to begin and to end a message.
pub const EMPTY_FRAMES_MAX: u32 = 1024;
/// Longest `Sec-WebSocket-Extensions` that is read: browsers send 50 bytes. What is longer is not accepted.
pub const EXTENSIONS_BYTES_MAX: usize = 1024;
/// Longest frame of HTTP/2 that is taken: the least that RFC 9113, section 6.5.2, allows to ask for. It is
/// what a connection may make us keep of one that has not come as a whole.
pub const FRAME_BYTES_MAX: usize = 16 * 1024;
/// Most bytes of a block of fields as it comes, all its frames together: an honest one has less than the head
/// it stands for.
pub const BLOCK_BYTES_MAX: usize = HEAD_BYTES_MAX;
/// Most frames of one block of fields: two full ones make the largest block (CVE-2024-27316).
pub const BLOCK_FRAMES_MAX: u8 = 8;
/// Most bytes of fields, as [`HEAD_BYTES_MAX`] counts them, that are read of a block whose request is refused
/// for its size already. Reading on keeps the connection; what is longer ends it.
pub const DECODED_BYTES_MAX: usize = 4 * HEAD_BYTES_MAX;
/// Size of a connection's table of fields: what a peer may use before it knows our settings (RFC 9113,
/// section 6.5.2).
pub const FIELD_TABLE_BYTES_MAX: usize = 4096;
/// Most bytes of fields that all tables of a worker hold together: those of 16 000 browsers none of which is
/// like another.
pub const INTERNED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Above this connections give way, so that none that comes finds the bound above.
pub const INTERNED_BYTES_CROWDED: usize = INTERNED_BYTES_MAX / 4 * 3;
/// Most requests of one connection that wait at a time: what RFC 9113, section 6.5.2, recommends at least.
pub const STREAMS_MAX: usize = 100;
/// From this number of a stream on a connection is left: its numbers end at 2^31 - 1 (RFC 9113, section
/// 5.1.1), and some hundred requests may be on their way until the client knows.
pub const STREAM_NUMBER_LEAVE: u32 = 0x7fff_f000;
/// Streams that we have ended before the peer did, remembered per connection by their numbers: at least as
/// many as a peer that does not know it yet may hold to be open.
pub const ENDED_STREAMS_MAX: usize = STREAMS_MAX + 28;
/// How much of a body a peer may send before it is told to go on, of a stream: the size it begins with (RFC
/// 9113, section 6.9.2).
pub const WINDOW_BYTES: u32 = 65_535;
/// The shortest frame of a WebSocket that a client sends: two bytes and a mask. DATA of fewer bytes are odd
/// in a tunnel too.
pub const MASKED_FRAME_BYTES_MIN: usize = 6;
/// As [`WINDOW_BYTES`], of a connection, and of a stream whose body is wanted: 5 MB/s over a way of 50 ms.
/// All that is held of the bodies of a connection is less.
pub const BODY_WINDOW_BYTES: u32 = 256 * 1024;
/// So much of a body that comes behind its answer is taken and thrown away before the peer is told to send no
/// more: a form, or what was on its way. A client that is told so in one breath with the answer may lose it.
pub const LATE_BODY_BYTES_MAX: u32 = 64 * 1024;
/// And for so long, in milliseconds.
pub const LATE_BODY_MS: u64 = 1_000;
/// So much of a blocked answer has to be taken before the peer is given as long again.
pub const TAKEN_BYTES_MIN: u32 = 1024;

const _: () = assert!(REQUEST_LINE_BYTES_MAX < HEAD_BYTES_MAX);
const _: () = assert!(HEAD_BYTES_MAX < SPILL_BYTES_MAX);
const _: () = assert!(BLOCK_BYTES_MAX >= FRAME_BYTES_MAX && DECODED_BYTES_MAX > HEAD_BYTES_MAX);
const _: () = assert!(BODY_WINDOW_BYTES > WINDOW_BYTES && ENDED_STREAMS_MAX > STREAMS_MAX);
