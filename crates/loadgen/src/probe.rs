//! The server's side while it is under load: processors, packets, sockets, accept queue, its process.
//!
//! It owns open files of `/proc` and a netlink socket. It sees this machine only, and must never take the
//! place of what the client counts. What cannot be read is said once and left out; the rest goes on. Order:
//! [`ServerProbe::open`] once, [`ServerProbe::sample`] whenever a step of the run ends,
//! [`ServerProbe::take_faults`] after it.
//!
//! A sample costs about 0.13 ms of processor time, nearly all of it the kernel's for writing its tables as
//! text: every 100 ms that is 0.13 % of a processor. For shares of processors 100 ms is also the finest step
//! that means something, see [`Shares`]. The cost does not depend on the number of connections; each thread
//! of a process that is followed adds 0.1 us.

mod network;
mod process;
mod processors;
mod watched;

use serde::Serialize;
use staunch_netio::host::sock_diag::{self, SockDiag};

pub use network::{ListenEvents, Segments, Sockets};
pub use process::Process;
pub use processors::{Processor, Processors, Shares, Softnet};

use crate::fault::Fault;
use process::Followed;
use processors::{SoftnetLine, TimesLine};
use watched::Watched;

/// What to look at besides the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProbePlan {
    /// The server's process. Its network namespace is looked at then, instead of ours.
    pub pid: Option<u32>,
    /// The TCP port whose accept queues are looked at, whoever listens there.
    pub port: Option<u16>,
}

/// The server's side at one moment. What happens is counted since the sample before (the first: since the
/// probe was opened); what is, is as it is. `None`: not asked for, or not readable.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Sample {
    /// The moment, on the caller's clock.
    pub at_ns: u64,
    /// Time since the sample before; `None` in the first.
    pub span_ns: Option<u64>,
    /// Processor time by kind; `None` also when not a tick has passed.
    pub processors: Option<Processors>,
    /// Runs of the softirq that receives packets.
    pub net_rx_softirqs: Option<u64>,
    /// Packets those runs took in.
    pub softnet: Option<Softnet>,
    /// Sockets now.
    pub sockets: Option<Sockets>,
    /// Connections that were lost before they were accepted.
    pub listen_events: Option<ListenEvents>,
    /// Segments and connections.
    pub segments: Option<Segments>,
    /// The accept queues of the port now.
    pub accept_queue: Option<AcceptQueue>,
    /// The server's process.
    pub process: Option<Process>,
}

/// The accept queues of one port together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct AcceptQueue {
    /// Sockets that listen there.
    pub listeners: u32,
    /// Connections that wait to be accepted.
    pub waiting: u64,
    /// How many may wait.
    pub limit: u64,
    /// How many wait in the fullest queue.
    pub waiting_max: u32,
}

/// An open probe.
#[derive(Debug)]
pub struct ServerProbe {
    times: Watched<Vec<TimesLine>>,
    net_rx: Watched<Vec<u32>>,
    softnet: Watched<Vec<SoftnetLine>>,
    sockets: Watched<Sockets>,
    /// Only where there is IPv6.
    sockets6: Option<Watched<u64>>,
    listen_events: Watched<ListenEvents>,
    segments: Watched<Segments>,
    queue: Option<(SockDiag, u16)>,
    process: Option<Followed>,
    last_ns: Option<u64>,
    faults: Vec<Fault>,
}

impl ServerProbe {
    /// Opens what there is to be read; [`ServerProbe::take_faults`] then says what is missing, for instance
    /// the process.
    ///
    /// # Errors
    /// When there is nothing to be read at all.
    pub fn open(plan: &ProbePlan) -> Result<Self, Fault> {
        let mut faults = Vec::new();
        let process = plan.pid.and_then(|pid| Followed::open(pid, &mut faults));
        let follows = plan.pid.filter(|_| process.is_some());
        let net = follows.map_or("/proc/net".to_owned(), |pid| format!("/proc/{pid}/net"));
        let net = |name: &str| format!("{net}/{name}");
        let sockets6 = net("sockstat6");
        let has_sockets6 = std::path::Path::new(&sockets6).exists();
        let probe = Self {
            times: Watched::open("/proc/stat".to_owned(), processors::read_times, &mut faults),
            net_rx: Watched::open("/proc/softirqs".to_owned(), processors::read_net_rx, &mut faults),
            softnet: Watched::open(net("softnet_stat"), processors::read_softnet, &mut faults),
            sockets: Watched::open(net("sockstat"), network::read_sockets, &mut faults),
            sockets6: has_sockets6.then(|| Watched::open(sockets6, network::read_sockets6, &mut faults)),
            listen_events: Watched::open(net("netstat"), network::read_listen_events, &mut faults),
            segments: Watched::open(net("snmp"), network::read_segments, &mut faults),
            queue: plan.port.and_then(|port| open_queue(port, follows, &mut faults)),
            process,
            last_ns: None,
            faults,
        };
        if probe.sees_anything() {
            Ok(probe)
        } else {
            let all: Vec<String> = probe.faults.iter().map(ToString::to_string).collect();
            Err(Fault::new(format!("nothing of the server's side can be read: {}", all.join("; "))))
        }
    }

