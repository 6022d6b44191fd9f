//! What the kernel says of one interface, and how often its packets are taken.
//!
//! It is looked at aside: the kernel answers when nobody changes any interface of the host (rtnl_lock), and
//! the very load the gate is there for may keep him who does from running for longer than credits last.

use std::io;
use std::time::Duration;

use rustix::io::Errno;
use staunch_netio::host::route;

use crate::moderation::Moderation;
use crate::snapshot;

/// The look at an interface, and the setting by which its packets are taken.
pub(super) struct Outlook {
    /// As it was named to the daemon.
    name: String,
    /// For how long its packets may be left lying while too many come; zero where nothing is to be changed.
    coalescing: Duration,
    moderation: Option<Moderation>,
    /// Whether it was tried to take the settings of the interface that is there.
    is_tried: bool,
}

/// What is to be looked at.
pub(super) struct Question {
    /// The interface's name.
    pub(super) called: String,
    /// Its number; none if it is waited for.
    pub(super) index: Option<u32>,
    /// Frames that come in a second, while too many do.
    pub(super) rush_per_s: Option<f64>,
}

/// What was seen.
pub(super) struct Sight {
    pub(super) found: Found,
    /// Whether packets are from now on taken less often, or no longer are.
    pub(super) paced: io::Result<bool>,
    /// How long packets are left lying, while they are.
    pub(super) delay: Option<Duration>,
    /// What is lost, when the settings of an interface could not be taken.
    pub(super) lost: Option<String>,
}

/// The interface.
pub(super) enum Found {
    Here {
        is_up: bool,
    },
    Renamed(String),
    Gone,
    /// An interface that was waited for is there.
    Back,
    /// A process that is confined may not look; one that is waited for is not there.
    Nothing,
}

impl Outlook {
    pub(super) fn new(name: &str, coalescing: Duration) -> Self {
        Self { name: name.to_owned(), coalescing, moderation: None, is_tried: false }
    }

    /// Takes the settings that say how often packets are taken. Says what is lost if it cannot.
    pub(super) fn moderate(&mut self) -> Option<String> {
        self.is_tried = true;
        let taken = Moderation::of(&self.name, self.coalescing, snapshot::record(&self.name));
        let (moderation, lost) = taken.map_or_else(|lost| (None, Some(lost)), |taken| (taken, None));
        self.moderation = moderation;
        lost
    }

    /// Looks; takes as long as the kernel likes.
    pub(super) fn look(&mut self, question: Question) -> Sight {
        let found = question.find();
        let lost = match found {
            Found::Here { .. } if !self.is_tried => self.moderate(),
            Found::Gone => {
                (self.moderation, self.is_tried) = (None, false);
                None
            }
            _ => None,
        };
        let paced = self.moderation.as_mut().map_or(Ok(false), |one| one.pace(question.rush_per_s));
        Sight { found, paced, delay: self.moderation.as_ref().and_then(Moderation::delay), lost }
    }
}

impl Question {
    fn find(&self) -> Found {
        let here = route::link(&self.called).ok();
        let Some(index) = self.index else {
            return here.map_or(Found::Nothing, |_| Found::Back);
        };
        if let Some(link) = here.filter(|link| link.index == index) {
            return Found::Here { is_up: link.is_up };
        }
        match route::name(index) {
            Ok(name) => Found::Renamed(name),
            Err(error) if error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => Found::Gone,
            Err(_) => Found::Nothing,
        }
    }
}
