//! The part of a server's places behind a lock: its law, its line, and those that stand there.
//!
//! The desk must never touch the ledger: places are taken and given back by `places`.

use std::collections::VecDeque;

use super::figures::{PlacesFigures, PlacesStep};
use super::ranks::{Ranks, STRANGERS_PART};
use crate::upstream::law::{LimitLaw, Observation};
use crate::upstream::line::{ROOM_UNKNOWN, Served, WaitingLine};
use crate::upstream::standing::{PlaceClass, Standing};

/// Milliseconds for which steps are kept for people: as far back as somebody asks who has just seen a fault.
const STEPS_KEPT_MS: u64 = 60_000;
/// Most steps that are kept, whatever happens in that time: four a second.
const STEPS_KEPT_MAX: usize = 240;
/// Longest time that refused clients are asked to stay away, in seconds: people do not wait for longer.
const SPREAD_S_MAX: u32 = 30;

/// How many classes there are, each with known clients and strangers.
const CLASSES: usize = Standing::ALL.len() / 2;

/// The part behind a lock, which is taken while requests wait, and some thirty times a second.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) law: Option<LimitLaw>,
    /// The rate and the time in work where no law knows them.
    measured: Served,
    /// How many may wait, by standing: each counts those that go before it as well, and no others. So a crowd
    /// of one class closes the line to that class, and to what gives way to it.
    lines: [WaitingLine; Standing::ALL.len()],
    /// How many strangers may wait, by class, for the part of its places that known clients do not get.
    lines_of_strangers: [WaitingLine; CLASSES],
    /// Requests that had asked when they were counted last, by standing.
    asked: [u64; Standing::ALL.len()],
    pub(super) ranks: Ranks,
    pub(super) was_full: bool,
    pub(super) was_shedding: bool,
    /// Steps of the last minute.
    pub(super) steps: VecDeque<PlacesStep>,
}

impl Desk {
    /// An empty line, before a server of which nothing is known.
    pub(super) fn new(law: Option<LimitLaw>, patience_s: f64) -> Self {
        let line = |class: PlaceClass| match class {
            PlaceClass::High | PlaceClass::Normal => WaitingLine::new(patience_s),
            PlaceClass::Low => WaitingLine::of_low_class(patience_s),
        };
        Self {
            law,
            measured: Served::default(),
            lines: Standing::ALL.map(|standing| line(standing.class)),
            lines_of_strangers: [PlaceClass::High, PlaceClass::Normal, PlaceClass::Low].map(line),
            asked: [0; Standing::ALL.len()],
            ranks: Ranks::default(),
            was_full: false,
            was_shedding: false,
            steps: VecDeque::new(),
        }
    }

    /// Counts arrivals, from how many requests of each standing have asked since the start.
    pub(super) fn count_asked(&mut self, now_s: f64, asked: [u64; Standing::ALL.len()]) {
        let before = std::mem::replace(&mut self.asked, asked);
        let mut all = 0;
        for (rank, (asked, before)) in asked.into_iter().zip(before).enumerate() {
            let came = u32::try_from(asked.saturating_sub(before)).unwrap_or(u32::MAX);
            all = came.saturating_add(all);
            self.lines[rank].came(now_s, all);
            if !Standing::ALL[rank].is_known {
                self.lines_of_strangers[rank / 2].came(now_s, came);
            }
        }
    }

    /// The rate of the server, as the law knows it, or as it was measured.
    pub(super) fn served(&self) -> Served {
        let of_law = |law: &LimitLaw| Served { rate: law.rate(), in_work_s: law.in_work_s() };
        self.law.as_ref().map_or(self.measured, of_law)
    }

    /// Measures the rate of a server that is full, as the average of about the last second.
    pub(super) fn measure(&mut self, seen: &Observation) {
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

    /// Whether one more request of this standing may wait.
    pub(super) fn has_room(&mut self, standing: Standing, now_ms: u64) -> bool {
        let waited_s = seconds_since(self.ranks.since_ms(standing), now_ms);
        let room = self.lines[standing.rank()].room(self.served(), waited_s);
        if self.ranks.before(standing) < room as usize {
            return true;
        }
        !standing.is_known && self.ranks.of(standing) < self.room_for_strangers(standing, now_ms)
    }

    /// How many strangers of a class may wait whatever known clients of it do: as if they had a server of
    /// their own, with their part of what better classes leave of this one.
    fn room_for_strangers(&mut self, standing: Standing, now_ms: u64) -> usize {
        let Served { rate, in_work_s } = self.served();
        if rate <= 0.0 {
            return ROOM_UNKNOWN as usize / usize::from(STRANGERS_PART);
        }
        let class = standing.rank() / 2;
        let above = class.checked_sub(1).map_or(0, |better| self.lines[2 * better + 1].offered());
        let rate = (rate - f64::from(above)) / f64::from(STRANGERS_PART);
        if rate <= 0.0 {
            return 0;
        }
        let waited_s = seconds_since(self.ranks.own_since_ms(standing), now_ms);
        self.lines_of_strangers[class].room(Served { rate, in_work_s }, waited_s) as usize
    }

    /// Seconds over which those spread who come back: as long as the crowd of a second takes, without those
    /// that give way to them.
    pub(super) fn spread_s(&self, standing: Standing) -> u32 {
        let Served { rate, .. } = self.served();
        if rate <= 0.0 {
            return 1;
        }
        let offered = f64::from(self.lines[standing.rank()].offered());
        (offered / rate).ceil().clamp(1.0, f64::from(SPREAD_S_MAX)) as u32
    }

    /// Notes each limit and each reason, and the figures of each second in which requests waited.
    pub(super) fn note_step(&mut self, now_ms: u64, figures: PlacesFigures) {
        let reason = self.law.as_ref().map(LimitLaw::reason);
        let is_news = self.steps.back().is_none_or(|last| {
            let is_other = (last.figures.limit, last.reason) != (figures.limit, reason);
            is_other || now_ms.saturating_sub(last.at_ms) >= 1_000
        });
        if !is_news {
            return;
        }
        self.steps.push_back(PlacesStep { at_ms: now_ms, figures, reason });
        let is_old = |step: &mut PlacesStep| now_ms.saturating_sub(step.at_ms) > STEPS_KEPT_MS;
        while self.steps.pop_front_if(is_old).is_some() {}
        if self.steps.len() > STEPS_KEPT_MAX {
            self.steps.pop_front();
        }
    }
}

fn seconds_since(since_ms: Option<u64>, now_ms: u64) -> f64 {
    since_ms.map_or(0, |since_ms| now_ms.saturating_sub(since_ms)) as f64 / 1000.0
}
