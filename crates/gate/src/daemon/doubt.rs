//! The sockets themselves, asked who waits: what the tracker has counted is not believed for ever.
//!
//! The kernel looks through all connections of the host for an answer, so it is asked aside of the loop. It
//! must never be asked more often than once a second for a port.

use std::io;

use staunch_netio::host::sock_diag::SockDiag;

use super::aside::Aside;

/// A port by its place among all, and how many wait there in truth.
type Answer = (usize, u64);

/// The look at the sockets that wait, made where the tracker's count is doubted.
pub(super) struct Doubt {
    /// Until it begins, then it is aside.
    diag: Option<(SockDiag, Vec<u16>)>,
    aside: Option<Aside<Vec<usize>, Vec<Answer>>>,
    /// Ports that are to be asked about as soon as nobody thinks any more.
    wanted: Vec<usize>,
}

impl Doubt {
    /// In the network namespace of the calling thread. Where it cannot be had sensors say so.
    pub(super) fn new(ports: &[u16]) -> Self {
        let diag = SockDiag::open().ok().map(|diag| (diag, ports.to_vec()));
        Self { diag, aside: None, wanted: Vec::new() }
    }

    /// From now on there may be answers.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        let Some((mut diag, ports)) = self.diag.take() else { return Ok(()) };
        let mut answer = move |place: usize| Some((place, diag.unread(*ports.get(place)?).ok()?));
        self.aside = Some(Aside::begin(move |places: Vec<usize>| {
            places.into_iter().filter_map(&mut answer).collect()
        })?);
        Ok(())
    }

    /// Asks about these ports, or later if it still thinks.
    pub(super) fn ask(&mut self, places: impl Iterator<Item = usize>) {
        let Some(aside) = &mut self.aside else { return };
        for place in places {
            if !self.wanted.contains(&place) {
                self.wanted.push(place);
            }
        }
        if !self.wanted.is_empty() {
            aside.ask(|| std::mem::take(&mut self.wanted));
        }
    }

    /// What was just told.
    pub(super) fn answers(&mut self) -> Vec<Answer> {
        self.aside.as_mut().and_then(Aside::answer).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn each_port_is_answered_for() {
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a listener"));
        let addresses = listeners.each_ref().map(|one| one.local_addr().expect("an address"));
        let mut asks = TcpStream::connect(addresses[1]).expect("a connection");
        asks.write_all(b"please").expect("a connection");
        let mut doubt = Doubt::new(&addresses.map(|address| address.port()));
        doubt.ask([0].into_iter());
        assert_eq!(doubt.answers(), [], "nobody is there to answer yet");
        doubt.begin().expect("a thread");
        let mut ask = || loop {
            doubt.ask([0, 1].into_iter());
            let answers = doubt.answers();
            if !answers.is_empty() {
                break answers;
            }
            std::thread::yield_now();
        };
        // What was sent may be on its way.
        while ask() != [(0, 0), (1, 1)] {}
    }
}
