//! What one tick of the gate sees, and what is ordered for the next: the two ends of the controller.
//!
//! Plain values only. Nothing here decides, reads a sensor or a clock. All counts of an observation are
//! differences since the previous one, but those that say they are gauges. A sensor that is not there is
//! `None`; a value that makes no sense (not a number, a counter that went back) is told as it is: the
//! controller takes no harm from it.

/// Places of the classes in every array of three.
pub const KNOWN: usize = 0;
/// The class of sources whose SYN came again as a kernel repeats it.
pub const VERIFIED: usize = 1;
/// The class of sources of which nothing is known.
pub const UNKNOWN: usize = 2;

/// All that one tick knows of a protected port and of the host it is on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Now, in nanoseconds of a clock that never goes back.
    pub now_ns: u64,
    /// Since the previous observation, in nanoseconds.
    pub interval_ns: u64,
    /// SYN seen at the port, by class.
    pub syn: [u64; 3],
    /// SYN let through, by class.
    pub passed: [u64; 3],
    /// SYN shed, all classes and reasons.
    pub shed: u64,
    /// SYN let through to other ports, which have lines of their own: what is seen of the host is of these
    /// too.
    pub elsewhere: u64,
    /// Prefixes that sent a SYN in the last whole window of fair shares, a gauge.
    pub prefixes: u32,
    /// What the tracker of connections counted, where there is one.
    pub connections: Option<Connections>,
    /// The accept queues of those who listen at the port.
    pub queue: Option<Queue>,
    /// The busiest processor.
    pub cpu: Option<Cpu>,
    /// Share of the busiest processor that receives packets (ksoftirqd and napi threads), 0 to 1.
    pub receive_share: Option<f64>,
    /// Sockets allocated, a gauge.
    pub sockets: Option<u64>,
    /// Memory of the host and of its TCP.
    pub memory: Option<Memory>,
    /// What these dropped: SYN and connections, for there was no place or the server keeps
    /// newcomers out itself; and RST of connections they know nothing of.
    pub listen_drops: Option<u64>,
    /// Connections that wait in truth, when the sockets themselves have just been asked.
    pub sockets_waiting: Option<u64>,
}

/// What the tracker counted since the previous tick. A connection is silent until its first bytes come, and
/// waits from then until the server begins with it: reads from it, or says something itself. Of a server that
/// speaks first all wait from the handshake on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Connections {
    /// Handshakes completed.
    pub established: u64,
    /// Connections that began to wait.
    pub asked: u64,
    /// Connections with which the server began.
    pub begun: u64,
    /// Of these: the server spoke before anything had come.
    pub spoken: u64,
    /// Connections that ended.
    pub ended: u64,
    /// Reads by applications, of all connections.
    pub reads: u64,
    /// Connections that wait, a gauge.
    pub waiting: u64,
    /// Connections on which nothing has come, a gauge.
    pub silent: u64,
    /// The shortest wait among `begun`.
    pub wait_ns_min: Option<u64>,
    /// The median of these.
    pub wait_ns_p50: Option<u64>,
    /// The 99th percentile of these.
    pub wait_ns_p99: Option<u64>,
}

/// The accept queues of all who listen at a port.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Queue {
    /// Listeners there are.
    pub listeners: u32,
    /// Connections in their queues, a gauge.
    pub waiting: u64,
    /// Places in all their queues.
    pub limit: u64,
    /// The fullest queue's filled share, 0 to 1.
    pub fullest_share: f64,
}

/// Shares of the busiest processor's time, over at least 100 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cpu {
    /// System, softirq and irq, 0 to 1.
    pub kernel_share: f64,
    /// User and nice, 0 to 1.
    pub user_share: f64,
}

/// Memory, in shares.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Memory {
    /// Available of all memory, 0 to 1.
    pub available_share: f64,
    /// What TCP uses of what the kernel wants it to use at most (`tcp_mem[1]`), 0 to 1 and above.
    pub tcp_share: f64,
}

/// Whether credits are asked for at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Every SYN passes but those of the deny list.
    #[default]
    Open,
    /// A SYN passes while its class has credits.
    Shedding,
}

/// What the program is to do until the next tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// Whether credits are asked for.
    pub state: State,
    /// Whether sources of which nothing is known get no more than a few credits to be probed with. For those
    /// who show it; the credits say it already.
    pub verify: bool,
    /// Credits to be granted now, by class.
    pub credits: [u64; 3],
    /// Credits a class may have left over at most, those granted now included.
    pub burst: [u64; 3],
    /// Number of the window in which prefixes are counted.
    pub window: u32,
    /// SYN a prefix may send in a window; 0: as many as it likes.
    pub prefix_limit: u32,
    /// Connections that begin to wait within 8.4 ms on one processor by which the daemon is woken; 0: never.
    pub alarm: u64,
    /// Whether the server is known to speak first: then who has completed a handshake waits, whether he has
    /// sent something or not.
    pub speaks_first: bool,
}
