//! Letters of one worker to another about places.

use staunch_engine::PlaceNews;

use super::application::ServerName;

/// A letter to a worker about a request of its that stood in line.
#[derive(Debug)]
pub(crate) struct ProxyMail {
    /// The server whose place it is.
    pub(super) server: ServerName,
    pub(super) news: PlaceNews,
}
