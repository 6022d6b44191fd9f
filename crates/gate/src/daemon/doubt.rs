//! The sockets themselves, asked who waits: what the tracker has counted is not believed for ever.
//!
//! The kernel looks through all connections of the host for an answer, so it is asked aside of the loop. It
//! must never be asked more often than once a second.

use staunch_netio::host::sock_diag::SockDiag;

use super::aside::Aside;

/// See the module's text.
pub(super) struct Doubt {
    /// Until it begins, then it is aside.
    diag: Option<(SockDiag, Vec<u16>)>,
    aside: Option<Aside<(), Option<u64>>>,
}

impl Doubt {
    /// In the network namespace of the calling thread. Where it cannot be had sensors say so.
    pub(super) fn new(ports: &[u16]) -> Self {
        Self { diag: SockDiag::open().ok().map(|diag| (diag, ports.to_vec())), aside: None }
    }

    /// From now on there may be answers.
    pub(super) fn begin(&mut self) -> std::io::Result<()> {
        let Some((mut diag, ports)) = self.diag.take() else { return Ok(()) };
        self.aside = Some(Aside::begin(move |()| diag.unread(&ports).ok())?);
        Ok(())
    }

    /// Asks, unless it still thinks.
    pub(super) fn ask(&mut self) {
        if let Some(aside) = &mut self.aside {
            aside.ask(|| ());
        }
    }

    /// How many wait in truth, when it was just told.
    pub(super) fn answer(&mut self) -> Option<u64> {
        self.aside.as_mut()?.answer()?
    }
}
