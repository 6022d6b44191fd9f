//! Which way a flood takes to the network: the best that is allowed and works, found by trying.
//!
//! It owns the choice. It must never take another way silently: why the best was not taken is told.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use staunch_netio::host::route::{self, Link};

use super::frame::{Ends, Template};
use super::live::{self, FrameCounts, LiveFrames};
use super::plan::{FloodPlan, Method};
use super::privilege;
use super::sockets::{Counts, Sockets};
use crate::Fault;

/// A way, ready to be gone.
pub(super) struct Road {
    method: Method,
    way: Way,
}

enum Way {
    Live(LiveFrames),
    Sockets { sockets: Sockets, counts: Arc<Counts>, rate_per_s: Option<f64>, duration: Option<Duration> },
}

/// What has been done until now.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoadReading {
    pub(super) sent: u64,
    pub(super) dropped: u64,
    pub(super) given_up: u64,
    pub(super) ran_ns: u64,
}

/// Tells at any time what has been done.
#[derive(Clone)]
pub(super) enum Gauge {
    Map(Arc<FrameCounts>),
    Counts(Arc<Counts>),
}

impl Gauge {
    pub(super) fn read(&self) -> RoadReading {
        match self {
            Self::Map(reader) => {
                let progress = reader.progress();
                let (sent, given_up, ran_ns) = (progress.sent, progress.given_up, progress.ran_ns);
                RoadReading { sent, dropped: 0, given_up, ran_ns }
            }
            Self::Counts(counts) => RoadReading {
                sent: counts.sent.load(Ordering::Relaxed),
                dropped: counts.dropped.load(Ordering::Relaxed),
                given_up: counts.given_up.load(Ordering::Relaxed),
                ran_ns: counts.ran_ns.load(Ordering::Relaxed),
            },
        }
    }
}

impl Road {
    /// Which one it is.
    pub(super) fn method(&self) -> Method {
        self.method
    }

    /// Sends until told to stop; the thread has to be interrupted then.
    ///
    /// # Errors
    /// What the kernel says.
    pub(super) fn run(&mut self, stop: &AtomicBool) -> Result<(), String> {
        match &mut self.way {
            Way::Live(live) => live.run(stop),
            Way::Sockets { sockets, counts, rate_per_s, duration } => {
                sockets.run(*rate_per_s, *duration, counts, stop).map_err(|error| error.to_string())
            }
        }
    }
}

/// The ways that may be tried, the best first.
///
/// # Errors
/// When the plan asks for one that does not lead by its interface.
pub(super) fn methods(plan: &FloodPlan, link: &Link) -> Result<&'static [Method], Fault> {
    match (plan.method, link.is_loopback) {
        (None | Some(Method::RawSocket), true) => Ok(&[Method::RawSocket]),
        (None, false) => Ok(&[Method::LiveFrames, Method::PacketSocket]),
        (Some(Method::LiveFrames), false) => Ok(&[Method::LiveFrames]),
        (Some(Method::PacketSocket), false) => Ok(&[Method::PacketSocket]),
        (Some(method), _) => {
            Err(Fault::new(format!("interface `{}` is no way for a flood by {method}", plan.interface)))
        }
    }
}

/// Takes the first way that works, and says why one before it did not.
///
/// # Errors
/// Why none works.
pub(super) fn choose(plan: &FloodPlan, link: &Link) -> Result<(Road, Gauge, Vec<String>), Fault> {
    let template = Template::new(ends(plan, link)?, plan.destination, plan.sources(), plan.seed);
    let mut notes = Vec::new();
    for &method in methods(plan, link)? {
        let attempt = match privilege::lacks(method) {
            Some(names) => Err(format!("this process lacks {names}")),
            None => open(method, plan, link, &template),
        };
        match attempt {
            Ok((way, gauge)) => return Ok((Road { method, way }, gauge, notes)),
            Err(why) => notes.push(format!("no {method}: {why}")),
        }
    }
    Err(Fault::new(notes.join("; ")))
}

fn open(method: Method, plan: &FloodPlan, link: &Link, template: &Template) -> Result<(Way, Gauge), String> {
    let sockets = match method {
        Method::LiveFrames => return open_live(plan, link, template),
        Method::PacketSocket => Sockets::by_link(template.clone(), link.index),
        Method::RawSocket => Sockets::to_host(template.clone(), plan.destination.ip()),
    };
    let sockets = sockets.map_err(|error| error.to_string())?;
    let counts = Arc::new(Counts::default());
    let gauge = Gauge::Counts(Arc::clone(&counts));
    Ok((Way::Sockets { sockets, counts, rate_per_s: plan.rate_per_s, duration: plan.duration }, gauge))
}

fn open_live(plan: &FloodPlan, link: &Link, template: &Template) -> Result<(Way, Gauge), String> {
    if !live::are_taken(template, link, &plan.interface)? {
        return Err(format!(
            "the other end of `{}` takes none; make it ready, where it is: ethtool -K NAME gro on",
            plan.interface
        ));
    }
    let (live, reader) = live::load(template, link, plan.rate_per_s, plan.duration)?;
    Ok((Way::Live(live), Gauge::Map(Arc::new(reader))))
}

/// The hardware addresses; by `lo` there are none.
fn ends(plan: &FloodPlan, link: &Link) -> Result<Ends, Fault> {
    if link.is_loopback {
        return Ok(Ends::default());
    }
    let from = link
        .address
        .ok_or_else(|| Fault::new(format!("interface `{}` has no hardware address", plan.interface)))?;
    let to = match plan.destination_mac {
        Some(address) => address,
        None => find(plan.destination, link, &plan.interface)?,
    };
    Ok(Ends { from, to })
}

fn find(destination: SocketAddr, link: &Link, interface: &str) -> Result<[u8; 6], Fault> {
    let nobody = |why: String| {
        let address = destination.ip();
        Fault::new(format!(
            "nobody at {address} answers by `{interface}`{why}; is the other end up, with this address?"
        ))
    };
    let found = route::resolve_neighbour(destination, link.index);
    found.map_err(|error| nobody(format!(" ({error})")))?.ok_or_else(|| nobody(String::new()))
}
