//! The agent: what a process does that looks after certificates beside a server.
//!
//! It owns the loop: wait until something is due or told, and do it. It must never end for anything that an
//! authority or a disk does. One order is under way at a time.

mod choices;
mod inbox;
mod looking_after;
mod outside;

use std::io;
use std::time::Duration;

use crate::line::Line;
use crate::message::ToAgent;
use crate::store::Store;
use inbox::{AgentEvent, Inbox};
use looking_after::LookingAfter;
use outside::now_unix_s;

/// The longest sleep: the clock of the world may be set meanwhile, and a machine may have been asleep.
const SLEEP_MAX: Duration = Duration::from_secs(3_600);

/// Looks after certificates in this store for the server at the other end of the line. `gone` is called, on
/// a thread of its own, when that server is gone, whatever is under way: it is to end the process.
///
/// # Errors
/// No thread can be had.
pub fn run(line: Line, store: Store, gone: impl Fn() + Send + 'static) -> io::Result<()> {
    let inbox = Inbox::start(line.try_clone()?, gone)?;
    let mut work = LookingAfter::new(line, store, inbox);
    loop {
        let sleep = work.next_due_s().map_or(SLEEP_MAX, |due_s| {
            Duration::from_secs(due_s.saturating_sub(now_unix_s())).min(SLEEP_MAX)
        });
        match work.next_event(sleep) {
            AgentEvent::Told(ToAgent::Configure(wishes)) => work.configure(wishes),
            AgentEvent::Wished => work.take_wishes(),
            AgentEvent::Told(ToAgent::Presented) | AgentEvent::Time => {}
            AgentEvent::Gone => return Ok(()),
        }
        work.do_due();
    }
}
