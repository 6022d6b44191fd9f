//! The Debian package: made, looked at, installed in a clean Debian, used, removed.
//!
//! It must never install anything on the machine it runs on: the clean Debian stands in a folder below
//! cargo's target folder. Order: the archive of the clean Debian is made once and kept, each run unpacks it
//! anew.
#![forbid(unsafe_code)]

mod booted;
mod chroot;
mod container;
mod life;
mod made;
