//! The requests of one thread: which comes next, and its bytes.
//!
//! It owns drawing them, from a seed: the same seed and thread draw the same. It must never send anything, or
//! know what was answered.

mod list;
mod plan;
pub mod webstone;

pub use plan::{Choice, MixEntry, MixPlan};

use rand::SeedableRng;
use rand::distr::Distribution;
use rand_distr::weighted::WeightedAliasIndex;
use rand_xoshiro::Xoshiro256PlusPlus;
use staunch_netio::Outgoing;

use crate::Fault;
use crate::check::Check;
use crate::request::RenderedRequest;
use crate::template::Values;

/// The requests of one thread.
#[derive(Debug)]
pub struct Mix {
    requests: Vec<RenderedRequest>,
    checks: Vec<Check>,
    chooser: Chooser,
    random: Xoshiro256PlusPlus,
    thread: u32,
    scratch: Vec<u8>,
}

#[derive(Debug)]
enum Chooser {
    /// There is only one.
    One,
    /// This one is next.
    InOrder(u32),
    /// By a random number and a look-up, however many there are.
    Weighted(WeightedAliasIndex<f64>),
}

/// Keeps what is drawn here apart from what others draw from the same seed.
const STREAM: u64 = u64::from_be_bytes(*b"requests");

impl Mix {
    /// Makes ready what a thread sends.
    ///
    /// # Errors
    /// What in the plan cannot be done, and in which request.
    pub fn new(plan: &MixPlan, seed: u64, thread: u32) -> Result<Self, Fault> {
        let requests: Result<Vec<RenderedRequest>, Fault> =
            plan.entries.iter().map(|entry| make_request(plan, entry)).collect();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ STREAM);
        (0..thread).for_each(|_| random.jump());
        Ok(Self {
            requests: requests?,
            checks: plan.entries.iter().map(|entry| entry.check.clone()).collect(),
            chooser: Chooser::new(plan)?,
            random,
            thread,
            scratch: Vec::new(),
        })
    }

    /// Which entry comes next.
    #[inline]
    pub fn draw(&mut self) -> u32 {
        match &mut self.chooser {
            Chooser::One => 0,
            Chooser::InOrder(next) => {
                let drawn = *next;
                *next = if drawn as usize + 1 == self.requests.len() { 0 } else { drawn + 1 };
                drawn
            }
            Chooser::Weighted(weights) => weights.sample(&mut self.random) as u32,
        }
    }

    /// Appends the request to `outgoing`: the number of the request in the run, that of its connection, and
    /// the time in milliseconds since 1970 are for its variables. Of a static request any number can be
    /// appended, to be pipelined.
    #[inline]
    pub fn write(&mut self, entry: u32, serial: u64, connection: u32, unix_ms: u64, outgoing: &mut Outgoing) {
        let values = Values { serial, thread: self.thread, connection, unix_ms };
        self.requests[entry as usize].write(&values, &mut self.random, &mut self.scratch, outgoing);
    }

    /// Whether the method is HEAD, whose answers have no body.
    #[inline]
    pub fn asked_by_head(&self, entry: u32) -> bool {
        self.requests[entry as usize].asked_by_head
    }

    /// Length of the request in bytes; `None` when variables make it different each time.
    #[inline]
    pub fn length_bytes(&self, entry: u32) -> Option<usize> {
        self.requests[entry as usize].length_bytes()
    }

    /// Whether the request has the same bytes each time.
    #[inline]
    pub fn is_static(&self, entry: u32) -> bool {
        self.length_bytes(entry).is_some()
    }

    /// What the answer has to be like.
    #[inline]
    pub fn check(&self, entry: u32) -> &Check {
        &self.checks[entry as usize]
    }
}

fn make_request(plan: &MixPlan, entry: &MixEntry) -> Result<RenderedRequest, Fault> {
    let shown = || format!("{} {}", entry.request.method, entry.request.target).escape_debug().to_string();
    let made = RenderedRequest::new(&entry.request, &plan.authority, plan.keep_alive);
    let request = made.map_err(|fault| Fault::new(format!("{}: {fault}", shown())))?;
    if request.asked_by_head && entry.check.body != crate::check::BodyCheck::None {
        return Err(Fault::new(format!("{}: an answer to HEAD has no body to be checked", shown())));
    }
    Ok(request)
}

impl Chooser {
    fn new(plan: &MixPlan) -> Result<Self, Fault> {
        let count = plan.entries.len();
        if count == 0 || u32::try_from(count).is_err() {
            return Err(Fault::new(format!("a mix has at least one request and at most 2^32, not {count}")));
        }
        let weights = match plan.choice {
            Choice::Weighted => given_weights(plan)?,
            choice if plan.entries.iter().any(|entry| entry.weight != 1.0) => {
                let how = if choice == Choice::InOrder { "in order" } else { "by Zipf's law" };
                return Err(Fault::new(format!("weights have no meaning when requests are chosen {how}")));
            }
            Choice::InOrder => return Ok(if count == 1 { Self::One } else { Self::InOrder(0) }),
            Choice::Zipf { exponent } => zipf_weights(exponent, count)?,
        };
        if count == 1 {
            return Ok(Self::One);
        }
        let alias = WeightedAliasIndex::new(weights);
        alias.map(Self::Weighted).map_err(|_| Fault::new("the weights are too large to be added up"))
    }
}

fn given_weights(plan: &MixPlan) -> Result<Vec<f64>, Fault> {
    let weight = |entry: &MixEntry| {
        let usable = entry.weight > 0.0 && entry.weight.is_finite();
        let fault = || format!("the weight {} of {} is not above 0", entry.weight, entry.request.target);
        if usable { Ok(entry.weight) } else { Err(Fault::new(fault())) }
    };
    plan.entries.iter().map(weight).collect()
}

fn zipf_weights(exponent: f64, count: usize) -> Result<Vec<f64>, Fault> {
    if !(exponent >= 0.0 && exponent.is_finite()) {
        return Err(Fault::new(format!("the exponent {exponent} of Zipf's law is not 0 or above")));
    }
    Ok((1..=count).map(|place| (place as f64).powf(-exponent)).collect())
}

#[cfg(test)]
mod tests;
