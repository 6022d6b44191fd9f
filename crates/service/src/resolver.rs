//! The resolver: a process beside the server that looks the names of applications' servers up, again and
//! again, and tells the server where they lead.
//!
//! The server itself cannot look names up once it is confined: that takes UDP, and files that are none of its
//! business. This module owns the line between both. The resolver must never be told anything, and what it
//! tells is judged by whoever hears it. Order of calls: `Resolver::start` before the process is confined,
//! `Resolver::listen` once threads may be started, `Resolver::end`.

mod looking;
mod lookup;
mod message;
mod plan;
mod process;

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use rustix::net::{Shutdown, shutdown};
use staunch_acme::Line;
use staunch_engine::Notice;

pub(crate) use lookup::{ADDRESSES_MAX, Addresses, look_up};
pub(crate) use message::Found;
use message::ToServer;
pub use plan::ResolverPlan;
pub(crate) use process::Beginning;
pub use process::run;

/// The server's handle of its resolver.
pub(crate) struct Resolver {
    line: Line,
    has_ended: AtomicBool,
}

impl Resolver {
    /// Starts the resolver.
    ///
    /// # Errors
    /// The process cannot be started.
    pub(crate) fn start(beginning: &Beginning<'_>) -> io::Result<Arc<Self>> {
        let line = process::start(beginning)?;
        Ok(Arc::new(Self { line, has_ended: AtomicBool::new(false) }))
    }

    /// Starts the thread that reads what the resolver tells.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(crate) fn listen(
        self: &Arc<Self>,
        say: Notice,
        heard: impl Fn(Found) + Send + 'static,
    ) -> io::Result<()> {
        let resolver = Arc::clone(self);
        let thread = std::thread::Builder::new().name("names".into());
        thread.spawn(move || resolver.hear(&say, heard)).map(drop)
    }

    fn hear(&self, say: &Notice, heard: impl Fn(Found)) {
        loop {
            match self.line.hear() {
                Ok(Some(ToServer::Found(found))) => heard(found),
                Ok(Some(ToServer::Say(text))) => say(&text),
                Ok(None) | Err(_) if self.has_ended.load(Relaxed) => return,
                Ok(None) | Err(_) => {
                    say("proxy: the resolver has ended: names are not looked up again until a restart");
                    return;
                }
            }
        }
    }

    /// Ends the resolver, and the thread that reads what it tells.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Relaxed);
        // Can only fail where there is no line any more.
        let _ = shutdown(&self.line, Shutdown::Both);
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        self.end();
    }
}
