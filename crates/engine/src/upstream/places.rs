//! The places of one server of an application: how many requests it works on at once, shared by all workers,
//! and the line of those that wait for one.
//!
//! `Places` owns the ledger, the law that sets its limit, and the line. It must never read a clock, nor send
//! mail: whose turn it is, the caller tells. Order of calls: [`Places::ask`] for each request; then
//! [`Places::give_back`] once for each place taken or granted, and [`Places::leave`] for each request that
//! waits and is not wanted any more; [`Places::tick`] some times a second while any waits.
//!
//! A place is taken and given back without a lock as long as no request waits. A request that finds none
//! stands in line before it looks once more, and who gives one back looks at the line behind that: one of
//! both sees the other (both in sequential consistency).

use std::collections::VecDeque;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::law::{LawReason, LimitLaw, Observation};
use super::line::{Served, WaitingLine};
use crate::exchange::address::Address;

/// Milliseconds between two observations of the law, at least: as its simulator has them.
const STEP_MS: u64 = 10;
/// Milliseconds after which arrivals are counted while no request waits: the line counts in parts of a second
/// as long.
const COUNT_MS: u64 = 31;
/// Milliseconds for which steps are kept for people: as far back as somebody asks who has just seen a fault.
const STEPS_KEPT_MS: u64 = 60_000;
/// Most steps that are kept, whatever happens in that time: four a second.
const STEPS_KEPT_MAX: usize = 240;
/// Longest time that refused clients are asked to stay away, in seconds: people do not wait for longer.
const SPREAD_S_MAX: u32 = 30;

/// The rule for the limit of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlacesLimit {
    /// The law ([`LimitLaw`]).
    Auto,
    /// So many requests at once, whatever the server makes of them.
    Fixed(u32),
    /// None: no request waits here.
    Off,
}

/// The answer to a request for a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceAnswer {
    /// The request has one.
    Taken,
    /// The request stands in line, until it is told or leaves.
    Waits,
    /// The request could not be answered in time. Clients that come back within so many seconds, at any of
    /// them, find room.
    Refused {
        /// Seconds over which they spread.
        spread_s: u32,
    },
}

/// News for a request that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlaceNews {
    /// The exchange.
    pub address: Address,
    /// Whether it has a place now. Otherwise its client's patience is over.
    pub has_place: bool,
}

/// How a place was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenBack {
    /// The server has answered, within so many milliseconds.
    Answered {
        /// From the moment the place was taken.
        in_work_ms: u32,
    },
    /// There was no answer, or nobody waits for it any more.
    Unanswered,
    /// The server goes on beside its places: neither an answer nor its time can be counted.
    Beside,
}

/// Figures of a server's places, for people.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PlacesFigures {
    /// Requests at once; `u32::MAX` for any number.
    pub limit: u32,
    /// Requests in work.
    pub in_work: u32,
    /// Requests in line.
    pub waiting: u32,
    /// Answers a second at the limit; 0 while it is not known.
    pub rate: f64,
    /// Seconds that a request is in work; 0 while it is not known.
    pub in_work_s: f64,
    /// Requests refused since the start, because they could not be answered in time.
    pub refused: u64,
    /// Answers since the start that nobody waited for any more.
    pub unanswered: u64,
}

/// A moment in the life of a server's places, for people.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlacesStep {
    /// The moment, in milliseconds of the workers' clock.
    pub at_ms: u64,
    /// The figures then.
    pub figures: PlacesFigures,
    /// The reason of the law's last step; `None` where no law sets the limit.
    pub reason: Option<LawReason>,
}

/// The places of one server.
#[derive(Debug)]
pub struct Places {
    patience_ms: u64,
    limit: AtomicU32,
    in_work: AtomicU32,
    waiting: AtomicU32,
    /// Since they were counted last.
    arrivals: AtomicU32,
    answers: AtomicU32,
    in_work_ms: AtomicU64,
    in_work_ms_squared: AtomicU64,
    counted_ms: AtomicU64,
    refused: AtomicU64,
    unanswered: AtomicU64,
    desk: Mutex<Desk>,
}

