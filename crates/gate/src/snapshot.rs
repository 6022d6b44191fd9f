//! What the gate says of itself, to be shown or kept: one [`Snapshot`], as JSON on a Unix socket.
//!
//! It owns the form of that and the place where the latest one stands. It must never change anything, nor
//! make the loop wait for somebody who looks.

mod seats;
mod status_socket;

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

pub use status_socket::{StatusSocket, StatusSocketError, ask, follow};
pub(crate) use status_socket::{namespace, record};

/// Figures of a moment. Counts are since the start of the daemon.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Version of the program.
    pub version: String,
    /// The daemon.
    pub process_id: u32,
    /// Inode of the network namespace in which it works.
    pub network_namespace: u64,
    /// Since its start.
    pub uptime_seconds: f64,
    /// Protected.
    pub ports: Vec<u16>,
    /// By which signal it decides.
    pub policy: String,
    /// What becomes of a SYN that is shed: drop, reset or cookie.
    pub mode: String,
    /// Whether it only counts what it would shed.
    pub dry_run: bool,
    /// `open` or `shedding`.
    pub state: String,
    /// Whether clients never seen have to show that they wait for an answer.
    pub verify: bool,
    /// Since the last change of state.
    pub state_seconds: f64,
    /// How often the state changed.
    pub changes: u64,
    /// Why it last did.
    pub reason: Option<String>,
    /// What the operator should know of a load that no gate can keep out.
    pub hint: Option<String>,
    /// Figures of each protected interface.
    pub interfaces: Vec<InterfaceFigures>,
    /// Each protected port, which has a line of its own. Beside it stand the figures of all together.
    #[serde(default)]
    pub by_port: Vec<PortFigures>,
    /// SYN segments by class of client.
    pub syn: SynFigures,
    /// Frames other than these.
    pub frames: FrameFigures,
    /// Over the last second.
    pub rates: RateFigures,
    /// What became of connections, where the tracker works.
    pub connections: Option<ConnectionFigures>,
    /// What the controller makes of it.
    pub estimate: EstimateFigures,
    /// The readings of the host.
    pub host: HostFigures,
    /// The daemon itself.
    pub daemon: DaemonFigures,
    /// What is lost here, and why.
    pub notes: Vec<String>,
}

/// Figures of a protected interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct InterfaceFigures {
    /// As it was named to the daemon.
    pub name: String,
    /// `attached`, `down` or `missing`.
    pub state: String,
    /// `native` or `generic`; nothing while it is missing.
    pub way: Option<String>,
    /// For how long the kernel leaves packets lie, in microseconds, while the gate has changed that.
    #[serde(default)]
    pub coalescing_us: Option<u64>,
}

/// A protected port: who comes to it, and what its server does.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PortFigures {
    /// Its number.
    pub port: u16,
    /// `open` or `shedding`.
    pub state: String,
    /// Whether clients never seen have to show that they wait for an answer.
    pub verify: bool,
    /// Since the last change of state.
    pub state_seconds: f64,
    /// How often the state changed.
    pub changes: u64,
    /// Why it last did.
    pub reason: Option<String>,
    /// What the operator should know of its server.
    pub hint: Option<String>,
    /// SYN segments by class of client.
    pub syn: SynFigures,
    /// Over the last second.
    pub rates: RateFigures,
    /// What became of connections, where the tracker works.
    pub connections: Option<ConnectionFigures>,
    /// What the controller makes of it.
    pub estimate: EstimateFigures,
    /// What its listeners say.
    pub queue: QueueFigures,
}

/// Accept queues of a port. What is not to be had is left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueFigures {
    /// How many sockets listen at the port.
    pub listeners: Option<u32>,
    /// Connections in their accept queues.
    pub waiting: Option<u64>,
    /// How many may be there.
    pub limit: Option<u64>,
    /// SYN, connections and stray RST that they threw away.
    pub drops: Option<u64>,
}

/// SYN segments of one class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassFigures {
    /// Let in.
    pub passed: u64,
    /// Let in because the allow list has them.
    pub allowed: u64,
    /// Let in because the daemon was not heard of for a while.
    pub lease_over: u64,
    /// Shed because no credit was left.
    pub shed_credit: u64,
    /// Shed because their prefix had its share.
    pub shed_fair: u64,
    /// Shed because the deny list has them.
    pub shed_deny: u64,
}

impl ClassFigures {
    /// All that came.
    pub fn seen(&self) -> u64 {
        self.let_in() + self.shed()
    }

    /// All that were let in.
    pub fn let_in(&self) -> u64 {
        self.passed + self.allowed + self.lease_over
    }

    /// All that were shed, or would have been.
    pub fn shed(&self) -> u64 {
        self.shed_credit + self.shed_fair + self.shed_deny
    }

    /// Each outcome with its name.
    pub fn named(&self) -> [(&'static str, u64); 6] {
        [
            ("passed", self.passed),
            ("allowed", self.allowed),
            ("lease_over", self.lease_over),
            ("shed_credit", self.shed_credit),
            ("shed_fair", self.shed_fair),
            ("shed_deny", self.shed_deny),
        ]
    }
}

/// SYN segments by class of client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SynFigures {
    /// Of clients that completed a handshake before.
    pub known: ClassFigures,
    /// Of clients that sent it again as somebody does who waits.
    pub verified: ClassFigures,
    /// Of all others.
    pub unknown: ClassFigures,
}

