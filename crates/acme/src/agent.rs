//! The agent: the process beside a server that gets certificates from an authority and renews them.
//!
//! This file is its main loop: it waits until a certificate is due for renewal or the server says something,
//! and acts on it, one order at a time. No answer of an authority and no fault of the disk may end the agent.

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

/// The longest wait without a look at the wall clock, which may be set meanwhile, or go on while the machine
/// is suspended.
const SLEEP_MAX: Duration = Duration::from_secs(3_600);

/// Runs the agent, which keeps the certificates in `store` for the server at the other end of `line`. When
/// that server has ended, `gone` is called on another thread, even in the midst of an order: it has to end
/// the process.
///
/// # Errors
/// No thread can be started.
pub fn run(line: Line, store: Store, gone: impl Fn() + Send + 'static) -> io::Result<()> {
    let inbox = Inbox::start(line.try_clone()?, gone)?;
    let mut work = LookingAfter::new(line, store, inbox);
    loop {
        let sleep = work.next_due_s().map_or(SLEEP_MAX, |due_s| {
            Duration::from_secs(due_s.saturating_sub(now_unix_s())).min(SLEEP_MAX)
        });
        match work.next_event(sleep) {
            AgentEvent::Message(ToAgent::Configure(wishes)) => work.configure(wishes),
            AgentEvent::Wished => work.take_wishes(),
            AgentEvent::Message(ToAgent::Presented { .. }) | AgentEvent::Time => {}
            AgentEvent::Gone => return Ok(()),
        }
        work.do_due();
    }
}