/// The part behind a lock, which is taken while requests wait, and some thirty times a second.
#[derive(Debug)]
struct Desk {
    law: Option<LimitLaw>,
    /// The rate and the time in work where no law knows them.
    measured: Served,
    line: WaitingLine,
    /// Exchanges that wait, and since when.
    queue: VecDeque<(Address, u64)>,
    was_full: bool,
    was_shedding: bool,
    /// Steps of the last minute.
    steps: VecDeque<PlacesStep>,
}

impl Places {
    /// The places of a server of which nothing is known, for clients that wait so long.
    pub fn new(limit: PlacesLimit, patience_ms: u32) -> Self {
        let patience_s = f64::from(patience_ms) / 1000.0;
        let law = (limit == PlacesLimit::Auto).then(|| LimitLaw::new(patience_s));
        let limit = match limit {
            PlacesLimit::Auto => 1,
            PlacesLimit::Fixed(limit) => limit.max(1),
            PlacesLimit::Off => u32::MAX,
        };
        let line = WaitingLine::new(patience_s);
        Self {
            patience_ms: u64::from(patience_ms),
            limit: AtomicU32::new(limit),
            in_work: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            arrivals: AtomicU32::new(0),
            answers: AtomicU32::new(0),
            in_work_ms: AtomicU64::new(0),
            in_work_ms_squared: AtomicU64::new(0),
            counted_ms: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            unanswered: AtomicU64::new(0),
            desk: Mutex::new(Desk {
                law,
                measured: Served::default(),
                line,
                queue: VecDeque::new(),
                was_full: false,
                was_shedding: false,
                steps: VecDeque::new(),
            }),
        }
    }

    /// A request wants a place. `news` is for others that waited.
    pub fn ask(&self, address: Address, now_ms: u64, news: &mut Vec<PlaceNews>) -> PlaceAnswer {
        self.arrivals.fetch_add(1, Relaxed);
        if self.waiting.load(SeqCst) == 0 && self.take() {
            if self.is_due(now_ms, COUNT_MS)
                && let Ok(mut desk) = self.desk.try_lock()
            {
                self.count(&mut desk, now_ms);
            }
            return PlaceAnswer::Taken;
        }
        self.ask_at_desk(address, now_ms, news)
    }

    #[cold]
    fn ask_at_desk(&self, address: Address, now_ms: u64, news: &mut Vec<PlaceNews>) -> PlaceAnswer {
        let mut desk = self.desk();
        self.look(&mut desk, now_ms, news);
        if desk.queue.is_empty() && self.take() {
            return PlaceAnswer::Taken;
        }
        desk.was_full = true;
        if desk.queue.len() >= desk.room(now_ms) as usize {
            desk.was_shedding = true;
            self.refused.fetch_add(1, Relaxed);
            return PlaceAnswer::Refused { spread_s: desk.spread_s() };
        }
        desk.queue.push_back((address, now_ms));
        self.note_waiting(&desk);
        // A place that was given back meanwhile was given to nobody.
        self.admit(&mut desk, news);
        match news.pop_if(|last| last.address == address && last.has_place) {
            Some(_) => PlaceAnswer::Taken,
            None => PlaceAnswer::Waits,
        }
    }

    /// Gives a place back. `news` is for those who have it next.
    pub fn give_back(&self, how: GivenBack, now_ms: u64, news: &mut Vec<PlaceNews>) {
        match how {
            GivenBack::Answered { in_work_ms } => {
                let in_work_ms = u64::from(in_work_ms);
                self.answers.fetch_add(1, Relaxed);
                self.in_work_ms.fetch_add(in_work_ms, Relaxed);
                self.in_work_ms_squared.fetch_add(in_work_ms * in_work_ms, Relaxed);
            }
            GivenBack::Unanswered => _ = self.unanswered.fetch_add(1, Relaxed),
            GivenBack::Beside => {}
        }
        self.in_work.fetch_sub(1, SeqCst);
        if self.waiting.load(SeqCst) > 0 {
            let mut desk = self.desk();
            self.look(&mut desk, now_ms, news);
        }
    }

