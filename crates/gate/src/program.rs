//! The XDP program on an interface: loaded, attached, told its orders, read.
//!
//! It owns the program, its maps and the links that hold it on interfaces. It must never decide how many are
//! let in. Order: `attach`, `add` for further interfaces, then `give` several times a second; dropping
//! takes it off.

mod alarm;
mod buffers;
mod loaded;
mod maps;
pub(crate) mod own;
mod part;
mod plan;
mod prefix;
mod privilege;
mod reception;
mod sizes;
mod storm;
mod trial;
mod watch;

use std::io;
use std::time::Duration;

use aya::programs::xdp::{XdpLink, XdpMode};
use aya::programs::{ProgramError, Xdp};

use crate::fault::{GateError, system_error};
use crate::interface;
use crate::layout::Counters;
use crate::observation::Orders;
use loaded::Loaded;
use own::FollowedAddresses;

pub use buffers::Buffers;
pub use own::Own;
pub use plan::{Attach, Reject, Way};
pub use prefix::Prefix;
pub use reception::{RECEPTION_COUNTS, ReceivedBuffers};
pub use sizes::Sizes;
pub use storm::{Storm, StormCount};
pub use trial::{Judgement, Trial};

/// The program on one interface or several, which share credits, clients and counters. Dropping takes it off.
pub struct Program {
    loaded: Loaded,
    interfaces: Vec<AttachedInterface>,
    notes: Vec<String>,
    /// The host's addresses, unless they were named.
    followed: Option<FollowedAddresses>,
}

/// An interface that the program is on.
struct AttachedInterface {
    name: String,
    index: u32,
    way: Way,
    /// Taken off when this is dropped, and by the kernel if the process dies. Before Linux 5.9 the kernel
    /// does not; then the lease ends.
    _link: XdpLink,
}

impl Program {
    /// Loads the program and puts it on its interface. Nothing is shed before orders are given.
    ///
    /// # Errors
    /// Missing capabilities, no such interface, another program on it, or what the kernel says.
    pub fn attach(attach: &Attach<'_>) -> Result<Self, GateError> {
        Self::attach_sized(attach, &Sizes::default())
    }

    /// As [`Program::attach`], with tables of another size.
    ///
    /// # Errors
    /// As [`Program::attach`].
    pub fn attach_sized(attach: &Attach<'_>, sizes: &Sizes) -> Result<Self, GateError> {
        privilege::check()?;
        let index = interface::find(attach.interface)?;
        interface::expect_free(attach.interface, index)?;
        let (mut loaded, mut notes) = Loaded::with_fallback(attach, sizes)?;
        notes.extend(loaded::lost_without_cookies());
        let own = loaded.take_own()?;
        let followed = match attach.addresses {
            [] => Some(FollowedAddresses::begin(own, &mut notes)?),
            named => own.fixed(named).map(|()| None)?,
        };
        let mut program = Self { loaded, interfaces: Vec::new(), notes, followed };
        program.add(attach.interface, attach.way)?;
        Ok(program)
    }

    /// Puts it on one more interface.
    ///
    /// # Errors
    /// As [`Program::attach`].
    pub fn add(&mut self, interface: &str, way: Way) -> Result<Way, GateError> {
        let index = interface::find(interface)?;
        interface::expect_free(interface, index)?;
        let (link, way, note) = put_on(self.loaded.gate()?, interface, index, way)?;
        self.notes.extend(note);
        self.interfaces.push(AttachedInterface { name: interface.to_owned(), index, way, _link: link });
        Ok(way)
    }

    /// Takes it off an interface, named as it was given. One it is not on is none of its business.
    pub fn leave(&mut self, interface: &str) {
        self.interfaces.retain(|attached| attached.name != interface);
    }

    /// How it gets at the frames of its first interface.
    pub fn way(&self) -> Way {
        self.interfaces.first().map_or(Way::Auto, |interface| interface.way)
    }

    /// What is lost on this host, each in a sentence.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The host's addresses as they were when it was attached, and what follows them; none where they were
    /// named. Who does not take it has a program that knows of no change.
    pub(crate) fn take_followed(&mut self) -> Option<FollowedAddresses> {
        self.followed.take()
    }

    /// Whether connections are watched.
    pub fn is_tracking(&self) -> bool {
        self.loaded.is_tracking()
    }

    /// The names, as they were given, of interfaces it is no longer on: they were removed, or somebody took
    /// it off. One that was renamed still has it.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn lost(&mut self) -> io::Result<Vec<&str>> {
        let id = self.loaded.id()?;
        let is_lost = |interface: &&AttachedInterface| {
            !interface::program_on(interface.index).is_ok_and(|on| on == Some(id))
        };
        Ok(self.interfaces.iter().filter(is_lost).map(|interface| interface.name.as_str()).collect())
    }

    /// Gives orders to all lines and with them the heartbeat: they hold for 900 ms after `now_ns`
    /// (CLOCK_MONOTONIC).
    ///
    /// # Errors
    /// What the kernel says.
    pub fn give(&mut self, orders: &Orders, now_ns: u64) -> io::Result<()> {
        self.loaded.give_all(orders, now_ns)
    }

    /// Gives orders to a single line: that of the port at this place of [`Attach::ports`].
    ///
    /// # Errors
    /// There is no such line; what the kernel says.
    pub fn give_line(&mut self, line: usize, orders: &Orders, now_ns: u64) -> io::Result<()> {
        self.loaded.give(line, orders, now_ns)
    }

    /// Waits for so long, or until more connections come at once than [`Orders::alarm`]. Says whether they
    /// did; never where connections are not watched.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn wait(&mut self, length: Duration) -> io::Result<bool> {
        self.loaded.wait(length)
    }

    /// All that was counted since it was attached.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn counters(&self) -> io::Result<Counters> {
        Ok(Counters::together(&self.line_counters()?))
    }

    /// The counts of each line, in the order of [`Attach::ports`]. Frames that are no SYN stand in the
    /// first.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn line_counters(&self) -> io::Result<Vec<Counters>> {
        self.loaded.counters()
    }
}

/// Native, or generic where the driver cannot.
fn put_on(
    program: &mut Xdp,
    name: &str,
    index: u32,
    way: Way,
) -> Result<(XdpLink, Way, Option<String>), GateError> {
    let mut attach = |mode: XdpMode| {
        let id = program.attach_to_if_index(index, mode)?;
        program.take_link(id)
    };
    let refused = |error: ProgramError| refusal(name, index, &error);
    match way {
        Way::Native => Ok((attach(XdpMode::Driver).map_err(refused)?, Way::Native, None)),
        Way::Generic => Ok((attach(XdpMode::Skb).map_err(refused)?, Way::Generic, None)),
        Way::Auto => match attach(XdpMode::Driver) {
            Ok(link) => Ok((link, Way::Native, None)),
            Err(native) => {
                let link = attach(XdpMode::Skb).map_err(refused)?;
                let reason = system_error(&native).map_or(native.to_string(), ToString::to_string);
                let note = format!(
                    "the driver of '{name}' does not run XDP programs ({reason}); the generic way is \
                     taken: what is shed costs an allocation and about half of what the native way saves"
                );
                Ok((link, Way::Generic, Some(note)))
            }
        },
    }
}

/// Why the program cannot be put on: another one may have come between the look and the deed.
fn refusal(name: &str, index: u32, error: &ProgramError) -> GateError {
    match interface::expect_free(name, index) {
        Err(busy) => busy,
        Ok(()) => GateError::of_kernel(&format!("the program cannot be put on '{name}'"), error),
    }
}
