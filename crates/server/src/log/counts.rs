//! Counts of lines that were written and lost, and why some are lost now: the log's thread writes them.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::settings::Target;

/// Lines written and lines that could not be.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) written: AtomicU64,
    pub(super) failed: AtomicU64,
    /// Why lines are lost at present, by the place that they are for.
    troubles: Mutex<BTreeMap<String, String>>,
}

impl Counts {
    /// Why lines are lost at present.
    pub(super) fn trouble(&self) -> Option<String> {
        let all: Vec<String> = self.troubles().values().cloned().collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// Notes why lines for a place are lost, or that they are not.
    pub(super) fn note(&self, target: &Target, trouble: Option<String>) {
        let mut troubles = self.troubles();
        match trouble {
            Some(trouble) => troubles.insert(target.to_string(), trouble),
            None => troubles.remove(&target.to_string()),
        };
    }

    /// Lines go to other places from now on: these of them are not open. Faults of former places are no
    /// trouble of these.
    pub(super) fn begin(&self, absent: Vec<(String, String)>) {
        *self.troubles() = absent.into_iter().collect();
    }

    fn troubles(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
