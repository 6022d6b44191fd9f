//! A follower of live data beside the workers: what tells other nodes of it.
//!
//! This file owns the bound of letters that wait for the follower. It must never make the writer wait:
//! letters that find no room are dropped, and an introduction follows once there is room again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use staunch_live::Letter;

use crate::limits::FOLLOWED_LETTERS_MAX;

/// What the one who follows is woken by.
type Wake = Arc<dyn Fn() + Send + Sync>;

/// What happened at a site.
#[derive(Debug)]
pub enum LiveFollowed {
    /// A letter of the site with this number, in order.
    Letter(u16, Letter),
    /// Everything that a site holds: what was heard of it before is void.
    Introduction(u16, Letter),
}

/// Letters that wait, of all sites.
#[derive(Default)]
pub(crate) struct Letters {
    waiting: Mutex<Waiting>,
    wake: OnceLock<Wake>,
}

#[derive(Default)]
struct Waiting {
    letters: VecDeque<LiveFollowed>,
    /// Sites of which a letter was dropped, and none is wanted until everything is told anew.
    behind: Vec<u16>,
}

impl Letters {
    /// Begins to keep letters. To be called once, before any writer has started.
    pub(crate) fn follow(&self, wake: Wake) {
        // The cell is empty: nothing else sets it.
        let _ = self.wake.set(wake);
    }

    /// The oldest letter.
    pub(crate) fn next(&self) -> Option<LiveFollowed> {
        self.lock().letters.pop_front()
    }

    /// Sites that have to tell everything anew: once there is room again.
    pub(crate) fn behind(&self) -> Vec<u16> {
        let waiting = self.lock();
        if waiting.letters.is_empty() { waiting.behind.clone() } else { Vec::new() }
    }

    pub(super) fn put(&self, site: u16, followed: LiveFollowed) {
        let Some(wake) = self.wake.get() else { return };
        let mut waiting = self.lock();
        if matches!(followed, LiveFollowed::Introduction(..)) {
            waiting.behind.retain(|behind| *behind != site);
        } else if waiting.behind.contains(&site) {
            return;
        } else if waiting.letters.len() >= FOLLOWED_LETTERS_MAX {
            waiting.behind.push(site);
            return;
        }
        let was_empty = waiting.letters.is_empty();
        waiting.letters.push_back(followed);
        drop(waiting);
        if was_empty {
            wake();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A site's way to who follows, if anybody does.
#[derive(Default)]
pub(crate) struct Follower {
    letters: OnceLock<Arc<Letters>>,
}

impl Follower {
    /// Goes there from now on.
    pub(super) fn lead_to(&self, letters: &Arc<Letters>) {
        // The cell is empty: nothing else sets it.
        let _ = self.letters.set(Arc::clone(letters));
    }

    /// Tells of a letter that workers were told.
    pub(super) fn hear(&self, site: u16, letter: &Letter) {
        if let Some(letters) = self.letters.get().filter(|_| letter.changes()) {
            letters.put(site, LiveFollowed::Letter(site, letter.clone()));
        }
    }

    /// Tells everything.
    pub(super) fn introduce(&self, site: u16, introduction: &Letter) {
        if let Some(letters) = self.letters.get() {
            letters.put(site, LiveFollowed::Introduction(site, introduction.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use staunch_live::{Epoch, Hub, HubSettings, Publication, TopicName, Value};

    use super::*;

    #[test]
    fn a_letter_that_finds_no_room_is_made_up_for_by_an_introduction() {
        let mut hub = Hub::new(HubSettings::default(), Epoch(1));
        hub.publish(Publication::new(TopicName::new("a").unwrap(), Value::of_bytes(b"1")), 0).unwrap();
        let letter = hub.take_letter().unwrap();
        let (letters, woken) = (Arc::new(Letters::default()), Arc::new(AtomicU32::new(0)));
        let count = Arc::clone(&woken);
        letters.follow(Arc::new(move || {
            count.fetch_add(1, Relaxed);
        }));
        let follower = Follower::default();
        follower.hear(0, &letter);
        assert!(letters.next().is_none(), "nobody follows yet");
        follower.letters.set(Arc::clone(&letters)).ok();
        (0..=FOLLOWED_LETTERS_MAX).for_each(|_| follower.hear(0, &letter));
        assert_eq!((letters.behind(), woken.load(Relaxed)), (vec![], 1));
        let waiting = std::iter::from_fn(|| letters.next()).count();
        assert_eq!((waiting, letters.behind()), (FOLLOWED_LETTERS_MAX, vec![0]));
        // Nothing is told in between.
        follower.hear(0, &letter);
        assert!(letters.next().is_none());
        follower.introduce(0, &hub.introduction());
        assert!(matches!(letters.next(), Some(LiveFollowed::Introduction(0, _))));
        assert!(letters.behind().is_empty());
    }
}
