//! Whether what stands at a path may be shown to who asks.
//!
//! It must never let an entry with a ruling pass unseen.

use std::sync::Arc;

use staunch_engine::{Answered, thread_busy_ns};

use super::Site;
use crate::content::entry::{Entry, Kind};
use crate::errand::Errand;
use crate::permission::{Asked, Passage, granted};
use crate::respond::AddedFields;
use crate::rules::Ruling;

impl Site {
    /// An entry with a ruling, through the gate.
    #[inline(never)]
    pub(super) fn permit(&mut self, entry: &Entry, asked: Asked<'_>, errand: Errand<'_>) -> Answered {
        let Some(ruling) = &entry.ruling else {
            return self.show(entry, asked, errand);
        };
        match self.permission.pass(ruling, asked, &self.shared, errand) {
            Passage::Open(errand) => self.show(entry, asked, errand),
            Passage::Answered(answered) => answered,
            Passage::Refused(problem, errand) => self.refuse_under(problem, Some(ruling), errand),
        }
    }

    /// An entry that may be shown.
    pub(super) fn show(&mut self, entry: &Entry, asked: Asked<'_>, errand: Errand<'_>) -> Answered {
        let Some(ruling) = entry.ruling.as_deref() else {
            let further = AddedFields { ruling: None, granted: asked.lines };
            return self.reply(entry, asked.path, further, errand);
        };
        errand.note_guard(Some(ruling));
        if ruling.work_us > 0 && matches!(entry.kind, Kind::Content(_)) {
            burn(ruling.work_us);
        }
        let mut granted = granted(ruling, errand.request);
        granted.extend_from_slice(asked.lines);
        let further = AddedFields { ruling: Some(ruling), granted: &granted };
        let errand = match ruling.dictionary {
            Some(_) => match self.reply_with_difference(entry, ruling, further, errand) {
                Ok(answered) => return answered,
                Err(errand) => errand,
            },
            None => errand,
        };
        self.reply(entry, asked.path, further, errand)
    }

    /// The gate for a path of which no entry is at hand.
    pub(super) fn permit_path<'a>(&mut self, asked: Asked<'_>, errand: Errand<'a>) -> Passage<'a> {
        match self.ruling(asked.path) {
            Some(ruling) => self.permission.pass(&ruling, asked, &self.shared, errand),
            None => Passage::Open(errand),
        }
    }

    pub(super) fn permit_entry(&mut self, entry: &Entry, asked: Asked<'_>, errand: Errand<'_>) -> Answered {
        if entry.ruling.is_some() {
            return self.permit(entry, asked, errand);
        }
        let further = AddedFields { ruling: None, granted: asked.lines };
        self.reply(entry, asked.path, further, errand)
    }

    pub(super) fn ruling(&self, path: &[u8]) -> Option<Arc<Ruling>> {
        self.shared.load.rules.as_ref()?.of(path)
    }
}

/// Uses up processor time of this thread.
fn burn(work_us: u32) {
    let end_ns = thread_busy_ns() + u64::from(work_us) * 1000;
    while thread_busy_ns() < end_ns {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests;
