//! How long requests have waited, and how long one takes: told from when turns began and ended.
//!
//! The kernel gives no times, but what is reported in a turn came after the turn before had begun, if the
//! worker has not slept since; and if it has, it came just now. So the age of everything in a turn has a
//! bound, which costs nothing to know. But a kernel may also keep things back for later turns (io_uring
//! reports some twenty at a time, epoll as many as there is room for). Therefore a busy worker
//! wakes itself now and then through its own mailbox (a probe): until it hears that, everything reported came
//! before the probe.
//!
//! It must never cost a plain turn more than a subtraction a completion: the clock is read once more only
//! where many completions, or slow ones, are behind us. Nor may it wake an idle worker.

use crate::limits::{PATIENCE_STEP_PART, STEP_COMPLETIONS_MAX};

/// Turns that far apart may have been busy all the time: their ends are looked at.
const SUSPICIOUS_NS: u64 = 2_000_000;
/// A turn of so many completions may have left others behind.
const FULL_TURN_COMPLETIONS: u32 = 16;
/// Probes within one patience: its end is told to within an eighth.
const PROBES_COUNT: u64 = 8;
/// Each new measurement moves the mean by one part in so many: a change of load is seen in a few turns.
const MEAN_PART: u64 = 4;

/// How long something has waited, in quarters of the patience: a set of two marks, so that the longer of two
/// waits is both together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Waited(u8);

impl Waited {
    /// Less than a quarter of the patience.
    pub(crate) const SHORT: Self = Self(0);
    /// Longer than a quarter of the patience.
    pub(crate) const LONG: Self = Self(1);
    /// Longer than the patience.
    pub(crate) const TOO_LONG: Self = Self(3);

    /// Longer than a quarter of the patience.
    #[inline]
    pub(crate) fn is_long(self) -> bool {
        self.0 != 0
    }

    /// The longer of both.
    #[inline]
    pub(crate) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The pace of one worker. All times in nanoseconds on the worker's clock.
pub(crate) struct Pace {
    /// `u64::MAX` while nobody asks for an age.
    patience_ns: u64,
    /// A quarter of it; `u64::MAX` as well.
    quarter_ns: u64,
    /// When the present turn began, and the one before ended if that was looked at.
    began_ns: u64,
    ended_ns: Option<u64>,
    /// Nothing that is reported in the present turn came before.
    oldest_ns: u64,
    /// Mean work for one request of the application; 0 while unknown.
    work_ns: u64,
    /// When the worker probed, if it has not heard it yet, and when it probes again at the earliest.
    probed_ns: Option<u64>,
    next_probe_ns: u64,
    /// Completions until the clock is to be read again, and how many there were at first.
    steps_left: u32,
    steps: u32,
    /// The end of the present turn is to be looked at.
    watched: bool,
    /// How long what is reported now has waited.
    waited: Waited,
    /// Requests that were worked on before the present turn.
    requests_before: u64,
    /// Connections accepted in the present turn.
    accepted: u32,
    /// Connections that are listened to and of which nothing was heard yet: io_uring reports what the peers
    /// have sent some turns later.
    unheard: u32,
    /// They are counted for one patience; which one this is, and when it ends.
    era: u8,
    era_until_ns: u64,
}

impl Pace {
    pub(crate) fn new(now_ns: u64) -> Self {
        Self {
            patience_ns: u64::MAX,
            quarter_ns: u64::MAX,
            began_ns: now_ns,
            ended_ns: None,
            oldest_ns: now_ns,
            work_ns: 0,
            probed_ns: None,
            next_probe_ns: now_ns,
            steps_left: u32::MAX,
            steps: u32::MAX,
            watched: false,
            waited: Waited::SHORT,
            requests_before: 0,
            accepted: 0,
            unheard: 0,
            era: 1,
            era_until_ns: u64::MAX,
        }
    }

    pub(crate) fn set_patience(&mut self, patience_ms: Option<u32>) {
        self.patience_ns = patience_ms.map_or(u64::MAX, |ms| u64::from(ms) * 1_000_000);
        self.quarter_ns = patience_ms.map_or(u64::MAX, |_| self.patience_ns / 4);
        (self.waited, self.watched, self.era_until_ns) = (Waited::SHORT, false, 0);
        if !self.is_on() {
            // The work is not measured any more.
            self.work_ns = 0;
        }
        self.begin_steps();
    }

    fn is_on(&self) -> bool {
        self.patience_ns != u64::MAX
    }

    /// Mean work for one request of the application, in nanoseconds; 0 while unknown.
    #[inline]
    pub(crate) fn work_ns(&self) -> u64 {
        self.work_ns
    }

    /// A turn begins, after `requests` requests in all.
    #[inline]
    pub(crate) fn begin_turn(&mut self, now_ns: u64, requests: u64) {
        self.accepted = 0;
        if !self.is_on() {
            return;
        }
        let before_ns = std::mem::replace(&mut self.began_ns, now_ns);
        self.oldest_ns = match self.ended_ns.take() {
            Some(ended_ns) => {
                // Handing over takes time too, about in step with the turn; what is longer was sleep.
                let busy_ns = ended_ns - before_ns;
                let slept = now_ns - ended_ns > SUSPICIOUS_NS / 2 + busy_ns / 4;
                if slept { now_ns } else { before_ns }
            }
            None => now_ns,
        };
        if let Some(probed_ns) = self.probed_ns {
            self.oldest_ns = self.oldest_ns.min(probed_ns);
        }
        self.watched = now_ns - before_ns >= SUSPICIOUS_NS;
        self.waited = self.judge(now_ns - self.oldest_ns);
        self.requests_before = requests;
        self.begin_steps();
    }

