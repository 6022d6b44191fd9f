//! A connection to a server, and what is said on it.
//!
//! It must never open another when the first ends: that it does is what tests ask.

use std::net::SocketAddr;

use staunch_tests::body::SocketLink;
use staunch_tests::conversation::escape;
use staunch_tests::response::Response;

use crate::house::PATIENCE;

/// A connection, with requests sent and responses heard on it.
pub(crate) struct Talk(pub(crate) SocketLink);

impl Talk {
    pub(crate) fn with(address: SocketAddr) -> Self {
        Self(SocketLink::connect(address).expect("a connection"))
    }

    /// Asks for a path.
    pub(crate) fn ask(&mut self, path: &str) {
        self.0.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
    }

    /// The next response.
    #[track_caller]
    pub(crate) fn hear(&mut self) -> Response {
        loop {
            match Response::read(self.0.received(), false).expect("a lawful response") {
                Some((response, taken)) => {
                    self.0.take(taken);
                    return response;
                }
                None => assert!(
                    self.0.end().is_none() && self.0.fill(PATIENCE),
                    "no whole response: {:?} after {} bytes: {}",
                    self.0.end(),
                    self.0.received().len(),
                    escape(&self.0.received()[..self.0.received().len().min(200)])
                ),
            }
        }
    }

    /// Asks and hears: the body, and whether it was said to be the last.
    #[track_caller]
    pub(crate) fn get(&mut self, path: &str) -> (Vec<u8>, bool) {
        self.ask(path);
        let response = self.hear();
        assert_eq!(response.status, 200, "{path}");
        let last = response.value("Connection").as_deref() == Some("close");
        (response.body, last)
    }

    /// Asks again and again until an answer is said to be the last: a server says that it ends before its
    /// workers know.
    #[track_caller]
    pub(crate) fn until_last(&mut self, path: &str) {
        while !self.get(path).1 {}
        self.ends();
    }

    /// Waits for the end, with nothing before it.
    #[track_caller]
    pub(crate) fn ends(&mut self) {
        while self.0.end().is_none() {
            assert!(self.0.fill(PATIENCE), "the connection does not end");
        }
        assert!(self.0.received().is_empty(), "{}", escape(self.0.received()));
    }
}

/// Sends a GET on a connection of its own and gives the body.
#[track_caller]
pub(crate) fn get(address: SocketAddr, path: &str) -> Vec<u8> {
    Talk::with(address).get(path).0
}
