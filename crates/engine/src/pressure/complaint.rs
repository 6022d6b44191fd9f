//! What the operator has to be told while the server runs: one line a second at most, all workers together.
//!
//! It must never wait for whoever reads it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::limits::COMPLAINT_MS;
use crate::line_queue::{LineQueue, Notice};

/// Writes `staunch: TEXT` to standard error, by a [`LineQueue`].
pub fn notice_on_standard_error() -> Notice {
    let queue = LineQueue::of_standard_error(Arc::default()).and_then(|queue| queue.start().map(|()| queue));
    match queue {
        Ok(queue) => Arc::new(move |text| queue.say(text)),
        Err(_) => Arc::new(|_| ()),
    }
}

/// The workers' one voice. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Complaints {
    notice: Notice,
    /// Nothing is said before.
    next_ms: Arc<AtomicU64>,
}

impl Complaints {
    pub(crate) fn new(notice: Notice) -> Self {
        Self { notice, next_ms: Arc::default() }
    }

    /// Complaints that are thrown away.
    pub(crate) fn silent() -> Self {
        Self::new(Arc::new(|_| ()))
    }

    /// Says it, unless something was said within the last second.
    pub(crate) fn say(&self, now_ms: u64, text: impl FnOnce() -> String) {
        let next_ms = self.next_ms.load(Relaxed);
        let is_mine = now_ms >= next_ms
            && self.next_ms.compare_exchange(next_ms, now_ms + COMPLAINT_MS, Relaxed, Relaxed).is_ok();
        if is_mine {
            (self.notice)(&text());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn one_line_a_second() {
        let said = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&said);
        let complaints = Complaints::new(Arc::new(move |text| heard.lock().unwrap().push(text.to_owned())));
        let other = complaints.clone();
        for now_ms in (5_000..8_000).step_by(10) {
            complaints.say(now_ms, || format!("first {now_ms}"));
            other.say(now_ms, || format!("second {now_ms}"));
        }
        assert_eq!(*said.lock().unwrap(), ["first 5000", "first 6000", "first 7000"]);
    }
}
