//! A run with readers while it is under way: a line with a bar that is drawn again and again, or a line a
//! second where there is no terminal.
//!
//! Its order: `new`, `observe` for each step, `finish`. It must never read a clock: steps bring their time.
//! It writes to standard error, so that standard output stays free for files.

use std::time::Duration;

use console::{Term, truncate_str};
use staunch_figures::words;

use super::outcome::{LIVE_STEP_MS, LiveMoment, LivePhase};

/// Steps between two lines where there is no terminal.
const STEPS_A_LINE: u64 = 1000 / LIVE_STEP_MS;
/// Steps between two drawings.
const STEPS_A_FRAME: u64 = 2;
/// Width of the bar.
const BAR_WIDTH: usize = 20;

/// The view of a run on a terminal.
#[derive(Debug)]
pub struct LiveView {
    terminal: Term,
    is_terminal: bool,
    readers: u64,
    duration: Option<Duration>,
    updates: Option<u64>,
    steps: u64,
    /// The longest delay since the last drawing or line, in nanoseconds.
    delay_max_ns: u64,
    is_drawn: bool,
}

impl LiveView {
    /// A view on standard error of so many readers, and of a run that is over after that time or so many
    /// updates.
    pub fn new(readers: u64, duration: Option<Duration>, updates: Option<u64>) -> Self {
        let terminal = Term::buffered_stderr();
        let is_terminal = terminal.is_term();
        Self { terminal, is_terminal, readers, duration, updates, steps: 0, delay_max_ns: 0, is_drawn: false }
    }

    /// Takes a step of the run, and draws when it is time. A terminal that went away is no reason to end a
    /// run.
    pub fn observe(&mut self, moment: &LiveMoment) {
        self.steps += 1;
        self.delay_max_ns = self.delay_max_ns.max(moment.delay_max_ns);
        let steps = if self.is_terminal { STEPS_A_FRAME } else { STEPS_A_LINE };
        if self.steps.is_multiple_of(steps) {
            let width = if self.is_terminal { usize::from(self.terminal.size().1) } else { usize::MAX };
            let line = self.line(moment, width);
            self.delay_max_ns = 0;
            let _ = self.draw(&line);
        }
    }

    /// Takes the view away, so that the summary stands in its place.
    pub fn finish(&mut self) {
        if self.is_terminal {
            let _ = self.clear().and_then(|()| self.terminal.flush());
        }
    }

    /// The line of a moment, at most so wide.
    fn line(&self, moment: &LiveMoment, width: usize) -> String {
        let counts = &moment.counts;
        let (phase, share) = self.progress(moment);
        let filled = (share * BAR_WIDTH as f64) as usize;
        let bar = format!("[{}{}]", "#".repeat(filled), ".".repeat(BAR_WIDTH - filled));
        let readers = format!("{}/{} readers", words::count(moment.open), words::count(self.readers));
        let mut line = format!("{:5.1} s  {bar} {phase:<10}  {readers}", moment.at_ms as f64 / 1000.0);
        if moment.phase != LivePhase::Gathering {
            let longest = words::time_ns(self.delay_max_ns as f64);
            line += &format!(
                "  {} published, {} delivered, delay at most {longest}",
                words::count(moment.published),
                words::count(counts.delivered)
            );
        }
        let faults = [
            ("passed over", counts.lost),
            ("out of order", counts.out_of_order),
            ("duplicated", counts.duplicated),
            ("refused", counts.refused),
            ("wrong answers", counts.wrong_answer),
        ];
        for (name, count) in faults.iter().filter(|(_, count)| *count > 0) {
            line += &format!(", {} {name}", words::count(*count));
        }
        truncate_str(&line, width, "…").into_owned()
    }

    /// What is done, and which share of it is.
    fn progress(&self, moment: &LiveMoment) -> (&'static str, f64) {
        let counts = &moment.counts;
        let of = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let (phase, share) = match moment.phase {
            LivePhase::Gathering => ("connecting", of(moment.open, self.readers)),
            LivePhase::Publishing => {
                let time =
                    self.duration.map(|duration| of(moment.publishing_ms, duration.as_millis() as u64));
                let updates = self.updates.map(|updates| of(moment.published, updates));
                ("updating", time.into_iter().chain(updates).fold(0.0, f64::max))
            }
            LivePhase::Settling => ("settling", of(counts.delivered, counts.delivered + counts.lost)),
        };
        (phase, share.clamp(0.0, 1.0))
    }

    fn draw(&mut self, line: &str) -> std::io::Result<()> {
        if self.is_terminal {
            self.clear()?;
        }
        self.terminal.write_line(line)?;
        self.is_drawn = true;
        self.terminal.flush()
    }

    fn clear(&mut self) -> std::io::Result<()> {
        if std::mem::take(&mut self.is_drawn) { self.terminal.clear_last_lines(1) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::outcome::LiveCounts;

    #[test]
    fn each_phase_has_its_line() {
        let view = LiveView::new(10, Some(Duration::from_secs(2)), None);
        let counts = LiveCounts { delivered: 30, lost: 10, ..LiveCounts::default() };
        let mut moment = LiveMoment { at_ms: 100, open: 5, ..LiveMoment::default() };
        let line = view.line(&moment, 200);
        assert_eq!(line, "  0.1 s  [##########..........] connecting  5/10 readers");
        moment =
            LiveMoment { phase: LivePhase::Publishing, publishing_ms: 500, published: 4, counts, ..moment };
        let line = view.line(&moment, 200);
        assert!(
            line.contains("[#####...............] updating    5/10 readers  4 published, 30 del"),
            "{line}"
        );
        moment.phase = LivePhase::Settling;
        let line = view.line(&moment, 200);
        assert!(line.contains("[###############.....] settling"), "{line}");
        assert!(line.ends_with(", 10 passed over"), "{line}");
        assert_eq!(view.line(&moment, 20).chars().count(), 20);
    }
}
