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

/// The pace of one worker. All times in nanoseconds on the worker's clock.
pub(crate) struct Pace {
    /// `u64::MAX` while nobody asks for an age.
    patience_ns: u64,
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
    /// What is reported now has waited longer than the patience.
    late: bool,
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
            began_ns: now_ns,
            ended_ns: None,
            oldest_ns: now_ns,
            work_ns: 0,
            probed_ns: None,
            next_probe_ns: now_ns,
            steps_left: u32::MAX,
            steps: u32::MAX,
            watched: false,
            late: false,
            requests_before: 0,
            accepted: 0,
            unheard: 0,
            era: 1,
            era_until_ns: u64::MAX,
        }
    }

    pub(crate) fn set_patience(&mut self, patience_ms: Option<u32>) {
        self.patience_ns = patience_ms.map_or(u64::MAX, |ms| u64::from(ms) * 1_000_000);
        (self.late, self.watched, self.era_until_ns) = (false, false, 0);
        if !self.is_on() {
            // Nobody measures it any more.
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
        self.late = now_ns - self.oldest_ns > self.patience_ns;
        self.requests_before = requests;
        self.begin_steps();
    }

    /// One completion more. Returns whether the clock is to be read for `look`.
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
        self.late = self.is_on() && now_ns - self.oldest_ns > self.patience_ns;
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

    /// What is reported now has waited longer than the patience.
    #[inline]
    pub(crate) fn is_late(&self) -> bool {
        self.late
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

    /// Whether so long a time is more than the patience.
    pub(crate) fn is_too_long(&self, waited_ns: u64) -> bool {
        waited_ns > self.patience_ns
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

    /// One that was listened to has been heard, or is gone.
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
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Plays turns of (handing over and sleeping, completions, work for each), in milliseconds, and gives how
    /// many completions of the last one were late.
    fn late_in_last(turns: &[(u64, u32, u64)]) -> u32 {
        let mut pace = Pace::new(0);
        pace.set_patience(Some(100));
        let (mut now_ns, mut requests, mut late) = (0, 0, 0);
        for &(wait_ms, completions, work_ms) in turns {
            now_ns += wait_ms * MS;
            // Nothing else was left behind: the probe is heard first.
            pace.hear_probe();
            pace.begin_turn(now_ns, requests);
            late = 0;
            for _ in 0..completions {
                if pace.step() {
                    pace.look(now_ns);
                }
                late += u32::from(pace.is_late());
                now_ns += if pace.is_late() { 0 } else { work_ms * MS };
                requests += u64::from(!pace.is_late());
            }
            if pace.wants_end() {
                pace.end_turn(now_ns, requests);
            }
        }
        late
    }

    #[test]
    fn an_idle_worker_is_never_late() {
        assert_eq!(late_in_last(&[(10_000, 1, 1), (10_000, 1, 1), (10_000, 64, 1)]), 0);
        assert_eq!(late_in_last(&[(5, 1, 90), (5_000, 1, 90), (5_000, 1, 90)]), 0);
    }

    #[test]
    fn what_waited_for_others_in_a_long_turn_is_late() {
        // 100 ms are over after 100 of them, seen within 32 more.
        let late = late_in_last(&[(0, 300, 1)]);
        assert!((168..=200).contains(&late), "{late}");
        // Once the work is known, it is seen at once.
        let late = late_in_last(&[(10_000, 40, 20), (10_000, 40, 20)]);
        assert!((33..=34).contains(&late), "{late}");
    }

    #[test]
    fn what_came_during_a_long_turn_is_as_old_as_that() {
        assert_eq!(late_in_last(&[(0, 40, 2), (1, 10, 1)]), 0);
        assert_eq!(late_in_last(&[(0, 60, 2), (1, 10, 1)]), 10);
        assert_eq!(late_in_last(&[(0, 60, 2), (500, 10, 1)]), 0);
    }

    #[test]
    fn what_is_reported_before_the_knock_is_older_than_it() {
        let mut pace = Pace::new(0);
        pace.set_patience(Some(100));
        let mut probes = 0;
        for turn in 0..60 {
            // Twenty at a time, in turns that are short for themselves.
            pace.begin_turn(turn * 2 * MS, turn * 20);
            assert_eq!(pace.is_late(), turn > 50, "turn {turn}");
            (0..20).for_each(|_| assert!(!pace.step()));
            assert!(pace.wants_end());
            probes += u32::from(pace.end_turn(turn * 2 * MS + MS, turn * 20 + 20));
        }
        assert_eq!(probes, 1);
        pace.hear_probe();
        pace.begin_turn(120 * MS, 1_200);
        assert!(!pace.is_late());
    }

    #[test]
    fn who_stands_in_line_is_old_for_the_valve() {
        let mut pace = Pace::new(0);
        pace.set_patience(Some(100));
        pace.begin_turn(150 * MS, 0);
        assert!(!pace.is_old(None) && !pace.is_old(Some(125 * MS)) && pace.is_old(Some(124 * MS)));
        assert!(!pace.is_late() && !pace.is_too_long(100 * MS) && pace.is_too_long(101 * MS));
        pace.set_patience(None);
        assert!(!pace.is_old(Some(0)) && !pace.is_too_long(u64::MAX));
    }

    #[test]
    fn without_patience_no_work_is_known_and_no_turn_is_looked_at() {
        let mut pace = Pace::new(0);
        pace.set_patience(Some(100));
        pace.begin_turn(10 * MS, 0);
        pace.end_turn(20 * MS, 20);
        pace.begin_turn(20 * MS, 20);
        assert!(pace.wants_end() && pace.work_ns() > 0);
        pace.set_patience(None);
        assert!(!pace.wants_end() && pace.work_ns() == 0);
    }

    #[test]
    fn an_idle_worker_does_not_knock() {
        let mut pace = Pace::new(0);
        pace.set_patience(Some(100));
        for turn in 1..100 {
            pace.begin_turn(turn * 50 * MS, turn);
            assert!(!pace.step());
            assert!(pace.wants_end() && !pace.end_turn(turn * 50 * MS + MS, turn + 1));
        }
    }

    #[test]
    fn work_is_known_in_requests() {
        let mut pace = Pace::new(0);
        pace.set_patience(Some(1_000));
        assert_eq!(pace.queue_worth(), None);
        pace.begin_turn(10 * MS, 0);
        pace.end_turn(20 * MS, 20);
        assert_eq!(pace.queue_worth(), Some(500));
        let accept = |pace: &mut Pace| {
            pace.count_accepted();
            pace.accepted_too_many(0)
        };
        assert!((0..1_000).all(|_| !accept(&mut pace)) && accept(&mut pace));
        pace.begin_turn(21 * MS, 20);
        assert!(!pace.accepted_too_many(1_000) && pace.accepted_too_many(1_001));
        assert!(pace.may_accept(250) && !pace.may_accept(251));
        pace.set_patience(None);
        assert!(!accept(&mut pace));
        assert_eq!(pace.queue_worth(), None);
        pace.begin_turn(30 * MS, 20);
        assert_eq!(pace.accepted(), 0, "those of the turn before, without patience too");
    }

    #[test]
    fn those_who_stay_silent_do_not_wait_for_us() {
        let mut pace = Pace::new(0);
        pace.set_patience(Some(100));
        pace.begin_turn(MS, 0);
        let silent = pace.count_listened();
        let heard = pace.count_listened();
        pace.count_heard(heard);
        assert_eq!(pace.unheard(), 1);
        pace.begin_turn(102 * MS, 0);
        let late = pace.count_listened();
        assert_eq!(pace.unheard(), 1, "the silent one is not counted any more");
        pace.count_heard(silent);
        assert_eq!(pace.unheard(), 1);
        pace.count_heard(late);
        assert_eq!(pace.unheard(), 0);
        pace.count_listened();
        assert_eq!(pace.unheard(), 1);
        pace.begin_turn(203 * MS, 0);
        assert_eq!(pace.unheard(), 0, "nor is it when nobody is listened to after it");
    }
}
