//! An interface that the gate protects: whether the interface is there, and what became of it.
//!
//! It follows one that goes down, is renamed, removed, or comes back, and lets its packets be taken less
//! often in a rush. It must never end the daemon because of any of these, nor hold it up.

use std::time::Duration;

use staunch_netio::host::route;

use super::aside::Aside;
use super::outlook::{Found, Outlook, Question, Sight};
use super::plan::Plan;
use super::telling::Teller;
use crate::program::{Program, Way};
use crate::snapshot::InterfaceFigures;

/// Between two looks at an interface.
const LOOK_NS: u64 = 250_000_000;

/// An interface that the gate protects.
pub(super) struct Post {
    name: String,
    attachment: Attachment,
    /// Until it begins, then it is aside.
    outlook: Option<Outlook>,
    aside: Option<Aside<Question, Sight>>,
    /// How long packets are left lying, while they are.
    delay: Option<Duration>,
    /// Whether one that went away is waited for.
    comes_back: bool,
    looked_ns: u64,
}

/// Whether the program is on the interface.
enum Attachment {
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
        let coalescing = if plan.dry_run { Duration::ZERO } else { plan.coalescing };
        Ok(Self {
            name: name.to_owned(),
            attachment: Attachment::attached(name, way)?,
            outlook: Some(Outlook::new(name, coalescing)),
            aside: None,
            delay: None,
            comes_back: plan.comes_back,
            looked_ns: 0,
        })
    }

    /// Takes the settings that say how often packets are taken. Says what is lost if it cannot.
    pub(super) fn moderate(&mut self) -> Option<String> {
        self.outlook.as_mut().and_then(Outlook::moderate)
    }

    /// From now on it is looked at, aside of the calling thread and with the rights it has.
    pub(super) fn begin(&mut self, teller: &Teller) {
        let Some(mut outlook) = self.outlook.take() else { return };
        match Aside::begin(move |question| outlook.look(question)) {
            Ok(aside) => self.aside = Some(aside),
            Err(error) => teller.trouble("thread that looks at interfaces", &error),
        }
    }

    /// As it was named to the daemon.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// How it stands there.
    pub(super) fn figures(&self) -> InterfaceFigures {
        let state = match &self.attachment {
            Attachment::Attached { is_up: true, .. } => "attached",
            Attachment::Attached { .. } => "down",
            Attachment::Missing { .. } => "missing",
        };
        let way = self.way_word().map(str::to_owned);
        let coalescing_us = self.delay.map(|delay| delay.as_micros() as u64);
        InterfaceFigures { name: self.name.clone(), state: state.to_owned(), way, coalescing_us }
    }

    /// How the program was put there, if it is there.
    pub(super) fn way_word(&self) -> Option<&'static str> {
        match &self.attachment {
            Attachment::Attached { way: Way::Generic, .. } => Some("generic"),
            Attachment::Attached { .. } => Some("native"),
            Attachment::Missing { .. } => None,
        }
    }

    /// Takes in what became of the interface, and asks from time to time. So many frames come a
    /// second, while too many do.
    pub(super) fn look(
        &mut self,
        now_ns: u64,
        rush_per_s: Option<f64>,
        program: &mut Program,
        way: Way,
        teller: &Teller,
    ) {
        if let Some(sight) = self.aside.as_mut().and_then(Aside::answer) {
            self.take_in(sight, program, way, teller);
        }
        let (called, index) = match &self.attachment {
            Attachment::Attached { called, index, .. } => (called, Some(*index)),
            Attachment::Missing { .. } if self.comes_back => (&self.name, None),
            Attachment::Missing { .. } => return,
        };
        if let Some(aside) = self.aside.as_mut().filter(|_| now_ns >= self.looked_ns + LOOK_NS) {
            self.looked_ns = now_ns;
            aside.ask(|| Question { called: called.clone(), index, rush_per_s });
        }
    }

    fn take_in(&mut self, sight: Sight, program: &mut Program, way: Way, teller: &Teller) {
        match sight.found {
            Found::Here { is_up: now_up } => self.goes_up_or_down(now_up, teller),
            Found::Renamed(name) => self.rename(name, teller),
            Found::Gone => self.lose(program, teller),
            Found::Back => self.come_back(program, way, teller),
            Found::Nothing => {}
        }
        if let Some(lost) = sight.lost {
            teller.interface(&self.name, &lost);
        }
        self.delay = sight.delay;
        match sight.paced {
            Ok(false) => {}
            Ok(true) => {
                let often = self.delay.map_or("as often as before".to_owned(), |delay| {
                    format!("every {} us while so many come", delay.as_micros())
                });
                teller.interface(&self.name, &format!("packets of {} are taken {often}", self.name));
            }
            Err(error) => teller.trouble("setting of how often packets are taken", &error),
        }
    }

    fn goes_up_or_down(&mut self, now_up: bool, teller: &Teller) {
        let Attachment::Attached { called, is_up, .. } = &mut self.attachment else { return };
        if std::mem::replace(is_up, now_up) != now_up {
            let text = if now_up { "is up again" } else { "is down; the gate stays on it" };
            teller.interface(&self.name, &format!("{called} {text}"));
        }
    }

    fn rename(&mut self, name: String, teller: &Teller) {
        let Attachment::Attached { called, .. } = &mut self.attachment else { return };
        teller.interface(&self.name, &format!("{called} is called {name} now; the gate stays on it"));
        *called = name;
    }

    fn lose(&mut self, program: &mut Program, teller: &Teller) {
        // The program is taken off wherever the interface went, such as into another namespace.
        program.leave(&self.name);
        self.attachment = Attachment::Missing { said: None };
        let then = if self.comes_back {
            "the gate waits for it"
        } else {
            "to protect it again the server has to be started anew"
        };
        teller.interface(&self.name, &format!("{} is gone: nothing is shed there; {then}", self.name));
    }

    fn come_back(&mut self, program: &mut Program, way: Way, teller: &Teller) {
        let added = program.add(&self.name, way).map_err(|error| error.to_string());
        match added.and_then(|way| Attachment::attached(&self.name, way)) {
            Ok(attachment) => {
                self.attachment = attachment;
                teller.interface(&self.name, &format!("{} is back; the gate is on it again", self.name));
            }
            Err(error) => {
                if let Attachment::Missing { said } = &mut self.attachment
                    && said.as_ref() != Some(&error)
                {
                    teller.interface(&self.name, &format!("{} is back, but: {error}", self.name));
                    *said = Some(error);
                }
            }
        }
    }
}

impl Attachment {
    fn attached(name: &str, way: Way) -> Result<Self, String> {
        let link = route::link(name).map_err(|error| format!("{name}: {error}"))?;
        Ok(Self::Attached { way, called: name.to_owned(), index: link.index, is_up: link.is_up })
    }
}
