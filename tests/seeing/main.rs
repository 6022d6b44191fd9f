//! What an operator sees of a running server: logs, metrics, the admin address, `staunch top`.
#![forbid(unsafe_code)]

mod admin;
mod dashboard;
mod log;
mod peer;
mod sites;
mod top;
mod trouble;
mod unread;
