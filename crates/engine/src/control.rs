//! Orders to running workers, from any thread: other deadlines, other addresses, the end.
//!
//! It owns a copy of every listening socket, so that they can be handed to another process. It must never
//! wait for a worker.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard};

use staunch_netio::unix_listener::SocketFile;
use staunch_netio::{ListenPlace, handover};
use staunch_protocol::Timeouts;

use crate::clients::ClientPolicy;
use crate::listening::{self, Bound, Inherited};
use crate::mailbox::{Inbox, Mailbox};
use crate::order::{Drain, ListenerName, Order};
use crate::pressure::Pressure;
use crate::start_error::StartError;

/// Tells all workers of an engine what to do. Cheap to clone.
#[derive(Clone)]
pub struct Control {
    inboxes: Arc<[Arc<dyn Inbox>]>,
    open: Arc<Mutex<Open>>,
    /// Mode of socket files.
    socket_mode: u32,
}

/// Where is listened at.
#[derive(Default)]
struct Open {
    listeners: Vec<Listener>,
    /// Socket files that were left to this process, which listens there no longer.
    unwanted: Vec<SocketFile>,
    next_number: u32,
}

struct Listener {
    name: ListenerName,
    wanted: ListenPlace,
    place: ListenPlace,
    /// The name of a socket file that is this process's own, or was left to it; removed before its socket is
    /// closed.
    file: Option<SocketFile>,
    copies: Vec<OwnedFd>,
    /// See [`Inherited::outlasting`].
    outlasting: bool,
}

impl Listener {
    /// Has a socket file take its name, if it has it not yet, and its mode.
    fn take_name(&mut self, mode: u32) -> Result<(), StartError> {
        let (Some(file), Some(path)) = (&mut self.file, self.wanted.file()) else { return Ok(()) };
        let taken = if file.path() == path { file.set_mode(mode) } else { file.exchange(path) };
        taken.map_err(|error| listening::refused(&self.wanted, &error))
    }
}

/// Places that are bound and not yet listened at, each with copies of its sockets, and others that are to
/// be given up.
#[derive(Debug)]
pub struct Change {
    /// With whether TLS is spoken there.
    added: Vec<(Bound, Vec<OwnedFd>, bool)>,
    removed: Vec<ListenerName>,
}

