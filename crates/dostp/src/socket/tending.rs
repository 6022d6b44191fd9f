//! What a program does for a socket that it waits for by itself: the thread beside it, what is due, its end.
//!
//! It must never take a message.

use std::io;
use std::sync::Arc;

use staunch_netio::clock;

use super::Socket;
use super::keeper::Keeper;

impl Socket {
    /// Starts the thread beside the socket, where [`super::Options::is_kept_later`] has put that off. Until
    /// then nobody's question is answered.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn keep(&mut self) -> io::Result<()> {
        if let Some(descriptor) = self.unkept.take() {
            let keeper = Keeper::start(Arc::clone(&self.endpoint), descriptor, self.alarm.clone())?;
            self.keeper = Some(Arc::new(keeper));
        }
        Ok(())
    }

    /// Does what is due: answers, announcements, repetitions. Receiving does it too; a program that waits for
    /// the descriptor by itself calls this when [`Socket::due_ms`] has come.
    ///
    /// # Errors
    /// ENETDOWN.
    pub fn tend(&self) -> io::Result<()> {
        self.endpoint().tend(clock::now_ms())
    }

    /// When [`Socket::tend`] has something to do at the earliest, on the clock of `clock::now_ms`.
    pub fn due_ms(&self) -> Option<u64> {
        self.endpoint().node.due_ms()
    }

    /// An error of the descriptor that has not been told yet, for who waits for it by itself.
    ///
    /// # Errors
    /// That error: ENETDOWN if the interface went down.
    pub fn take_error(&self) -> io::Result<()> {
        self.heed_alarm()?;
        Ok(rustix::net::sockopt::socket_error(&*self.descriptor)??)
    }

    /// Says to all that this node is there: its link has come up again.
    ///
    /// # Errors
    /// ENETDOWN; in UDP, why it left for none of the nodes that are named, such as ENETUNREACH.
    pub fn greet(&self) -> io::Result<()> {
        let now_ms = clock::now_ms();
        let mut endpoint = self.endpoint();
        endpoint.greet(now_ms);
        endpoint.tend(now_ms)?;
        endpoint.reaches_anybody()
    }

    /// Tells the others that this node leaves.
    ///
    /// # Errors
    /// ENETDOWN.
    pub fn leave(&self) -> io::Result<()> {
        let mut endpoint = self.endpoint();
        endpoint.node.peers_mut().leave(clock::now_ms());
        endpoint.tend(clock::now_ms())
    }
}
