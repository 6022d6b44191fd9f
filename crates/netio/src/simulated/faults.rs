//! What goes wrong, and how often.

/// The farthest a time jump goes.
pub(super) const JUMP_MS_MAX: usize = 3_600_000;
/// Errors for which accepting stops: EMFILE, ENFILE, ENOBUFS, ENOMEM.
pub(super) const ACCEPT_ERRNOS: [i32; 4] = [24, 23, 105, 12];
pub(super) const ENFILE: i32 = 23;
pub(super) const ECONNRESET: i32 = 104;
pub(super) const ECANCELED: i32 = 125;

/// Chances in a thousand, each tried at every opportunity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// A delivery is cut into pieces of 1 to 40 bytes.
    pub short_reads: u32,
    /// Only a part of a send is taken at first.
    pub short_writes: u32,
    /// Something that could be reported now is reported a turn later.
    pub delays: u32,
    /// A peer breaks off.
    pub resets: u32,
    /// No receive buffer is free this turn.
    pub empty_buffers: u32,
    /// Accepting stops for want of descriptors or memory.
    pub accept_stops: u32,
    /// Connecting is refused.
    pub refusals: u32,
    /// Connecting is never answered.
    pub unanswered: u32,
    /// A wake-up without mail.
    pub false_wakes: u32,
    /// Time jumps ahead by up to an hour.
    pub time_jumps: u32,
}

impl Faults {
    /// A perfect world.
    pub const NONE: Self = Self {
        short_reads: 0,
        short_writes: 0,
        delays: 0,
        resets: 0,
        empty_buffers: 0,
        accept_stops: 0,
        refusals: 0,
        unanswered: 0,
        false_wakes: 0,
        time_jumps: 0,
    };
    /// Nothing is lost, but nothing is whole or in time.
    pub const GENTLE: Self = Self {
        short_reads: 300,
        short_writes: 300,
        delays: 200,
        empty_buffers: 100,
        false_wakes: 50,
        ..Self::NONE
    };
    /// Everything at once.
    pub const HOSTILE: Self = Self {
        short_reads: 400,
        short_writes: 400,
        delays: 300,
        resets: 10,
        empty_buffers: 200,
        accept_stops: 100,
        refusals: 50,
        unanswered: 20,
        false_wakes: 100,
        time_jumps: 5,
    };
}
