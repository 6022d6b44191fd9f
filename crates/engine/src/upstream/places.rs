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

mod desk;
mod figures;
mod ranks;

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

use self::desk::Desk;
pub use self::figures::{PlacesFigures, PlacesStep};
use super::law::{LimitLaw, Observation};
use super::standing::{Standing, StandingFigures};
use crate::exchange::address::Address;

/// Milliseconds between two observations of the law, at least: as its simulator has them.
const STEP_MS: u64 = 10;
/// Milliseconds after which arrivals are counted while no request waits: the line counts in parts of a second
/// as long.
const COUNT_MS: u64 = 31;
/// Milliseconds for which a server counts as full at most because it had no place for one that did not wait.
const FULL_MS_MAX: u64 = 100;

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

/// The places of one server.
#[derive(Debug)]
pub struct Places {
    patience_ms: u64,
    limit: AtomicU32,
    in_work: AtomicU32,
    waiting: AtomicU32,
    /// Requests since the start, by standing.
    asked: [AtomicU64; Standing::ALL.len()],
    /// Since they were counted last.
    answers: AtomicU32,
    in_work_ms: AtomicU64,
    in_work_ms_squared: AtomicU64,
    counted_ms: AtomicU64,
    /// Since the start, by standing.
    refused: [AtomicU64; Standing::ALL.len()],
    unanswered: AtomicU64,
    desk: Mutex<Desk>,
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
        Self {
            patience_ms: u64::from(patience_ms),
            limit: AtomicU32::new(limit),
            in_work: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            asked: Default::default(),
            answers: AtomicU32::new(0),
            in_work_ms: AtomicU64::new(0),
            in_work_ms_squared: AtomicU64::new(0),
            counted_ms: AtomicU64::new(0),
            refused: Default::default(),
            unanswered: AtomicU64::new(0),
            desk: Mutex::new(Desk::new(law, patience_s)),
        }
    }

    /// A request of this standing wants a place. `news` is for others that waited.
    pub fn ask(
        &self,
        address: Address,
        standing: Standing,
        now_ms: u64,
        news: &mut Vec<PlaceNews>,
    ) -> PlaceAnswer {
        self.asked[standing.rank()].fetch_add(1, Relaxed);
        if self.waiting.load(SeqCst) == 0 && self.take() {
            if self.is_due(now_ms, COUNT_MS)
                && let Ok(mut desk) = self.desk.try_lock()
            {
                self.count(&mut desk, now_ms);
            }
            return PlaceAnswer::Taken;
        }
        self.ask_at_desk(address, standing, now_ms, news)
    }

    #[cold]
    fn ask_at_desk(
        &self,
        address: Address,
        standing: Standing,
        now_ms: u64,
        news: &mut Vec<PlaceNews>,
    ) -> PlaceAnswer {
        let mut desk = self.desk();
        self.look(&mut desk, now_ms, news);
        if desk.ranks.is_empty() && self.take() {
            return PlaceAnswer::Taken;
        }
        if !desk.was_full {
            // Until now none has waited, which says nothing of what the server can do.
            self.count(&mut desk, now_ms);
        }
        desk.was_full = true;
        if !desk.has_room(standing, now_ms) {
            desk.was_shedding = true;
            self.refused[standing.rank()].fetch_add(1, Relaxed);
            return PlaceAnswer::Refused { spread_s: desk.spread_s(standing) };
        }
        desk.ranks.push(standing, address, now_ms);
        self.note_waiting(&desk);
        // A place that was given back meanwhile was given to nobody.
        self.admit(&mut desk, news);
        let own = news.iter().rposition(|one| one.address == address && one.has_place);
        match own.map(|place| news.remove(place)) {
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
        let was_there = desk.ranks.remove(address);
        self.note_waiting(&desk);
        was_there
    }

    /// The server is gone: everybody leaves the line, and is told so.
    pub fn send_away(&self, news: &mut Vec<PlaceNews>) {
        let mut desk = self.desk();
        news.extend(desk.ranks.drain().map(|address| PlaceNews { address, has_place: false }));
        self.note_waiting(&desk);
    }

    /// Figures for people.
    pub fn figures(&self) -> PlacesFigures {
        self.figures_at(&self.desk())
    }

    /// Counts of each standing, in the order of a line.
    pub fn by_standing(&self) -> [StandingFigures; Standing::ALL.len()] {
        let desk = self.desk();
        Standing::ALL.map(|standing| StandingFigures {
            standing,
            asked: self.asked[standing.rank()].load(Relaxed),
            refused: self.refused[standing.rank()].load(Relaxed),
            waiting: u32::try_from(desk.ranks.of(standing)).unwrap_or(u32::MAX),
        })
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
            refused: self.refused.iter().map(|count| count.load(Relaxed)).sum(),
            unanswered: self.unanswered.load(Relaxed),
        }
    }

    /// Requests at once; `u32::MAX` for any number.
    pub fn limit(&self) -> u32 {
        self.limit.load(Relaxed)
    }

    /// Requests in work and in line for each that the server works on at once: what a new one has before it.
    pub fn load(&self) -> f64 {
        let before = self.in_work.load(Relaxed) + self.waiting.load(Relaxed);
        f64::from(before + 1) / f64::from(self.limit.load(Relaxed))
    }

    /// Whether a request of this standing that asks now would be refused.
    pub fn is_full(&self, standing: Standing, now_ms: u64) -> bool {
        self.waiting.load(Relaxed) > 0 && !self.desk().has_room(standing, now_ms)
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
        let had_line = !desk.ranks.is_empty();
        self.admit(desk, news);
        if had_line && desk.ranks.is_empty() {
            // From now on none waits, and the server does not count as full until somebody does again.
            self.count(desk, now_ms);
        }
    }

    /// Tells the law and the line what was counted since the last time.
    fn count(&self, desk: &mut Desk, now_ms: u64) {
        let interval_ms = now_ms.saturating_sub(self.counted_ms.swap(now_ms, Relaxed));
        desk.count_asked(now_ms as f64 / 1000.0, self.asked.each_ref().map(|count| count.load(Relaxed)));
        let has_line = !desk.ranks.is_empty();
        let was_full = std::mem::take(&mut desk.was_full) | has_line;
        let seen = Observation {
            interval_s: interval_ms as f64 / 1000.0,
            answers: self.answers.swap(0, Relaxed),
            in_work_s: self.in_work_ms.swap(0, Relaxed) as f64 / 1e3,
            in_work_s_squared: self.in_work_ms_squared.swap(0, Relaxed) as f64 / 1e6,
            in_work: self.in_work.load(Relaxed),
            was_full: was_full && (has_line || interval_ms <= FULL_MS_MAX),
            was_shedding: std::mem::take(&mut desk.was_shedding),
        };
        match &mut desk.law {
            Some(law) => {
                law.step(&seen);
                self.limit.store(law.limit().max(1), SeqCst);
            }
            None => desk.measure(&seen),
        }
        desk.note_step(now_ms, self.figures_at(desk));
    }

    /// Clients whose patience is over leave the line; those of low class after a quarter of it.
    fn dismiss(&self, desk: &mut Desk, now_ms: u64, news: &mut Vec<PlaceNews>) {
        for standing in Standing::ALL {
            while let Some(address) = desk.ranks.pop_late(standing, now_ms, self.patience_ms) {
                self.refused[standing.rank()].fetch_add(1, Relaxed);
                news.push(PlaceNews { address, has_place: false });
            }
        }
        self.note_waiting(desk);
    }

    fn admit(&self, desk: &mut Desk, news: &mut Vec<PlaceNews>) {
        while !desk.ranks.is_empty() && self.take() {
            let first = desk.ranks.pop();
            news.extend(first.map(|address| PlaceNews { address, has_place: true }));
        }
        self.note_waiting(desk);
        desk.was_full |= !desk.ranks.is_empty();
    }

    fn note_waiting(&self, desk: &Desk) {
        self.waiting.store(u32::try_from(desk.ranks.len()).unwrap_or(u32::MAX), SeqCst);
    }
}

#[cfg(test)]
mod tests;