impl Control {
    /// Orders to the owners of these mailboxes, in the workers' order.
    pub fn new<M: Send + 'static>(mailboxes: &[Arc<Mailbox<M>>]) -> Self {
        let inboxes = mailboxes.iter().map(|mailbox| Arc::clone(mailbox) as Arc<dyn Inbox>).collect();
        Self { inboxes, open: Arc::default(), socket_mode: 0 }
    }

    /// Socket files that are made get this mode; nobody may connect to them otherwise.
    pub(crate) fn with_socket_mode(self, socket_mode: u32) -> Self {
        Self { socket_mode, ..self }
    }

    /// Remembers an address, and gives it a name.
    pub(crate) fn note(
        &self,
        bound: &mut Bound,
        outlasting: bool,
        is_secured: bool,
    ) -> io::Result<ListenerName> {
        let copies = bound.copies()?;
        Ok(self.enter(bound, copies, outlasting, is_secured))
    }

    fn enter(
        &self,
        bound: &mut Bound,
        copies: Vec<OwnedFd>,
        outlasting: bool,
        is_secured: bool,
    ) -> ListenerName {
        let mut open = self.open();
        let name = ListenerName { number: open.next_number, is_secured };
        open.next_number += 1;
        open.listeners.push(Listener {
            name,
            wanted: bound.wanted.clone(),
            place: bound.place.clone(),
            copies,
            file: bound.file.take(),
            outlasting,
        });
        name
    }

    /// Remembers socket files that were left to this process, to be removed once it serves elsewhere.
    pub(crate) fn note_unwanted(&self, files: Vec<SocketFile>) {
        self.open().unwanted = files;
    }

    /// Gives every socket file to the user who will serve.
    ///
    /// # Errors
    /// Those of `give`, as a sentence.
    pub fn give_files(&self, give: impl Fn(&Path) -> io::Result<()>) -> Result<(), StartError> {
        for Listener { wanted, file, .. } in &self.open().listeners {
            if let Some(file) = file.as_ref().filter(|file| file.is_there()) {
                let given = give(file.path());
                given.map_err(|error| {
                    StartError::System(format!("{wanted} cannot be given to the user: {error}"))
                })?;
            }
        }
        Ok(())
    }

    /// Removes the socket files that are this process's own: it ends, without a drain.
    pub fn remove_files(&self) {
        self.open().listeners.iter_mut().for_each(|listener| drop(listener.file.take()));
    }

    /// Accept no more, bring to its end what is under way, and stop: `Engine::run` returns then. Nothing is
    /// ever received, but the channel ends when no worker accepts any more.
    pub fn drain(&self, drain: Drain) -> Receiver<u16> {
        // Taken, because copies must not keep sockets open that nobody accepts at.
        for listener in std::mem::take(&mut self.open().listeners) {
            if listener.outlasting {
                self.tell_all(|| Order::Leave { name: listener.name, at_once: true });
            }
            // A queue that is nobody's has no name: else it is removed here.
            if drain.leave_queues {
                listener.file.into_iter().for_each(SocketFile::leave);
            }
        }
        // khttpd gives what waits there to another process, or answers it.
        self.tell_all(|| Order::Leave { name: ListenerName::HANDOVER, at_once: true });
        let (left, all_left) = mpsc::channel();
        self.tell_all(|| Order::Drain(drain, left.clone()));
        all_left
    }

    /// Looks for connections at every listener, as if for the first time. To be used when another process
    /// that accepted at the same sockets has left them: of those who wait for a connection the kernel wakes
    /// one, and that one may have left instead of accepting.
    pub fn look_again(&self) {
        self.tell_all(|| Order::LookAgain);
    }

    /// Other deadlines, also for the connections there are.
    pub fn set_timeouts(&self, timeouts: Timeouts) {
        self.tell_all(|| Order::Timeouts(timeouts));
    }

    /// Other rules for clients, also for the connections there are, as far as they were counted.
    pub fn set_clients(&self, policy: &ClientPolicy) {
        self.tell_all(|| Order::Clients(policy.clone()));
    }

    /// Another way to give way from now on.
    pub fn set_pressure(&self, pressure: Pressure) {
        self.tell_all(|| Order::Pressure(pressure));
    }

    /// Whether new connections may begin with the preface of HTTP/2 from now on.
    pub fn set_http2(&self, on: bool) {
        self.tell_all(|| Order::Http2(on));
    }

    /// Asks every worker for a sign of life, which it sends between two turns.
    pub fn ping(&self, answers: &Sender<u16>) {
        self.tell_all(|| Order::Answer(answers.clone()));
    }

    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.inboxes.len()
    }

    /// Addresses that are listened at, with the ports taken.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.open().listeners.iter().filter_map(|listener| listener.place.address()).collect()
    }

    /// Binds what is to be listened at and is not yet, in plain text or `secured`, and takes every descriptor
    /// that will be needed. Nothing changes before [`Control::apply`].
    ///
    /// # Errors
    /// An address that is taken, not ours, or needs a privilege; EMFILE.
    pub fn prepare(&self, plain: &[ListenPlace], secured: &[ListenPlace]) -> Result<Change, StartError> {
        let mut removed: Vec<(ListenerName, ListenPlace)> =
            self.open().listeners.iter().map(|listener| (listener.name, listener.wanted.clone())).collect();
        let mut added = Vec::new();
        let plain = plain.iter().map(|wanted| (wanted, false));
        for (wanted, is_secured) in plain.chain(secured.iter().map(|wanted| (wanted, true))) {
            let is_present = |(name, present): &(ListenerName, ListenPlace)| {
                present == wanted && name.is_secured == is_secured
            };
            match removed.iter().position(is_present) {
                Some(present) => _ = removed.swap_remove(present),
                None => {
                    if removed.iter().any(|(_, present)| is_same_socket(present, wanted)) {
                        return Err(StartError::System(format!(
                            "cannot listen on {wanted}: whether TLS is spoken there is not changed by a \
                             reload; an upgrade (USR2) or a restart changes it"
                        )));
                    }
                    let bound = listening::bind(wanted, None, self.workers(), self.socket_mode)?;
                    let copies = bound.copies().map_err(|error| listening::refused(wanted, &error))?;
                    added.push((bound, copies, is_secured));
                }
            }
        }
        Ok(Change { added, removed: removed.into_iter().map(|(name, _)| name).collect() })
    }

    /// Listens where `prepare` has bound, and no longer where nobody wants it. Connections live on.
    pub fn apply(&self, change: Change) {
        for (mut bound, copies, is_secured) in change.added {
            let name = self.enter(&mut bound, copies, false, is_secured);
            for (inbox, sockets) in self.inboxes.iter().zip(bound.sockets) {
                sockets.into_iter().for_each(|socket| inbox.order(Order::Listen(name, socket)));
            }
        }
        let is_removed = |listener: &mut Listener| change.removed.contains(&listener.name);
        let removed: Vec<Listener> = self.open().listeners.extract_if(.., is_removed).collect();
        for Listener { name, outlasting: at_once, file, .. } in removed {
            drop(file);
            self.tell_all(|| Order::Leave { name, at_once });
        }
    }

    /// Has socket files take their names that were made beside another process's, and files that were left
    /// their mode; all become this process's own. Whoever connects from now on comes here, and those in the
    /// other's queue are served by the other. To be called once this process serves.
    ///
    /// # Errors
    /// Every name that cannot be taken, in a sentence: then the other process has all names as before.
    pub fn take_names(&self) -> Result<(), StartError> {
        let mut open = self.open();
        let taken = open.listeners.iter_mut().map(|listener| listener.take_name(self.socket_mode));
        let faults: Vec<String> = taken.filter_map(Result::err).map(|fault| fault.to_string()).collect();
        let unwanted = std::mem::take(&mut open.unwanted);
        let files = open.listeners.iter_mut().filter_map(|listener| listener.file.as_mut());
        if !faults.is_empty() {
            files.for_each(SocketFile::give_back);
            return Err(StartError::System(faults.join("; ")));
        }
        files.for_each(SocketFile::own);
        unwanted.into_iter().for_each(|mut file| file.remove());
        Ok(())
    }

    /// A copy of every listening socket, to be inherited by the next program that is started.
    ///
    /// # Errors
    /// EMFILE.
    pub fn inheritable(&self) -> io::Result<Vec<Inherited>> {
        let copy = |listener: &Listener| {
            let sockets = listener.copies.iter().map(handover::inheritable).collect::<io::Result<_>>()?;
            Ok(Inherited {
                wanted: listener.wanted.clone(),
                sockets,
                backend: None,
                file: listener.file.as_ref().map(SocketFile::number),
                outlasting: listener.outlasting,
            })
        };
        self.open().listeners.iter().map(copy).collect()
    }

    fn tell_all(&self, order: impl Fn() -> Order) {
        self.inboxes.iter().for_each(|inbox| inbox.order(order()));
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Whether two places can be listened at by one socket alone: not if any free port is asked for.
fn is_same_socket(one: &ListenPlace, other: &ListenPlace) -> bool {
    one == other && one.address().is_none_or(|address| address.port() != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reload_that_moves_a_place_to_tls_names_the_way() {
        let path = std::env::temp_dir().join(format!("staunch-moved-{}", std::process::id()));
        let places = [ListenPlace::Unix(path.clone())];
        let control = Control::new(&[Arc::new(Mailbox::<()>::new(Box::new(|| ())))]);
        control.apply(control.prepare(&places, &[]).unwrap());
        let refused = control.prepare(&[], &places).unwrap_err().to_string();
        assert!(refused.contains("whether TLS is spoken there"), "{refused}");
        drop(control.prepare(&places, &[]).unwrap());
        assert!(path.exists(), "all stays as it was");
        drop(control);
        assert!(!path.exists());
    }
}
