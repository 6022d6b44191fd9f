//! The proxy: requests for some paths are answered by applications behind this server.
//!
//! It owns which server of an application a request goes to, when it goes there, and what becomes of it if
//! that one fails. It must never open a socket for a request (the engine connects), write a byte of HTTP or
//! FastCGI for one (`relay` and `fastcgi` in `staunch_protocol` do), nor copy a body once more than the
//! engine asks for.
//!
//! Words: an *application* is a group of *servers*, one address each. A server has *places*: so many requests
//! it works on at once. Requests that find none stand in the *line*. A *link* is a connection to a server.
//!
//! The way of a request: rules of its site (`site`), a place (`application`, `staunch_engine::Places`), a
//! link (`links`), the answer (`exchange`); `worker` is asked by the engine about all of them. Beside it
//! servers are checked (`checks`).

mod application;
mod checks;
mod config;
mod error_lines;
mod exchange;
mod figures;
mod journey;
mod links;
mod mail;
mod relaying;
mod shared;
mod shares;
mod sticky;
mod trouble;
mod tunnel;
mod verdict;
mod wire;
mod worker;

pub use checks::{PROXY_CHECKS_MAX, ProxyCheck};
pub use config::{ProxyApplication, ProxyConfig, ProxyServer};
pub use figures::{ProxyCheckFigures, ProxyClassFigures, ProxyFigures, ProxyServerFigures, ProxyStep};
pub(crate) use journey::Journey;
pub(crate) use mail::ProxyMail;
pub use shared::ProxyShared;
pub use sticky::ProxySticky;
pub(crate) use worker::{ProxyErrand, ProxyWorker};