    /// Reads everything. `now_ns` is the moment on the caller's clock, which never goes back.
    pub fn sample(&mut self, now_ns: u64) -> Sample {
        let faults = &mut self.faults;
        let span_ns = self.last_ns.replace(now_ns).map(|last_ns| now_ns.saturating_sub(last_ns));
        let tcp6_in_use = self.sockets6.as_mut().and_then(|sockets6| sockets6.now(faults)).unwrap_or(0);
        let mut sample = Sample {
            at_ns: now_ns,
            span_ns,
            processors: self
                .times
                .change(faults, |before, now| processors::shares_between(before, now))
                .flatten(),
            net_rx_softirqs: self
                .net_rx
                .change(faults, |before, now| processors::net_rx_between(before, now)),
            softnet: self.softnet.change(faults, |before, now| processors::softnet_between(before, now)),
            sockets: self.sockets.now(faults).map(|sockets| Sockets { tcp6_in_use, ..sockets }),
            listen_events: self.listen_events.change(faults, network::listen_events_between),
            segments: self.segments.change(faults, network::segments_between),
            accept_queue: None,
            process: None,
        };
        sample.accept_queue = self.accept_queue();
        sample.process = self.process.as_mut().and_then(|process| process.sample(&mut self.faults));
        if sample.process.is_none() {
            self.process = None;
        }
        sample
    }

    /// What could not be read, since this was asked last: sentences for the person who asked for the probe.
    pub fn take_faults(&mut self) -> Vec<Fault> {
        std::mem::take(&mut self.faults)
    }

    fn accept_queue(&mut self) -> Option<AcceptQueue> {
        let (diag, port) = self.queue.as_mut()?;
        match diag.accept_queue(*port) {
            Ok(sock_diag::AcceptQueue { listeners, waiting, limit, waiting_max, .. }) => {
                Some(AcceptQueue { listeners, waiting, limit, waiting_max })
            }
            Err(error) => {
                self.faults.push(no_queue(*port, &error));
                self.queue = None;
                None
            }
        }
    }

    fn sees_anything(&self) -> bool {
        self.times.is_open()
            || self.net_rx.is_open()
            || self.softnet.is_open()
            || self.sockets.is_open()
            || self.listen_events.is_open()
            || self.segments.is_open()
            || self.queue.is_some()
            || self.process.is_some()
    }
}

/// The way to a port's queues, if the process is in our network namespace. Who does not listen yet may do so
/// later.
fn open_queue(port: u16, pid: Option<u32>, faults: &mut Vec<Fault>) -> Option<(SockDiag, u16)> {
    if let Some(pid) = pid.filter(|pid| is_elsewhere(*pid)) {
        let sentence = "is in another network namespace: its accept queue cannot be seen from here";
        faults.push(Fault::new(format!("process {pid} {sentence}")));
        return None;
    }
    let opened = SockDiag::open().and_then(|mut diag| Ok((diag.accept_queue(port)?, diag)));
    match opened {
        Ok((queue, diag)) => {
            if queue.listeners == 0 {
                faults.push(Fault::new(format!("nobody listens on TCP port {port} of this machine")));
            }
            Some((diag, port))
        }
        Err(error) => {
            faults.push(no_queue(port, &error));
            None
        }
    }
}

/// Whether the process has another network namespace than we. If we may not know, it is taken to be ours.
fn is_elsewhere(pid: u32) -> bool {
    let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).ok();
    let (ours, theirs) = (namespace("thread-self"), namespace(&pid.to_string()));
    ours.is_some() && theirs.is_some() && ours != theirs
}

fn no_queue(port: u16, error: &std::io::Error) -> Fault {
    Fault::new(format!("the kernel does not tell the accept queue of port {port}: {error}; it is left out"))
}

#[cfg(test)]
mod tests;
