//! What the gate knows in one tick, and what it orders for the next.
//!
//! It owns the words sensors, controller and program speak with each other. It must never compute.

/// Everything one tick knows. Differences are since the tick before.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observation {
    /// When, by the monotonic clock.
    pub now_ns: u64,
    /// Since the tick before.
    pub interval_ns: u64,
    /// SYN segments that came: of known, verified and unknown clients.
    pub syn: [u64; 3],
    /// Those of them that were let in.
    pub passed: [u64; 3],
    /// Those that were not.
    pub shed: u64,
    /// How many prefixes sent any.
    pub prefixes: u32,
    /// What became of connections; needs the tracker.
    pub connections: Option<Connections>,
    /// The queues of protected listeners.
    pub queue: Option<Queue>,
    /// The busiest processor.
    pub cpu: Option<Cpu>,
    /// What ksoftirqd and NAPI threads take of the busiest processor.
    pub receive_share: Option<f64>,
    /// Sockets in use.
    pub sockets: Option<u64>,
    /// Memory of the host, and of TCP.
    pub memory: Option<Memory>,
    /// Connections the kernel threw away at listeners.
    pub listen_drops: Option<u64>,
}

/// What became of connections to protected ports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Connections {
    /// Handshakes completed.
    pub established: u64,
    /// Connections the server read from for the first time.
    pub begun: u64,
    /// Connections that ended.
    pub ended: u64,
    /// Reads by the server.
    pub reads: u64,
    /// How many wait now to be read from for the first time.
    pub waiting: u64,
    /// The shortest wait of those begun.
    pub wait_ns_min: Option<u64>,
    /// Half of those begun waited at most so long.
    pub wait_ns_p50: Option<u64>,
    /// 99 of 100 of those begun waited at most so long.
    pub wait_ns_p99: Option<u64>,
}

/// The accept queues of protected listeners.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Queue {
    /// How many listeners there are.
    pub listeners: u32,
    /// Connections waiting to be accepted.
    pub waiting: u64,
    /// How many may wait.
    pub limit: u64,
    /// How full the fullest queue is, 1 being full.
    pub fullest_share: f64,
}

/// The busiest processor, over at least 100 ms.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cpu {
    /// Time in the kernel: system, softirq, irq.
    pub kernel_share: f64,
    /// Time in programs.
    pub user_share: f64,
}

/// Memory, as shares of 1.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Memory {
    /// What can still be had.
    pub available_share: f64,
    /// What TCP has, of the middle figure of `tcp_mem`.
    pub tcp_share: f64,
}

/// Whether connections are shed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum State {
    /// All come in.
    #[default]
    Open,
    /// As many come in as there are credits.
    Shedding,
}

/// What the program is told for the coming interval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Orders {
    /// Whether connections are shed.
    pub state: State,
    /// Whether a SYN seen twice is of a class of its own.
    pub verify: bool,
    /// Credits granted for the coming interval: to known, verified and unknown clients.
    pub credits: [u64; 3],
    /// How many unspent credits may be left over.
    pub burst: [u64; 3],
    /// The number of the window in which a prefix is counted.
    pub window: u32,
    /// How many of one prefix may come in a window; 0: any number.
    pub prefix_limit: u32,
}
