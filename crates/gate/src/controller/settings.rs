//! What the controller is told once: which signal decides, and at which values.
//!
//! Every value has a default with which the gate works with nothing configured. The pairs are hysteresis: the
//! upper one begins, the lower one ends.

/// Which signal decides that connections are shed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The wait of connections before the server reads from them.
    #[default]
    Queue,
    /// The rule of Yao and Ju (2003): the kernel's share of the processor, and sockets allocated.
    Paper,
    /// Whichever says so.
    Either,
}

/// What the controller is told once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Which signal decides.
    pub policy: Policy,
    /// The wait that is kept while shedding, in nanoseconds.
    pub target_ns: u64,
    /// A predicted wait above this is overload, in nanoseconds.
    pub trigger_ns: u64,
    /// The kernel's share of the processor above which the paper sheds.
    pub cpu_high: f64,
    /// The share below which it stops.
    pub cpu_low: f64,
    /// Sockets above which the paper sheds.
    pub sockets_high: u64,
    /// Sockets below which it stops.
    pub sockets_low: u64,
    /// Processor time one SYN costs the stack, in nanoseconds, until it was measured.
    pub syn_cost_ns: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            policy: Policy::Queue,
            target_ns: 25_000_000,
            trigger_ns: 50_000_000,
            cpu_high: 0.75,
            cpu_low: 0.60,
            sockets_high: 128,
            sockets_low: 102,
            syn_cost_ns: 5_000,
        }
    }
}
