//! The scenarios of `staunch gate`: goodput, reaction, floods and rest, with the gate and without.
//!
//! It owns the bars on the gate and the bed they are measured in, which the demonstration uses too. The
//! server and the reception of its packets are on processor 0, its clients on others. It must never give the
//! gate a figure of the server: the gate has to find out by itself.

pub(crate) mod bed;
pub(crate) mod clients;
pub(crate) mod daemon;
pub(crate) mod flood;
mod flooded;
pub(crate) mod generators;
mod gzip;
mod honest;
mod model;
mod reaction;
mod reception;
mod spent;
pub(crate) mod stage;
mod steady;
mod strangers;
pub(crate) mod subject;

pub(super) use flooded::run as flooded;
pub(super) use gzip::run as gzip;
pub(super) use honest::run as honest;
pub(super) use model::run as model;
pub(super) use reaction::run as reaction;
pub(super) use steady::run as steady;
pub(super) use strangers::run as strangers;

/// Why nothing can be measured here; none if it can.
fn obstacle() -> Option<String> {
    let made = bed::Bed::make(bed::Reception::OwnCore);
    made.err().map(|error| format!("no network namespaces here (root is needed): {error}"))
}
