//! The load generator's account of a run (`staunch load --json`), and sums that follow from it.
//!
//! This file owns sums over a [`Document`]. It must never make a number of a figure that is not there.
use staunch_loadgen::Counts;
use staunch_loadgen::report::Document;

use crate::reading::Said;

/// Reads it.
///
/// # Errors
/// Text that is no such document; says which field is missing.
pub(crate) fn read(text: &str) -> Result<Document, String> {
    Document::read("staunch load", text).map_err(|fault| fault.to_string())
}

/// Sums over the account of a run.
pub(crate) trait Account {
    /// Right answers in time, a second, while requests were offered: what is answered afterwards would be
    /// more than a server can do.
    fn goodput_per_s(&self) -> f64;
    /// Right answers in time, a second, from one time of the run to another, in seconds.
    fn in_time_between(&self, from: f64, to: f64) -> f64;
    /// Right answers in time, by step.
    fn in_time_steps(&self) -> &[u64];
    /// Requests offered, a second.
    fn offered_per_s(&self) -> f64;
    /// How many requests the generator did not begin, where that is a hundredth or more: less was offered
    /// then than was meant.
    fn shortfall(&self) -> Option<String>;
    /// Rates and delays of the requests that were answered, whatever became of the others.
    ///
    /// # Errors
    /// There was no answer.
    fn answers(&self) -> Result<Said, String>;
    /// Rates and delays of a run in which every request must be answered.
    ///
    /// # Errors
    /// A request that was lost or never sent.
    fn said(&self) -> Result<Said, String>;
}

impl Account for Document {
    fn goodput_per_s(&self) -> f64 {
        self.in_time_between(0.0, self.seconds)
    }

    fn in_time_between(&self, from: f64, to: f64) -> f64 {
        let steps = self.moments.at_ms.iter().zip(self.in_time_steps());
        let (from_ms, to_ms) = ((1000.0 * from).round() as u64, (1000.0 * to).round() as u64);
        let meant = steps.filter(|(at_ms, _)| (from_ms + 1..=to_ms).contains(at_ms));
        meant.map(|(_, count)| count).sum::<u64>() as f64 / (to - from).max(1e-3)
    }

    fn in_time_steps(&self) -> &[u64] {
        self.moments.counts.get("in_time").map_or(&[], Vec::as_slice)
    }

    fn offered_per_s(&self) -> f64 {
        self.main.offered as f64 / self.seconds.max(1e-3)
    }

    fn shortfall(&self) -> Option<String> {
        let Counts { offered, unsent, .. } = self.main.counts;
        let words = || format!("the generator did not begin {unsent} of {offered} requests");
        (unsent > 0 && 100 * unsent >= offered).then(words)
    }

    fn answers(&self) -> Result<Said, String> {
        let said = |percentile: Option<f64>| percentile.ok_or("staunch load got no answer");
        let latency_ms = &self.main.latency_ms;
        Ok(Said {
            answered: self.main.in_time + self.main.late,
            per_second: self.main.rate_per_s,
            p50_ms: said(latency_ms.p50)?,
            p99_ms: said(latency_ms.p99)?,
            p999_ms: latency_ms.p999,
        })
    }

    fn said(&self) -> Result<Said, String> {
        let (lost, unsent) = (lost(&self.main), self.main.unsent);
        if lost + unsent > 0 {
            return Err(format!("staunch load: {lost} requests lost, {unsent} not sent"));
        }
        self.answers()
    }
}

/// Requests that were sent, and ended otherwise than by a right answer.
pub(crate) fn lost(counts: &Counts) -> u64 {
    counts.errors() - counts.unsent
}

/// The ends of requests that were not answered rightly, in words.
pub(crate) fn other_ends(counts: &Counts) -> String {
    let Counts { refused, reset, wrong_answer, timed_out, failed, unsent, .. } = counts;
    format!(
        "refused {refused}, reset {reset}, wrong answer {wrong_answer}, timed out {timed_out}, failed \
         {failed}, unsent {unsent}"
    )
}

/// A run that nobody made: what became of its requests, and the right answers of its steps of 100 ms.
#[cfg(test)]
pub(crate) fn made_up(seconds: f64, counts: Counts, in_time_steps: &[u64]) -> Document {
    let mut document = Document { seconds, ..Document::default() };
    document.main.counts = counts;
    document.moments.at_ms = (1..=in_time_steps.len() as u64).map(|step| 100 * step).collect();
    document.moments.counts.insert("in_time".to_owned(), in_time_steps.to_vec());
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_count_while_requests_are_offered() {
        let document = made_up(0.2, Counts { offered: 8, ..Counts::default() }, &[3, 1, 9]);
        assert!((document.goodput_per_s() - 20.0).abs() < 1e-9);
        assert!((document.offered_per_s() - 40.0).abs() < 1e-9);
        assert!((document.in_time_between(0.1, 0.2) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn a_hundredth_that_was_not_begun_is_said() {
        let of =
            |unsent| made_up(1.0, Counts { offered: 1000, unsent, ..Counts::default() }, &[]).shortfall();
        assert_eq!(of(9), None);
        assert_eq!(of(10).as_deref(), Some("the generator did not begin 10 of 1000 requests"));
    }

    #[test]
    fn no_loss_is_hidden() {
        let counts = Counts { in_time: 1, late: 2, reset: 4, timed_out: 6, unsent: 8, ..Counts::default() };
        let mut document = made_up(1.0, counts, &[]);
        assert_eq!(document.said(), Err("staunch load: 10 requests lost, 8 not sent".to_owned()));
        assert!(document.answers().is_err(), "no time was measured");
        document.main.latency_ms.p50 = Some(1.0);
        document.main.latency_ms.p99 = Some(2.0);
        assert_eq!(document.answers().map(|said| said.answered), Ok(3));
        document.main.counts = Counts { in_time: 5, ..Counts::default() };
        assert_eq!(document.said().map(|said| said.p99_ms), Ok(2.0));
        assert_eq!(
            read("{}").map(|_| ()),
            Err("staunch load: has no `format`, not 2: it was not written by \
            `staunch load --json` of this version"
                .to_owned())
        );
    }
}
