//! What is served: a site of prepared content.
//!
//! It owns the meaning of a path, the prepared responses and the threads that prepare them. It must never
//! open a socket, touch a disk on a worker's thread (the documented mode without a store aside), or format,
//! compress, lock or allocate for a request whose answer is held.
//!
//! Order of calls: [`SiteShared::open`] once, [`SiteShared::start`] once the workers' mailboxes exist,
//! [`SiteShared::handler`] once a worker.
#![forbid(unsafe_code)]

mod config;
mod content;
pub mod limits;
mod problem;
mod redirect;
mod respond;
mod shared;
mod site;
mod status;

pub use config::{SiteConfig, SiteError};
pub use content::negotiate::Encoding;
pub use content::{listing, range};
pub use shared::{Mail, Progress, SiteShared};
pub use site::Site;
pub use status::{About, Reporting, StatusPage};
