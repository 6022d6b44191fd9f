//! The life of a server under load: reloads, upgrades, its end, and violent death.
//!
//! It owns one scenario a file, of ours alone: what is promised is that no request fails, which does not
//! depend on other servers.

mod drain;
mod kill9;
mod lasting;
mod reload;
mod upgrade;

pub(super) use drain::run as drain;
pub(super) use kill9::run as kill9;
pub(super) use reload::run as reload;
pub(super) use upgrade::run as upgrade;
