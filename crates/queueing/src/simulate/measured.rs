//! What was counted.
//!
//! It must never know the scenario.

/// What was counted after the warm-up.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Measured {
    /// Requests that came.
    pub offered: u64,
    /// Requests the gate let in.
    pub admitted: u64,
    /// Packets, of requests and flood, that found no place before S1.
    pub lost: u64,
    /// Packets that came to S1, of requests and flood.
    pub received: u64,
    /// Requests that found no place before S2.
    pub refused: u64,
    /// Requests served, in time or not.
    pub served: u64,
    /// Requests served in time.
    pub good: u64,
    /// Seconds counted.
    pub elapsed_s: f64,
    /// Seconds S1 and the gate held the processor.
    pub reception_s: f64,
    /// Interrupts that the processor took.
    pub interrupts: u64,
    /// Mean number of requests before and in S2, over time.
    pub mean_number: f64,
    /// Seconds from arrival to answer of all served, sorted.
    pub responses_s: Vec<f64>,
}

impl Measured {
    /// Answers in time a second.
    pub fn goodput_per_s(&self) -> f64 {
        self.good as f64 / self.elapsed_s
    }

    /// Requests served a second.
    pub fn throughput_per_s(&self) -> f64 {
        self.served as f64 / self.elapsed_s
    }

    /// Seconds within which `share` (0 to 1) of those served in time had their answer.
    pub fn quantile_in_time(&self, share: f64) -> Option<f64> {
        let last = (self.good as usize).checked_sub(1)?;
        self.responses_s.get((share * last as f64) as usize).copied()
    }

    /// Mean seconds from arrival to answer of all served.
    pub fn mean_response_s(&self) -> f64 {
        self.responses_s.iter().sum::<f64>() / self.responses_s.len() as f64
    }
}
