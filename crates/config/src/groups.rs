//! The table of keys: every one of them, with its default, its syntax and what it means.

mod acme;
mod fabric;
mod live;
mod process;
mod proxy;
mod serving;
mod site;
mod tls;

pub use acme::Acme;
pub use fabric::Fabric;
pub use live::{Live, LiveIssuerRule, LiveTopicRule};
pub use process::{AccessLog, Logs, Process};
pub use proxy::Proxy;
pub use serving::{Clients, Deadlines, Network, Pressure};
pub use site::{BasicAuth, Content, Cors, Names, PathRule, Redirect};
pub use tls::{CertificateFiles, Certificates, ClientAuth, Tls};

use crate::group::Group;
use crate::key::Key;

/// Groups of the whole server, with their headings, in the order of the help.
pub const GLOBAL: &[(&str, &[Key])] = &[
    (Network::TITLE, Network::KEYS),
    (Tls::TITLE, Tls::KEYS),
    (Acme::TITLE, Acme::KEYS),
    (Deadlines::TITLE, Deadlines::KEYS),
    (Pressure::TITLE, Pressure::KEYS),
    (Clients::TITLE, Clients::KEYS),
    (Live::TITLE, Live::KEYS),
    (Proxy::TITLE, Proxy::KEYS),
    (Fabric::TITLE, Fabric::KEYS),
    (AccessLog::TITLE, AccessLog::KEYS),
    (Logs::TITLE, Logs::KEYS),
    (Process::TITLE, Process::KEYS),
];
