//! What an agent waits for, in one place: words of its server, wishes of people, the time.
//!
//! It owns the threads that listen. It must never lose a word while another is waited for.

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

/// What has happened.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AgentEvent {
    /// The server has said this.
    Told(ToAgent),
    /// Somebody wants a renewal now.
    Wished,
    /// Nothing; the time is over.
    Time,
    /// The server is gone.
    Gone,
}

/// See the module's text.
pub(super) struct Inbox {
    events: Receiver<AgentEvent>,
    sender: Sender<AgentEvent>,
    /// What came while something else was waited for.
    kept: VecDeque<AgentEvent>,
    watches: bool,
}

impl Inbox {
    /// Listens to the server. `gone` is called when it is gone.
    pub(super) fn start(line: Line, gone: impl Fn() + Send + 'static) -> io::Result<Self> {
        let (sender, events) = mpsc::channel();
        let of_server = sender.clone();
        let listen = move || {
            while let Ok(Some(told)) = line.hear() {
                // Nobody listens any more once the agent ends.
                let _ = of_server.send(AgentEvent::Told(told));
            }
            let _ = of_server.send(AgentEvent::Gone);
            gone();
        };
        thread::Builder::new().name("server".into()).spawn(listen)?;
        Ok(Self { events, sender, kept: VecDeque::new(), watches: false })
    }

    /// Watches the folder of wishes, once.
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

    /// What happens next, at the latest after this time.
    pub(super) fn next(&mut self, patience: Duration) -> AgentEvent {
        self.kept.pop_front().unwrap_or_else(|| self.receive(patience))
    }

    /// Waits until the server has answered the challenges told last; keeps what comes meanwhile. `false`: it
    /// has not.
    pub(super) fn await_presented(&mut self, patience: Duration) -> bool {
        let until_ms = clock::now_ms() + patience.as_millis() as u64;
        loop {
            let left_ms = until_ms.saturating_sub(clock::now_ms());
            match self.receive(Duration::from_millis(left_ms)) {
                AgentEvent::Told(ToAgent::Presented) => return true,
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
        server.tell(&ToAgent::Presented).expect("told");
        assert!(inbox.await_presented(Duration::from_secs(20)));
        assert_eq!(inbox.next(Duration::ZERO), AgentEvent::Told(configure));
        assert_eq!(inbox.next(Duration::ZERO), AgentEvent::Time);
        drop(server);
        gone.recv_timeout(Duration::from_secs(20)).expect("it is heard");
        assert!(!inbox.await_presented(Duration::from_secs(20)));
        assert_eq!(inbox.next(Duration::ZERO), AgentEvent::Gone);
    }
}
