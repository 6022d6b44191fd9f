//! Every bound of the fabric, with its reason.

/// Nodes whose load is known: as many as a cluster that was thought of has.
pub const NODES_MAX: usize = 256;

/// How often load is told.
pub const REPORT_MS: u64 = 1_000;

/// Numbers of reports that a second has, of which one is used. So the first report after a restart bears a
/// greater number than the last one before it, and counts at once.
pub const REPORTS_PER_SECOND: u32 = 4;

/// A node that was silent for so long is shown as silent: five reports were lost.
pub const SILENT_MS: u64 = 5_000;

/// A node that was silent for so long is forgotten. What it has published stays.
pub const FORGOTTEN_MS: u64 = 60_000;

/// Longest report: 256 sites (20 bytes each), load and a version fit.
pub const REPORT_BYTES_MAX: usize = 8 << 10;

/// Longest version of a program in a report.
pub const VERSION_BYTES_MAX: usize = 32;

/// Records are gathered to so many bytes before they are told: with the heads before them they fit one frame
/// of every Ethernet.
pub const GATHERED_BYTES: usize = 1_300;

/// Longest record that is told, and so longest value, roughly. A receiver's queue holds 208 KiB, and a
/// message of 90 frames is lost as a whole with any of them.
pub const RECORD_BYTES_MAX: usize = 128 << 10;

/// Longest name of a topic, as in live data.
pub const TOPIC_BYTES_MAX: usize = 256;

/// Longest name of a site: that of a host (RFC 1035).
pub const SITE_BYTES_MAX: usize = 255;

/// Topics of one record: as many as one publication of live data may have. What had more could not be told.
pub const TOPICS_PER_RECORD_MAX: usize = 100;

/// How far a stamp may be ahead of the own clock: clocks of one LAN agree within seconds, and a topic whose
/// stamp is far ahead could not be published to by anybody else until then.
pub const AHEAD_MS_MAX: u64 = 60_000;

/// How often a stamp that was refused is told of.
pub const TOLD_MS: u64 = 60_000;

/// How long the end of a topic is remembered: a node that was away for longer may bring the value back.
pub const MARK_MS: u64 = 600_000;

/// Ends of a site's topics that are remembered: some 8 MiB with names of ordinary length, and the updates
/// that say so.
pub const MARKS_MAX: usize = 16_384;

/// Bytes of records in one page of an answer: a page is two dozen frames, and a lost one costs little.
pub const PAGE_BYTES: usize = 32 << 10;

/// Topics looked at for one page: a fraction of a millisecond.
pub const PAGE_TOPICS_MAX: usize = 4_096;

/// Digests by which a question tells what is known: it fits one frame, and a node that lacks one update is
/// told a 256th of all topics.
pub const BUCKETS: usize = 256;

/// How long a page is waited for.
pub const PATIENCE_US: u64 = 2_000_000;

/// Nodes that are asked at a time: what one answers, the others need not.
pub const ASKING_MAX: usize = 4;

/// Questions in a second, to all nodes together: pages of some 16 MiB.
pub const QUESTIONS_PER_SECOND_MAX: u32 = 500;

/// Answers in a second: two nodes that start at once are answered as fast as they ask, more take turns.
pub const ANSWERS_PER_SECOND_MAX: u32 = 1_000;

/// Bytes of answers in a second: twice what one node asks for. Whoever is asked in another's name, where
/// there are no keys, floods that one with no more.
pub const ANSWERED_BYTES_PER_SECOND_MAX: u32 = 32 << 20;

/// Pages of one node's values: 512 MiB of them, twice what live data may hold unless told otherwise.
pub const PAGES_MAX: u32 = 16_384;

/// The least time between two times a node is asked, doubled while that brings nothing.
pub const WAIT_MS_MIN: u64 = 100;

/// The longest time between them.
pub const WAIT_MS_MAX: u64 = 10_000;

/// How many times as long as it took to ask a node in vain it is left alone: what cannot be taken here, for
/// its size or for clocks that differ, takes a tenth of the time at most.
pub const VAIN_TIMES: u64 = 10;

/// The longest time that it is left alone for that.
pub const VAIN_MS_MAX: u64 = 60_000;

/// Reports in a row that differ before a node is asked for that: what is under way makes two differ.
pub const DIFFERING_MAX: u8 = 3;

/// How far behind a message may come and still be one that was overtaken on its way.
pub const OVERTAKEN_MAX: u64 = 64;

/// How long values of senders are kept in order: then any is taken.
pub const COLLECTED_MS: u64 = FORGOTTEN_MS;

const _: () = assert!(GATHERED_BYTES + 24 + 40 <= 1_500);
const _: () = assert!(WAIT_MS_MIN < WAIT_MS_MAX && SILENT_MS < FORGOTTEN_MS);
