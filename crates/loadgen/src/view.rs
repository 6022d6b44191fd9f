//! The run while it is under way: some lines on a terminal that are drawn again and again, or a line a second
//! where there is none.
//!
//! Its order: `new`, `observe` for each step, `finish`. It must never read a clock or a key: steps bring
//! their time, and who reads keys tells the rate's factor. It writes to standard error, so that standard
//! output stays free for files.

mod frame;

use std::collections::VecDeque;

use console::Term;

use crate::outcome::{Counts, MOMENT_MS, Moment};
pub use frame::Facts;
use frame::{Recent, Standing};

/// Steps between two drawings: 200 ms, as often as one can read.
const STEPS_A_FRAME: u64 = 2;
/// Steps between two lines where there is no terminal.
const STEPS_A_LINE: u64 = 1_000 / MOMENT_MS;
/// Steps that rates and percentiles are made from: the last second.
const STEPS_RECENT_MAX: usize = (1_000 / MOMENT_MS) as usize;
/// Steps that the sparkline is made from: a minute is more than a line can show.
const STEPS_KEPT_MAX: usize = (60_000 / MOMENT_MS) as usize;

/// The live view.
#[derive(Debug)]
pub struct View {
    terminal: Term,
    is_terminal: bool,
    facts: Facts,
    factor: f64,
    steps: u64,
    total: Counts,
    kept: VecDeque<Moment>,
    lines_drawn: usize,
}

impl View {
    /// A view on standard error.
    pub fn new(facts: Facts) -> Self {
        let terminal = Term::buffered_stderr();
        let is_terminal = terminal.is_term();
        Self::on(terminal, is_terminal, facts)
    }

    fn on(terminal: Term, is_terminal: bool, facts: Facts) -> Self {
        Self {
            terminal,
            is_terminal,
            facts,
            factor: 1.0,
            steps: 0,
            total: Counts::default(),
            kept: VecDeque::with_capacity(STEPS_KEPT_MAX),
            lines_drawn: 0,
        }
    }

    /// Shows a rate changed by a key: 1 is the plan's.
    pub fn set_factor(&mut self, factor: f64) {
        self.factor = factor;
    }

    /// Takes a step of the run, and draws when it is time. A terminal that went away is no reason to end a
    /// run.
    pub fn observe(&mut self, moment: &Moment) {
        self.steps += 1;
        self.total += moment.counts;
        if self.kept.len() == STEPS_KEPT_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back(moment.clone());
        if self.is_terminal && self.steps.is_multiple_of(STEPS_A_FRAME) {
            let _ = self.draw();
        } else if !self.is_terminal && self.steps.is_multiple_of(STEPS_A_LINE) {
            let line = frame::line(&self.standing());
            let _ = self.terminal.write_line(&line).and_then(|()| self.terminal.flush());
        }
    }

    /// Takes the view away, so that the summary stands in its place.
    pub fn finish(&mut self) {
        if self.is_terminal {
            let _ = self.clear().and_then(|()| self.terminal.flush());
            self.lines_drawn = 0;
        }
    }

    /// The lines of a terminal of that width.
    pub fn frame(&self, width: usize, colour: bool) -> Vec<String> {
        frame::lines(&self.standing(), width, colour)
    }

    fn standing(&self) -> Standing<'_> {
        Standing {
            facts: &self.facts,
            factor: self.factor,
            total: &self.total,
            recent: Recent::of(self.kept.iter().rev().take(STEPS_RECENT_MAX)),
            kept: &self.kept,
        }
    }

    fn draw(&mut self) -> std::io::Result<()> {
        let (height, width) = self.terminal.size();
        let mut lines = self.frame(usize::from(width), console::colors_enabled_stderr());
        // What scrolled out at the top could not be drawn over.
        lines.truncate(usize::from(height).saturating_sub(1));
        self.clear()?;
        for line in &lines {
            self.terminal.write_line(line)?;
        }
        self.lines_drawn = lines.len();
        self.terminal.flush()
    }

    fn clear(&self) -> std::io::Result<()> {
        self.terminal.move_cursor_up(self.lines_drawn)?;
        if self.lines_drawn > 0 { self.terminal.clear_to_end_of_screen() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::report::made_up;

    fn facts() -> Facts {
        Facts {
            title: "open loop, 10000/s Poisson".to_owned(),
            target: "http://127.0.0.1:8080/".to_owned(),
            duration: Some(Duration::from_secs(10)),
            keys: "+ - rate   0 as planned   q end".to_owned(),
        }
    }

    fn view(facts: Facts, steps: usize) -> View {
        let mut view = View::on(Term::buffered_stderr(), false, facts);
        for moment in made_up::overload().moments.iter().take(steps) {
            view.total += moment.counts;
            view.kept.push_back(moment.clone());
        }
        view
    }

    #[test]
    fn every_width_holds_every_line() {
        for width in [20, 40, 80, 200] {
            for steps in [0, 1, 45, 100] {
                for line in view(facts(), steps).frame(width, false) {
                    assert!(line.chars().count() <= width, "{width} {steps}: {line:?}");
                }
            }
        }
    }

    #[test]
    fn a_frame_shows_where_the_run_stands() {
        let mut half = view(facts(), 50);
        let text = half.frame(80, false).join("\n");
        assert!(text.contains("5.0 s of 10.0 s") && text.contains("50 %"), "{text}");
        assert!(text.contains("timed out") && text.contains("q end"), "{text}");
        assert!(!text.contains("rate x"), "{text}");
        half.set_factor(1.5);
        assert!(half.frame(80, false).join("\n").contains("rate x1.50"));
        let endless = view(Facts { duration: None, ..facts() }, 50);
        let text = endless.frame(80, false).join("\n");
        assert!(text.contains("5.0 s") && !text.contains(" of ") && !text.contains('['), "{text}");
        assert_eq!(
            console::strip_ansi_codes(&half.frame(80, true).join("\n")),
            half.frame(80, false).join("\n")
        );
    }

    #[test]
    fn words_from_outside_cannot_move_the_cursor() {
        let view = view(Facts { target: "http://x/\u{1b}[2J".to_owned(), ..facts() }, 3);
        assert!(!view.frame(80, false).join("\n").contains('\u{1b}'));
    }

    #[test]
    fn observing_counts_every_step_and_keeps_a_minute() {
        let mut view = View::on(Term::buffered_stderr(), true, facts());
        view.is_terminal = false;
        let outcome = made_up::overload();
        // Fewer steps than a line is written after, so that the test writes nothing.
        outcome.moments.iter().take(9).for_each(|moment| view.observe(moment));
        let offered: u64 = outcome.moments.iter().take(9).map(|moment| moment.counts.offered).sum();
        assert_eq!(view.total.offered, offered);
        assert_eq!(view.kept.len(), 9);
    }
}