    /// Looks after those who wait, where nothing else happens: who has waited for too long is told, and a
    /// limit that has grown lets others in. Whether any waits on.
    pub fn tick(&self, now_ms: u64, news: &mut Vec<PlaceNews>) -> bool {
        if self.waiting.load(SeqCst) > 0 {
            let mut desk = self.desk();
            self.look(&mut desk, now_ms, news);
        }
        self.waiting.load(SeqCst) > 0
    }

    /// A request that waits is not wanted any more. `false`: it has a place already, or was refused, and the
    /// news of it are on their way.
    pub fn leave(&self, address: Address) -> bool {
        let mut desk = self.desk();
        let place = desk.queue.iter().position(|(waiting, _)| *waiting == address);
        let was_there = place.and_then(|place| desk.queue.remove(place)).is_some();
        self.note_waiting(&desk);
        was_there
    }

    /// The server is gone: everybody leaves the line, and is told so.
    pub fn send_away(&self, news: &mut Vec<PlaceNews>) {
        let mut desk = self.desk();
        let all = desk.queue.drain(..);
        news.extend(all.map(|(address, _)| PlaceNews { address, has_place: false }));
        self.note_waiting(&desk);
    }

    /// Figures for people.
    pub fn figures(&self) -> PlacesFigures {
        self.figures_at(&self.desk())
    }

    /// Steps of the last minute, the oldest first.
    pub fn steps(&self) -> Vec<PlacesStep> {
        self.desk().steps.iter().copied().collect()
    }

    fn figures_at(&self, desk: &Desk) -> PlacesFigures {
        let served = desk.served();
        PlacesFigures {
            limit: self.limit.load(Relaxed),
            in_work: self.in_work.load(Relaxed),
            waiting: self.waiting.load(Relaxed),
            rate: served.rate,
            in_work_s: served.in_work_s,
            refused: self.refused.load(Relaxed),
            unanswered: self.unanswered.load(Relaxed),
        }
    }

    /// Requests in work and in line for each that the server works on at once: what a new one has before it.
    pub fn load(&self) -> f64 {
        let before = self.in_work.load(Relaxed) + self.waiting.load(Relaxed);
        f64::from(before + 1) / f64::from(self.limit.load(Relaxed))
    }

    /// Whether a request that asks now would be refused.
    pub fn is_full(&self, now_ms: u64) -> bool {
        if self.waiting.load(Relaxed) == 0 {
            return false;
        }
        let mut desk = self.desk();
        desk.queue.len() >= desk.room(now_ms) as usize
    }

