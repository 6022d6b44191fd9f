//! The gate's place at one interface: whether the interface is there, and what became of it.
//!
//! It follows one that goes down, is renamed, removed, or comes back. It must never end the daemon because of
//! any of these.

use rustix::io::Errno;
use staunch_netio::route;

use super::telling::Teller;
use crate::program::{Program, Way};
use crate::snapshot::InterfaceFigures;

/// Between two looks at an interface.
const LOOK_NS: u64 = 250_000_000;

/// See the module's text.
pub(super) struct Post {
    name: String,
    place: Place,
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
    pub(super) fn new(name: &str, way: Way, comes_back: bool) -> Result<Self, String> {
        Ok(Self { name: name.to_owned(), place: Place::attached(name, way)?, comes_back, looked_ns: 0 })
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
        InterfaceFigures { name: self.name.clone(), state: state.to_owned(), way }
    }

    /// How the program was put there, if it is there.
    pub(super) fn way_word(&self) -> Option<&'static str> {
        match &self.place {
            Place::Attached { way: Way::Generic, .. } => Some("generic"),
            Place::Attached { .. } => Some("native"),
            Place::Missing { .. } => None,
        }
    }

    /// Looks what became of the interface, from time to time.
    pub(super) fn look(&mut self, now_ns: u64, program: &mut Program, way: Way, teller: &Teller) {
        if now_ns < self.looked_ns + LOOK_NS {
            return;
        }
        self.looked_ns = now_ns;
        match &self.place {
            Place::Attached { .. } => self.follow(program, teller),
            Place::Missing { .. } if self.comes_back => self.seek(program, way, teller),
            Place::Missing { .. } => {}
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
                teller.interface(&self.name, &format!("{} is back; the gate is on it again", self.name));
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
