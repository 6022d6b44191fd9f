//! The site of a server, as the settings say it.

use std::path::Path;

use crate::groups::{AccessLog, Certificates, ClientAuth, Content, Live, PathRule};
use crate::units::Application;

/// The settings of a site.
#[derive(Debug, Clone, PartialEq)]
pub struct Site {
    /// Hosts it answers for, without port, in lower case; `*.` stands for every host below.
    pub hosts: Vec<String>,
    /// Where requests for its other hosts are redirected to.
    pub canonical_host: Option<String>,
    /// Certificates of its own.
    pub tls: Option<Certificates>,
    /// Whose certificates its clients show; `None`: as at the top. See [`crate::Config::client_auth`].
    pub client_auth: Option<Option<ClientAuth>>,
    /// Whether it answers for all other hosts.
    pub default: bool,
    /// The access log of requests to its hosts.
    pub access_log: AccessLog,
    /// Live data: publishing, polling, streams of events.
    pub live: Live,
    /// What is served, and how.
    pub content: Content,
    /// Rules for paths: all that match hold, the later over the earlier.
    pub paths: Vec<PathRule>,
}

impl Site {
    /// What the site is called: its first host; nothing for one that names none.
    pub fn name(&self) -> &str {
        self.hosts.first().map_or("", String::as_str)
    }

    /// Every folder it serves: its root, and those of paths.
    pub fn roots(&self) -> impl Iterator<Item = &Path> {
        let of_paths = self.paths.iter().filter_map(|rule| rule.root.as_deref());
        self.content.root.as_deref().into_iter().chain(of_paths)
    }

    /// Every application that answers for some of its paths, which may be there twice.
    pub fn applications(&self) -> impl Iterator<Item = &Application> {
        let of_paths = self.paths.iter().filter_map(|rule| rule.proxy.as_ref()?.as_ref());
        self.content.proxy.iter().chain(of_paths)
    }
}