    /// The server was away, and begins anew.
    pub fn begin_anew(&self) {
        let mut desk = self.desk();
        if desk.law.is_some() {
            desk.law = Some(LimitLaw::new(self.patience_ms as f64 / 1000.0));
            self.limit.store(1, SeqCst);
        }
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place if one is free.
    fn take(&self) -> bool {
        let limit = self.limit.load(SeqCst);
        let one_more = |in_work| (in_work < limit).then_some(in_work + 1);
        self.in_work.fetch_update(SeqCst, SeqCst, one_more).is_ok()
    }

    fn is_due(&self, now_ms: u64, after_ms: u64) -> bool {
        now_ms.saturating_sub(self.counted_ms.load(Relaxed)) >= after_ms
    }

    /// Counts, and gives places that are free to those who wait.
    fn look(&self, desk: &mut Desk, now_ms: u64, news: &mut Vec<PlaceNews>) {
        if self.is_due(now_ms, STEP_MS) {
            self.count(desk, now_ms);
            self.dismiss(desk, now_ms, news);
        }
        self.admit(desk, news);
    }

    /// Tells the law and the line what was counted since the last time.
    fn count(&self, desk: &mut Desk, now_ms: u64) {
        let before_ms = self.counted_ms.swap(now_ms, Relaxed);
        desk.line.came(now_ms as f64 / 1000.0, self.arrivals.swap(0, Relaxed));
        let seen = Observation {
            interval_s: now_ms.saturating_sub(before_ms) as f64 / 1000.0,
            answers: self.answers.swap(0, Relaxed),
            in_work_s: self.in_work_ms.swap(0, Relaxed) as f64 / 1e3,
            in_work_s_squared: self.in_work_ms_squared.swap(0, Relaxed) as f64 / 1e6,
            in_work: self.in_work.load(Relaxed),
            was_full: std::mem::take(&mut desk.was_full) | !desk.queue.is_empty(),
            was_shedding: std::mem::take(&mut desk.was_shedding),
        };
        match &mut desk.law {
            Some(law) => {
                law.step(&seen);
                self.limit.store(law.limit().max(1), SeqCst);
            }
            None => desk.measure(&seen),
        }
        self.note_step(desk, now_ms);
    }

    /// Notes each limit and each reason, and the figures of each second in which requests waited.
    fn note_step(&self, desk: &mut Desk, now_ms: u64) {
        let (figures, reason) = (self.figures_at(desk), desk.law.as_ref().map(LimitLaw::reason));
        let is_news = desk.steps.back().is_none_or(|last| {
            let is_other = (last.figures.limit, last.reason) != (figures.limit, reason);
            is_other || now_ms.saturating_sub(last.at_ms) >= 1_000
        });
        if !is_news {
            return;
        }
        desk.steps.push_back(PlacesStep { at_ms: now_ms, figures, reason });
        let is_old = |step: &mut PlacesStep| now_ms.saturating_sub(step.at_ms) > STEPS_KEPT_MS;
        while desk.steps.pop_front_if(is_old).is_some() {}
        if desk.steps.len() > STEPS_KEPT_MAX {
            desk.steps.pop_front();
        }
    }

    /// Clients whose patience is over leave the line.
    fn dismiss(&self, desk: &mut Desk, now_ms: u64, news: &mut Vec<PlaceNews>) {
        let is_late = |(_, came_ms): &mut (Address, u64)| now_ms.saturating_sub(*came_ms) > self.patience_ms;
        while let Some((address, _)) = desk.queue.pop_front_if(is_late) {
            self.refused.fetch_add(1, Relaxed);
            news.push(PlaceNews { address, has_place: false });
        }
        self.note_waiting(desk);
    }

    fn admit(&self, desk: &mut Desk, news: &mut Vec<PlaceNews>) {
        while !desk.queue.is_empty() && self.take() {
            let first = desk.queue.pop_front();
            news.extend(first.map(|(address, _)| PlaceNews { address, has_place: true }));
        }
        self.note_waiting(desk);
        desk.was_full |= !desk.queue.is_empty();
    }

    fn note_waiting(&self, desk: &Desk) {
        self.waiting.store(u32::try_from(desk.queue.len()).unwrap_or(u32::MAX), SeqCst);
    }
}

impl Desk {
    /// The rate of the server, as the law knows it, or as it was measured.
    fn served(&self) -> Served {
        let of_law = |law: &LimitLaw| Served { rate: law.rate(), in_work_s: law.in_work_s() };
        self.law.as_ref().map_or(self.measured, of_law)
    }

    /// Measures the rate of a server that is full, as the average of about the last second.
    fn measure(&mut self, seen: &Observation) {
        if !seen.was_full || seen.interval_s <= 0.0 {
            return;
        }
        let weight = if self.measured.rate > 0.0 { seen.interval_s.min(1.0) } else { 1.0 };
        let Served { rate, in_work_s } = &mut self.measured;
        *rate += (f64::from(seen.answers) / seen.interval_s - *rate) * weight;
        if seen.answers > 0 {
            *in_work_s += (seen.in_work_s / f64::from(seen.answers) - *in_work_s) * weight;
        }
    }

    /// How many may wait.
    fn room(&mut self, now_ms: u64) -> u32 {
        let waited_ms = self.queue.front().map_or(0, |(_, came_ms)| now_ms.saturating_sub(*came_ms));
        let served = self.served();
        self.line.room(served, waited_ms as f64 / 1000.0)
    }

    /// Seconds over which those spread who come back: as long as the crowd of a second takes.
    fn spread_s(&self) -> u32 {
        let Served { rate, .. } = self.served();
        if rate <= 0.0 {
            return 1;
        }
        (f64::from(self.line.offered()) / rate).ceil().clamp(1.0, f64::from(SPREAD_S_MAX)) as u32
    }
}

#[cfg(test)]
mod tests;
