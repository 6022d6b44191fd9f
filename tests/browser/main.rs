//! Pages in a real browser: the demo site, listings, what `staunch load` writes, and galleries that are left.
//!
//! It must never reach a host but this one, nor leave a browser behind. Pictures of every page stand in
//! `browser` and `browser-load` of the build's folder afterwards, to be looked at.
#![forbid(unsafe_code)]

mod chromium;
mod differences;
mod galleries;
mod link;
mod operator;
mod reports;
mod site;
