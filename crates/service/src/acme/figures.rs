//! Metrics of the agent: attempts by outcome, failures in a row by name.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use staunch_acme::NameState;

/// What the agent has reported, for the metrics.
#[derive(Debug, Default)]
pub(super) struct AcmeFigures {
    successes: AtomicU64,
    failures: AtomicU64,
    states: Mutex<BTreeMap<String, NameState>>,
}

impl AcmeFigures {
    pub(super) fn attempted(&self, is_success: bool) {
        let count = if is_success { &self.successes } else { &self.failures };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Forgets names that the settings no longer have.
    pub(super) fn keep_only(&self, names: &[String]) {
        let mut states = self.states.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        states.retain(|name, _| names.contains(name));
    }

    pub(super) fn state(&self, state: NameState) {
        let mut states = self.states.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        states.insert(state.name.clone(), state);
    }

    /// The agent's metrics in the text format of Prometheus, version 0.0.4.
    pub(super) fn text(&self) -> String {
        let mut text = String::from(
            "# HELP staunch_acme_attempts_total Orders of certificates that came to an end, by outcome.\n\
             # TYPE staunch_acme_attempts_total counter\n",
        );
        for (outcome, count) in [("obtained", &self.successes), ("failed", &self.failures)] {
            let count = count.load(Ordering::Relaxed);
            let _ = writeln!(text, "staunch_acme_attempts_total{{outcome=\"{outcome}\"}} {count}");
        }
        text.push_str(
            "# HELP staunch_acme_failures Attempts in a row that came to nothing, by name.\n\
             # TYPE staunch_acme_failures gauge\n",
        );
        for state in self.states.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).values() {
            let (name, failures) = (&state.name, state.record.failures);
            let _ = writeln!(text, "staunch_acme_failures{{name=\"{name}\"}} {failures}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_counted() {
        let figures = AcmeFigures::default();
        figures.attempted(true);
        figures.attempted(false);
        figures.attempted(false);
        let state = NameState { name: "a.example".into(), expires_unix_s: None, record: Default::default() };
        figures.state(state);
        let text = figures.text();
        for line in [
            "staunch_acme_attempts_total{outcome=\"obtained\"} 1\n",
            "staunch_acme_attempts_total{outcome=\"failed\"} 2\n",
            "staunch_acme_failures{name=\"a.example\"} 0\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        figures.keep_only(&["b.example".into()]);
        assert!(!figures.text().contains("a.example"), "{}", figures.text());
    }
}
