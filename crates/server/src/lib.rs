//! What is served: sites of prepared content.
//!
//! It owns the meaning of a path, the prepared responses and the threads that prepare them. It must never
//! open a socket, touch a disk on a worker's thread (the documented mode without a store aside), or format,
//! compress, lock or allocate for a request whose answer is held and needs no decision.
//!
//! Order of calls: [`SitesShared::open`] once, [`SitesShared::start`] once the workers' mailboxes exist,
//! [`Front::new`] once per worker, [`SitesShared::prepare`] whenever what is served is to change.
#![forbid(unsafe_code)]

mod admin;
mod admission;
mod checks;
mod class;
mod config;
mod content;
mod crew;
mod dictionary;
mod errand;
mod front;
mod https;
pub mod limits;
mod live;
pub mod log;
mod looks;
mod mail;
pub mod metrics;
mod owner;
mod page;
mod permission;
mod problem;
mod proxy;
mod queue;
mod redirect;
mod respond;
mod rules;
mod scripts;
mod shared;
mod site;
mod sites;
mod status;

pub use admin::{Admin, MoreMetrics, Now, Page, Pages};
pub use config::{
    Attempts, BasicAuth, ClientDemand, Cors, DemandedIdentity, Destination, Dictionary, KnownIdentity,
    Network, PathRule, ProxyWire, RedirectRule, Scripts, SiteConfig, SiteError, SiteRules,
};
pub use content::negotiate::Encoding;
pub use content::{listing, range};
pub use dictionary::DictionaryFigures;
pub use front::{Front, FrontParts};
pub use https::HttpsHosts;
pub use live::{
    LiveConfig, LiveError, LiveFigures, LiveFollowed, LiveIssuer, LiveKeys, LiveShared, LiveSites, LiveState,
    LiveSync, LiveTopic, LiveTopicKind, NotPublished,
};
pub use mail::Mail;
pub use proxy::{
    PROXY_CHECKS_MAX, ProxyApplication, ProxyCheck, ProxyCheckFigures, ProxyClassFigures, ProxyConfig,
    ProxyFigures, ProxyServer, ProxyServerFigures, ProxyShared, ProxyStep, ProxySticky,
};
pub use rules::{Hashing, PAGE_STATUSES, SALT_BYTES, hash_password};
pub use shared::Progress;
pub use sites::{PreparedSites, Replaced, SitesShared};
pub use status::{About, StatusPage};
