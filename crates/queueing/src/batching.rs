//! Interrupts in batches: the more packets one interrupt finds, the less each of them costs.
//!
//! It owns the cost of reception. It must never know what a packet carries.

/// Cost of reception: `mu1 = 1/(c1 + c0/b)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reception {
    /// c1: seconds for each packet.
    pub packet_s: f64,
    /// c0: seconds for each interrupt, however many packets it finds.
    pub interrupt_s: f64,
    /// Seconds between a first packet and the interrupt it causes (the network card's coalescing); 0 for at
    /// once.
    pub window_s: f64,
    /// phi: what is left of c1 for a packet that finds all places of the application taken; 0 to 1. The
    /// kernel drops such a SYN before it answers it. 1 in the paper.
    pub full_share: f64,
}

impl Reception {
    /// A reception that deals with `mu1` packets a second, whatever comes.
    pub fn constant(mu1: f64) -> Reception {
        Reception { packet_s: mu1.recip(), interrupt_s: 0.0, window_s: 0.0, full_share: 1.0 }
    }

    /// Packets that one interrupt finds at `arrivals` a second: the first, and those that come while the
    /// window is open, `b = 1 + arrivals * window`. (More in truth where the work on one batch is longer than
    /// the window.)
    pub fn batch(&self, arrivals: f64) -> f64 {
        1.0 + arrivals * self.window_s
    }

    /// Packets a second it can deal with when `arrivals` a second come: [`mu1`] at their batch.
    pub fn mu1(&self, arrivals: f64) -> f64 {
        mu1(self.packet_s, self.interrupt_s, self.batch(arrivals))
    }

    /// As [`Self::mu1`], of packets that find all places of the application taken: `1/(phi c1 + c0/b)`.
    pub fn mu1_full(&self, arrivals: f64) -> f64 {
        mu1(self.full_share * self.packet_s, self.interrupt_s, self.batch(arrivals))
    }
}

/// Packets a second: `1/(c1 + c0/b)`; `c1` and `c0` in seconds, `batch` in packets, at least 1.
pub fn mu1(c1: f64, c0: f64, batch: f64) -> f64 {
    (c1 + c0 / batch).recip()
}
