//! The gate's place at one interface: whether the interface is there, and what became of it.
//!
//! It follows one that goes down, is renamed, removed, or comes back, and lets its packets be taken less
//! often while a flood comes. It must never end the daemon because of any of these.

use std::time::Duration;

use rustix::io::Errno;
use staunch_netio::route;

use super::plan::Plan;
use super::telling::Teller;
use crate::moderation::Moderation;
use crate::program::{Program, Way};
use crate::snapshot::{self, InterfaceFigures};

/// Between two looks at an interface.
const LOOK_NS: u64 = 250_000_000;

/// See the module's text.
pub(super) struct Post {
    name: String,
    place: Place,
    /// For how long its packets may be left lying while a flood comes; zero where nothing is to be changed.
    coalescing: Duration,
    moderation: Option<Moderation>,
    /// Whether one that went away is waited for.
    comes_back: bool,
    looked_ns: u64,
}

/// Whether the program is on the interface.
enum Place {
    /// As it is called now, its number, whether it is up.
    Attached { way: Way, called: String, index: u32, is_up: bool },
    /// What was said last of why the program cannot be put there.
    Missing { said: Option<String> },
}

impl Post {
    /// The program has just been put there.
    ///
    /// # Errors
    /// The interface is gone already.
    pub(super) fn new(name: &str, way: Way, plan: &Plan) -> Result<Self, String> {
        Ok(Self {
            name: name.to_owned(),
            place: Place::attached(name, way)?,
            coalescing: if plan.dry_run { Duration::ZERO } else { plan.coalescing },
            moderation: None,
            comes_back: plan.comes_back,
            looked_ns: 0,
        })
    }

    /// Takes the settings that say how often packets are taken. Says what is lost if it cannot.
    pub(super) fn moderate(&mut self) -> Option<String> {
        let taken = Moderation::of(&self.name, self.coalescing, snapshot::record(&self.name));
        let (moderation, lost) = taken.map_or_else(|lost| (None, Some(lost)), |taken| (taken, None));
        self.moderation = moderation;
        lost
    }

    /// As it was named to the daemon.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// How it stands there.
    pub(super) fn figures(&self) -> InterfaceFigures {
        let state = match &self.place {
            Place::Attached { is_up: true, .. } => "attached",
            Place::Attached { .. } => "down",
            Place::Missing { .. } => "missing",
        };
        let way = self.way_word().map(str::to_owned);
        let delay = self.moderation.as_ref().and_then(Moderation::delay);
        let coalescing_us = delay.map(|delay| delay.as_micros() as u64);
        InterfaceFigures { name: self.name.clone(), state: state.to_owned(), way, coalescing_us }
    }

    /// How the program was put there, if it is there.
    pub(super) fn way_word(&self) -> Option<&'static str> {
        match &self.place {
            Place::Attached { way: Way::Generic, .. } => Some("generic"),
            Place::Attached { .. } => Some("native"),
            Place::Missing { .. } => None,
        }
    }

    /// Looks what became of the interface, from time to time. So many SYN of a flood come a second, if there
    /// is one.
    pub(super) fn look(
        &mut self,
        now_ns: u64,
        flood_per_s: Option<f64>,
        program: &mut Program,
        way: Way,
        teller: &Teller,
    ) {
        if now_ns < self.looked_ns + LOOK_NS {
            return;
        }
        self.looked_ns = now_ns;
        match &self.place {
            Place::Attached { .. } => self.follow(program, teller),
            Place::Missing { .. } if self.comes_back => self.seek(program, way, teller),
            Place::Missing { .. } => {}
        }
        self.pace(flood_per_s, teller);
    }

    fn pace(&mut self, flood_per_s: Option<f64>, teller: &Teller) {
        let Some(moderation) = &mut self.moderation else { return };
        match moderation.pace(flood_per_s) {
            Ok(false) => {}
            Ok(true) => {
                let often = moderation.delay().map_or("as often as before the flood".to_owned(), |delay| {
                    format!("every {} us while a flood comes", delay.as_micros())
                });
                teller.interface(&self.name, &format!("packets of {} are taken {often}", self.name));
            }
            Err(error) => teller.trouble("setting of how often packets are taken", &error),
        }
    }

    fn follow(&mut self, program: &mut Program, teller: &Teller) {
        let Place::Attached { called, index, is_up, .. } = &mut self.place else { return };
        let here = route::link(called).ok().filter(|link| link.index == *index);
        if let Some(link) = here {
            if link.is_up != *is_up {
                *is_up = link.is_up;
                let text = if *is_up { "is up again" } else { "is down; the gate stays on it" };
                teller.interface(&self.name, &format!("{called} {text}"));
            }
            return;
        }
        match route::name(*index) {
            Ok(name) => {
                teller.interface(&self.name, &format!("{called} is called {name} now; the gate stays on it"));
                *called = name;
            }
            Err(error) if error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => {
                self.lose(program, teller);
            }
            // A process that is confined may not look: what was there is taken to be there.
            Err(_) => {}
        }
    }

    fn lose(&mut self, program: &mut Program, teller: &Teller) {
        // It is taken off wherever the interface went, such as into another namespace.
        program.leave(&self.name);
        self.moderation = None;
        self.place = Place::Missing { said: None };
        let then = if self.comes_back {
            "the gate waits for it"
        } else {
            "to protect it again the server has to be started anew"
        };
        teller.interface(&self.name, &format!("{} is gone: nothing is shed there; {then}", self.name));
    }

    fn seek(&mut self, program: &mut Program, way: Way, teller: &Teller) {
        if route::link(&self.name).is_err() {
            return;
        }
        let added = program.add(&self.name, way).map_err(|error| error.to_string());
        match added.and_then(|way| Place::attached(&self.name, way)) {
            Ok(place) => {
                self.place = place;
                let lost = self.moderate().map(|lost| format!("; {lost}")).unwrap_or_default();
                teller
                    .interface(&self.name, &format!("{} is back; the gate is on it again{lost}", self.name));
            }
            Err(error) => {
                if let Place::Missing { said } = &mut self.place
                    && said.as_ref() != Some(&error)
                {
                    teller.interface(&self.name, &format!("{} is back, but: {error}", self.name));
                    *said = Some(error);
                }
            }
        }
    }
}

impl Place {
    fn attached(name: &str, way: Way) -> Result<Self, String> {
        let link = route::link(name).map_err(|error| format!("{name}: {error}"))?;
        Ok(Self::Attached { way, called: name.to_owned(), index: link.index, is_up: link.is_up })
    }
}
