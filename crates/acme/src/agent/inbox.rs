//! The queue of the agent's events: messages from its server, requests for a renewal, and the timeout.
//!
//! Two threads fill it: one reads the line to the server, one watches the folder of renewal requests
//! (inotify). An event that arrives while another kind is waited for is kept, and must never be lost.

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use staunch_netio::clock;

use crate::line::Line;
use crate::message::ToAgent;

/// An event for the agent's main loop.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AgentEvent {
    /// The server sent this message.
    Message(ToAgent),
    /// `staunch certificates renew` has put a request into the folder of renewal requests.
    Wished,
    /// Nothing happened in the time that was given.
    Time,
    /// The server has closed its end of the line, so it has ended.
    Gone,
}

/// The queue, and the threads that fill it.
pub(super) struct Inbox {
    events: Receiver<AgentEvent>,
    sender: Sender<AgentEvent>,
    /// Events that came while [`Self::await_presented`] waited for another.
    kept: VecDeque<AgentEvent>,
    /// Whether the folder of renewal requests is watched.
    watches: bool,
}

impl Inbox {
    /// Starts the thread that reads messages from the server. It calls `gone` when the server has closed the
    /// line.
    ///
    /// # Errors
    /// No thread can be started.
    pub(super) fn start(line: Line, gone: impl Fn() + Send + 'static) -> io::Result<Self> {
        let (sender, events) = mpsc::channel();
        let of_server = sender.clone();
        let listen = move || {
            while let Ok(Some(told)) = line.hear() {
                // Fails only while the agent ends, when nobody reads the queue any more.
                let _ = of_server.send(AgentEvent::Message(told));
            }
            let _ = of_server.send(AgentEvent::Gone);
            gone();
        };
        thread::Builder::new().name("server".into()).spawn(listen)?;
        Ok(Self { events, sender, kept: VecDeque::new(), watches: false })
    }

    /// Starts the thread that watches the folder of renewal requests, unless it runs already.
    ///
    /// # Errors
    /// The folder is not there, or the system has no inotify watch or no thread left.
    pub(super) fn watch(&mut self, folder: &Path) -> io::Result<()> {
        if self.watches {
            return Ok(());
        }
        let inotify = inotify::init(CreateFlags::CLOEXEC)?;
        inotify::add_watch(&inotify, folder, WatchFlags::MOVED_TO)?;
        let sender = self.sender.clone();
        thread::Builder::new().name("wishes".into()).spawn(move || watch(&inotify, &sender))?;
        self.watches = true;
        Ok(())
    }

    /// The next event; [`AgentEvent::Time`] if there is none for so long.
    pub(super) fn next(&mut self, patience: Duration) -> AgentEvent {
        self.kept.pop_front().unwrap_or_else(|| self.receive(patience))
    }

    /// Waits until the server says that it answers the challenges of this number ([`ToAgent::Presented`]),
    /// passes by what it says late of earlier ones, and keeps other events for later. `false`: it did not say
    /// so in this time, or has ended.
    pub(super) fn await_presented(&mut self, number: u64, patience: Duration) -> bool {
        let until_ms = clock::now_ms() + patience.as_millis() as u64;
        loop {
            let left_ms = until_ms.saturating_sub(clock::now_ms());
            match self.receive(Duration::from_millis(left_ms)) {
                AgentEvent::Message(ToAgent::Presented { number: told }) if told == number => return true,
                AgentEvent::Message(ToAgent::Presented { .. }) => {}
                AgentEvent::Time => return false,
                AgentEvent::Gone => {
                    self.kept.push_back(AgentEvent::Gone);
                    return false;
                }
                event => self.kept.push_back(event),
            }
        }
    }

    fn receive(&self, patience: Duration) -> AgentEvent {
        match self.events.recv_timeout(patience) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => AgentEvent::Time,
            // This value holds a sender itself.
            Err(RecvTimeoutError::Disconnected) => AgentEvent::Gone,
        }
    }
}

fn watch(inotify: &OwnedFd, sender: &Sender<AgentEvent>) {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = Reader::new(inotify, &mut buffer);
    loop {
        match reader.next() {
            Ok(_) if sender.send(AgentEvent::Wished).is_ok() => {}
            Err(rustix::io::Errno::INTR) => {}
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Wishes;

    #[test]
    fn what_comes_while_something_else_is_waited_for_is_kept() {
        let (server, agent) = Line::pair().expect("a pair");
        let (told_gone, gone) = mpsc::channel();
        let tell_gone = move || told_gone.send(()).expect("the test waits");
        let mut inbox = Inbox::start(agent, tell_gone).expect("a thread");
        let configure = ToAgent::Configure(Wishes::default());
        server.tell(&configure).expect("told");
        // The answer to an earlier message, which came too late, is none to this one.
        for number in [6, 7] {
            server.tell(&ToAgent::Presented { number }).expect("told");
        }
        assert!(inbox.await_presented(7, Duration::from_secs(20)));
        assert_eq!(inbox.next(Duration::ZERO), AgentEvent::Message(configure));
        assert_eq!(inbox.next(Duration::ZERO), AgentEvent::Time);
        server.tell(&ToAgent::Presented { number: 7 }).expect("told");
        assert!(!inbox.await_presented(8, Duration::ZERO));
        drop(server);
        gone.recv_timeout(Duration::from_secs(20)).expect("it is heard");
        assert!(!inbox.await_presented(8, Duration::from_secs(20)));
        assert_eq!(inbox.next(Duration::ZERO), AgentEvent::Gone);
    }
}
