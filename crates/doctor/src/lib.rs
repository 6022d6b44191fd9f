//! What of a host is set well for a web server, what is not, and what to set instead.
//!
//! It owns the list of checks with their reasons and sources, and the file of settings it was allowed to
//! write. It must never advise anything that makes the host less safe: no mitigation switched off, no filter
//! lifted, no privilege handed out. It reads files beneath a root and asks the kernel nothing else, so a
//! recorded tree is judged like a living host.
//!
//! Order: [`Host::at`], [`examine()`], then [`text()`], [`json()`], [`explain()`]; or [`SettingChange::of`]
//! and its `apply`.
#![forbid(unsafe_code)]

mod change;
mod check;
mod checks;
mod examine;
mod explain;
mod finding;
mod host;
mod json;
mod limits;
mod page;
mod text;

pub use change::{DEFAULT_FILE, SettingChange, Undone, undo};
pub use examine::{Summary, examine};
pub use explain::explain;
pub use finding::{Finding, State};
pub use host::{Host, NicRing};
pub use json::json;
pub use page::page;
pub use text::text;
