//! Many messages by one call of the program, as by sendmmsg(2).
//!
//! This file owns how such a call waits and what it tells. It must never try again what was taken.

use std::io;
use std::net::SocketAddrV4;

use staunch_netio::clock;

use super::Socket;

impl Socket {
    /// Sends messages in order, each to its address, and says how many were taken: all of them, or those
    /// before one that cannot be sent, or that would have to wait where the socket must not. Nothing of the
    /// others was sent, and the next call, which begins with them, meets the error. Frames of many messages
    /// go by one system call, but in UDP each by its own.
    ///
    /// # Errors
    /// Those of [`Socket::send_to`], for the first message.
    pub fn send_batch(&self, batch: &[(&[u8], SocketAddrV4)]) -> io::Result<usize> {
        let may_broadcast = self.shared().broadcast;
        let mut taken = 0;
        while taken < batch.len() {
            let (count, stopped) =
                self.endpoint().send_batch(&batch[taken..], may_broadcast, clock::now_ms());
            taken += count;
            match stopped.or_else(|error| self.wait_for_room(error)) {
                Ok(()) => {}
                Err(_) if taken > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(taken)
    }
}