    /// Counts a completion. Returns whether the clock is to be read for `look`.
    #[inline]
    pub(crate) fn step(&mut self) -> bool {
        self.steps_left -= 1;
        self.steps_left == 0
    }

    /// The time within a turn.
    #[cold]
    pub(crate) fn look(&mut self, now_ns: u64) {
        self.begin_steps();
        self.watched = self.is_on();
        self.waited = self.judge(now_ns.saturating_sub(self.oldest_ns));
    }

    /// The worker has heard its own probe: what comes now came after it.
    pub(crate) fn hear_probe(&mut self) {
        self.probed_ns = None;
    }

    /// Whether the clock is to be read for `end_turn`.
    #[inline]
    pub(crate) fn wants_end(&self) -> bool {
        self.watched || self.is_on() && self.steps - self.steps_left >= FULL_TURN_COMPLETIONS
    }

    /// The turn is over, after `requests` requests in all. Returns whether the worker is to probe.
    pub(crate) fn end_turn(&mut self, now_ns: u64, requests: u64) -> bool {
        self.ended_ns = Some(now_ns);
        let is_busy =
            self.steps - self.steps_left >= FULL_TURN_COMPLETIONS || now_ns - self.began_ns >= SUSPICIOUS_NS;
        let probes = is_busy && self.probed_ns.is_none() && now_ns >= self.next_probe_ns;
        if probes {
            self.probed_ns = Some(now_ns);
            self.next_probe_ns = now_ns + self.patience_ns / PROBES_COUNT;
        }
        let worked = requests - self.requests_before;
        if let Some(work_ns) = (now_ns - self.began_ns).checked_div(worked) {
            self.work_ns = match self.work_ns {
                0 => work_ns,
                before_ns => before_ns - before_ns / MEAN_PART + work_ns / MEAN_PART,
            };
        }
        probes
    }

    /// How long what is reported now has waited.
    #[inline]
    pub(crate) fn waited(&self) -> Waited {
        self.waited
    }

    /// When, at the earliest, what is reported now came.
    #[inline]
    pub(crate) fn came_ms(&self, now_ms: u64) -> u64 {
        if self.is_on() { self.oldest_ns / 1_000_000 } else { now_ms }
    }

    /// Whether what is reported in this turn, or the newcomer who came then, may have waited longer than a
    /// quarter of the patience before.
    pub(crate) fn is_old(&self, newcomer_ns: Option<u64>) -> bool {
        let oldest_ns = newcomer_ns.unwrap_or(u64::MAX).min(self.oldest_ns);
        self.is_on() && self.began_ns.saturating_sub(oldest_ns) > self.patience_ns / 4
    }

    /// How long a wait of so many nanoseconds is; short while nobody asks.
    #[inline]
    pub(crate) fn judge(&self, waited_ns: u64) -> Waited {
        if waited_ns <= self.quarter_ns {
            Waited::SHORT
        } else if waited_ns <= self.patience_ns {
            Waited::LONG
        } else {
            Waited::TOO_LONG
        }
    }

    /// A connection was accepted.
    #[inline]
    pub(crate) fn count_accepted(&mut self) {
        self.accepted += 1;
    }

    /// A new connection is listened to. Returns what is to be told to `count_heard`.
    #[inline]
    pub(crate) fn count_listened(&mut self) -> u8 {
        if self.began_ns >= self.era_until_ns {
            self.begin_era();
        }
        self.unheard += 1;
        self.era
    }

    /// Whether the connections accepted in this turn, or those in line, are more work than may wait.
    #[inline]
    pub(crate) fn accepted_too_many(&self, in_line: u32) -> bool {
        self.is_on() && u64::from(self.accepted.max(in_line)) * self.work_ns > self.patience_ns / 2
    }

    /// Whether so few in line that more may be accepted.
    #[inline]
    pub(crate) fn may_accept(&self, in_line: u32) -> bool {
        in_line == 0 || u64::from(in_line) * self.work_ns <= self.patience_ns / 8
    }

    /// Of whom nothing was heard for a patience is silent: they wait for themselves, not for us.
    #[cold]
    fn begin_era(&mut self) {
        self.era = self.era.checked_add(1).unwrap_or(1);
        self.era_until_ns = self.began_ns.saturating_add(self.patience_ns);
        self.unheard = 0;
    }

    /// Counts that a connection which was listened to has been heard, or is gone.
    #[inline]
    pub(crate) fn count_heard(&mut self, listened: u8) {
        if listened == self.era {
            self.unheard = self.unheard.saturating_sub(1);
        }
    }

    /// How many are listened to and not heard yet. Time alone takes silent ones off the count: nobody else is
    /// accepted while they keep the valve shut.
    pub(crate) fn unheard(&mut self) -> u32 {
        if self.began_ns >= self.era_until_ns {
            self.begin_era();
        }
        self.unheard
    }

    /// How many connections were accepted in this turn.
    pub(crate) fn accepted(&self) -> u32 {
        self.accepted
    }

    /// How many requests are a quarter of the patience; `None` while that is not known or not asked for.
    pub(crate) fn queue_worth(&self) -> Option<u64> {
        let worth = (self.patience_ns / 4).checked_div(self.work_ns)?;
        self.is_on().then_some(worth)
    }

    fn begin_steps(&mut self) {
        self.steps = if self.is_on() { self.worth_of_steps() } else { u32::MAX };
        self.steps_left = self.steps;
    }

    /// After how many completions the clock is worth reading again.
    fn worth_of_steps(&self) -> u32 {
        let step_ns = self.patience_ns / PATIENCE_STEP_PART;
        let steps = step_ns.checked_div(self.work_ns).unwrap_or(u64::from(STEP_COMPLETIONS_MAX));
        steps.clamp(1, u64::from(STEP_COMPLETIONS_MAX)) as u32
    }
}

#[cfg(test)]
mod tests;
