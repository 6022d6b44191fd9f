//! A host as the model sees it: reception, application, places, patience, gate.
//!
//! It owns the parameters and what they must be. It must never calculate: that is `predict.rs`.
//! Order: fill in, [`Host::predict`].

use std::fmt;

use crate::batching::Reception;
use crate::limits::PLACES_MAX;
use crate::patience::Service;

/// A server on one processor.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// S1, the kernel's work on packets that may begin a connection: mu1.
    pub reception: Reception,
    /// mu2: requests a second of the application, had it the processor to itself.
    pub mu2_per_s: f64,
    /// K: places of the application's queue, the request in service included (the listener's backlog, and 1).
    pub places: u32,
    /// T: seconds after which a client leaves; infinite if it never does.
    pub patience_s: f64,
    /// Seconds after which a client tries again whose handshake found no place, and then twice, four times as
    /// long after the first try; 0 if it never does.
    pub retry_s: f64,
    /// How the time of one request varies.
    pub service: Service,
    /// What stands before S1, if anything.
    pub gate: Option<Gate>,
}

/// A gate: lets a part of the arrivals in, at random, before S1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gate {
    /// d: seconds of the processor for every arrival, let in or not.
    pub residual_s: f64,
    /// How many requests are let in.
    pub admission: Admission,
    /// How many packets of a flood it lets in per second, at most.
    pub flood_passed_per_s: f64,
}

/// How many requests a gate lets in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Admission {
    /// At most this share of what the host can do at this very load; 0.97 keeps the queue short.
    Share(f64),
    /// At most so many a second, whatever the host can do.
    PerSecond(f64),
}

/// What is asked of a host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OfferedLoad {
    /// Requests a second, each with a connection of its own, Poisson; clients do not wait for one another.
    pub requests_per_s: f64,
    /// Packets a second that cost S1 as much as a request does and never reach the application (forged SYN).
    pub flood_per_s: f64,
}

impl OfferedLoad {
    /// Requests alone, per second.
    pub fn requests(requests_per_s: f64) -> OfferedLoad {
        OfferedLoad { requests_per_s, flood_per_s: 0.0 }
    }
}

/// A parameter that no host can have.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// The parameter.
    pub what: &'static str,
    /// What it must be.
    pub must: &'static str,
    /// What it is.
    pub value: f64,
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} must be {}, but is {}", self.what, self.must, self.value)
    }
}

impl std::error::Error for Fault {}

impl Host {
    /// Says whether such a host can be.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        let reception = &self.reception;
        at_least_zero("the cost of a packet in seconds", reception.packet_s)?;
        at_least_zero("the cost of an interrupt in seconds", reception.interrupt_s)?;
        at_least_zero("the window of coalescing in seconds", reception.window_s)?;
        share("the cost when full as a share", reception.full_share)?;
        above_zero("the cost of reception in seconds", reception.packet_s + reception.interrupt_s)?;
        above_zero("mu2 in requests a second", self.mu2_per_s)?;
        let places = f64::from(self.places);
        hold(self.places <= PLACES_MAX, "the number of places", "at most 1048576", places)?;
        hold(self.patience_s > 0.0, "the patience in seconds", "above 0", self.patience_s)?;
        at_least_zero("the seconds until a client tries again", self.retry_s)?;
        self.gate.map_or(Ok(()), |gate| gate.check())
    }
}

impl Gate {
    fn check(&self) -> Result<(), Fault> {
        at_least_zero("the gate's cost of an arrival in seconds", self.residual_s)?;
        at_least_zero("the flood let in per second", self.flood_passed_per_s)?;
        match self.admission {
            Admission::Share(share) => at_least_zero("the share of the capacity let in", share),
            Admission::PerSecond(rate) => at_least_zero("the requests let in per second", rate),
        }
    }
}

impl OfferedLoad {
    /// Says whether such a load can be.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        at_least_zero("the requests offered per second", self.requests_per_s)?;
        at_least_zero("the flood per second", self.flood_per_s)
    }
}

pub(crate) fn above_zero(what: &'static str, value: f64) -> Result<(), Fault> {
    hold(value > 0.0 && value.is_finite(), what, "above 0 and finite", value)
}

pub(crate) fn at_least_zero(what: &'static str, value: f64) -> Result<(), Fault> {
    hold(value >= 0.0 && value.is_finite(), what, "at least 0 and finite", value)
}

pub(crate) fn share(what: &'static str, value: f64) -> Result<(), Fault> {
    hold((0.0..=1.0).contains(&value), what, "0 to 1", value)
}

pub(crate) fn hold(holds: bool, what: &'static str, must: &'static str, value: f64) -> Result<(), Fault> {
    if holds { Ok(()) } else { Err(Fault { what, must, value }) }
}