impl SynFigures {
    /// Each class with its name.
    pub fn named(&self) -> [(&'static str, &ClassFigures); 3] {
        [("known", &self.known), ("verified", &self.verified), ("unknown", &self.unknown)]
    }

    /// A sum over the classes.
    pub fn sum(&self, of: fn(&ClassFigures) -> u64) -> u64 {
        self.named().iter().map(|(_, class)| of(class)).sum()
    }
}

/// Frames, all of which were let in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameFigures {
    /// Neither a SYN nor to a protected port.
    pub other: u64,
    /// To protected ports, of at most 128 bytes.
    pub small: u64,
    /// To protected ports, larger.
    pub large: u64,
    /// Pieces of a packet behind its first.
    pub fragments: u64,
    /// Such as no stack sends.
    pub malformed: u64,
    /// SYN segments to protected ports of other hosts, which this one forwards.
    #[serde(default)]
    pub elsewhere: u64,
    /// SYN segments answered by a reset or a cookie.
    pub answered: u64,
    /// SYN segments let in only because it is a dry run.
    pub dry: u64,
}

/// A second's figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RateFigures {
    /// SYN segments that came.
    pub offered_per_s: f64,
    /// SYN segments let in.
    pub passed_per_s: f64,
    /// SYN segments shed.
    pub shed_per_s: f64,
    /// Connections the server began with.
    pub begun_per_s: f64,
}

/// What became of connections.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectionFigures {
    /// Handshakes completed.
    pub established: u64,
    /// Of these, the server has begun with so many: it read from them, or spoke first.
    pub begun: u64,
    /// The server spoke first.
    #[serde(default)]
    pub spoken: u64,
    /// Connections that have ended.
    pub ended: u64,
    /// Ended before the server began.
    pub abandoned: u64,
    /// How often the server read from connections.
    pub reads: u64,
    /// How many wait now: they have sent something, and the server has not begun.
    pub waiting: u64,
    /// On how many nothing has come yet; they do not wait.
    #[serde(default)]
    pub silent: u64,
    /// How long those begun have waited: counts by quarters of an octave, the first below 16.4 us.
    pub waits: Vec<u64>,
    /// Median of the last second's, in milliseconds.
    pub wait_p50_ms: Option<f64>,
    /// 99th percentile of the last second's, in milliseconds.
    pub wait_p99_ms: Option<f64>,
}

/// What the controller makes of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct EstimateFigures {
    /// Connections the server can begin in a second, as far as it has shown.
    pub served_per_s: f64,
    /// How long one that comes now will wait.
    pub wait_ms: f64,
    /// Which part of a processor the SYN segments take.
    pub syn_share: f64,
    /// Which part of the SYN let in become connections that ask for something.
    #[serde(default)]
    pub asking_share: f64,
    /// Whether the server speaks before its clients do.
    #[serde(default)]
    pub speaks_first: bool,
    /// Whether the accept queue is so short that the gate stands aside.
    #[serde(default)]
    pub small_queue: bool,
    /// Whether a flood is left to the kernel's cookies, for it hinders nobody.
    #[serde(default)]
    pub flood_passed: bool,
}

/// What sensors say. What is not to be had is left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct HostFigures {
    /// Listeners at protected ports.
    pub listeners: Option<u32>,
    /// Connections in their accept queues.
    pub accept_queue: Option<u64>,
    /// How many may be there.
    pub accept_queue_limit: Option<u64>,
    /// The kernel's part of the processor where it is largest.
    pub kernel_share: Option<f64>,
    /// What programs have of the same processor.
    pub user_share: Option<f64>,
    /// What the busiest thread of reception takes of a processor.
    pub receive_share: Option<f64>,
    /// TCP sockets in use.
    pub sockets: Option<u64>,
    /// Memory that can still be had, of all.
    pub memory_available_share: Option<f64>,
    /// Memory of TCP, of what the kernel wants it to have.
    pub tcp_memory_share: Option<f64>,
    /// SYN, connections and stray RST that the protected listeners threw away.
    pub listen_drops: Option<u64>,
}

/// The daemon itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct DaemonFigures {
    /// Turns of its loop.
    pub ticks: u64,
    /// Turns that came more than a turn too late.
    pub late_ticks: u64,
    /// Processor time of the loop.
    pub busy_seconds: f64,
    /// Whether it runs before ordinary threads.
    pub runs_first: bool,
}

/// The place where the latest snapshot stands.
#[derive(Debug, Clone, Default)]
pub struct Board(Arc<Mutex<Snapshot>>);

impl Board {
    /// The snapshot that was put up last.
    pub fn latest(&self) -> Snapshot {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A newer one.
    pub fn set(&self, snapshot: Snapshot) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_the_same_after_json() {
        let class = ClassFigures {
            passed: 1,
            allowed: 2,
            lease_over: 4,
            shed_credit: 8,
            shed_fair: 16,
            shed_deny: 32,
        };
        assert_eq!((class.seen(), class.let_in(), class.shed()), (63, 7, 56));
        assert_eq!(class.named().iter().map(|(_, count)| count).sum::<u64>(), class.seen());
        let syn = SynFigures { known: class, ..SynFigures::default() };
        let board = Board::default();
        board.set(Snapshot {
            syn,
            state: "open".into(),
            connections: Some(ConnectionFigures::default()),
            ..Snapshot::default()
        });
        let text = serde_json::to_string(&board.latest()).unwrap();
        assert_eq!(serde_json::from_str::<Snapshot>(&text).unwrap(), board.latest());
        assert_eq!(board.latest().syn.sum(ClassFigures::shed), 56);
    }
}
