//! HTTPS by the real server on both backends, with other programs as its visitors: curl, openssl, Python,
//! Chromium.
//!
//! A program that is not installed is said so and its test skipped; with `CI=true` it fails.

mod answers;
mod browser;
#[path = "../../crates/tls/tests/house/clients.rs"]
mod certificates;
mod clients;
mod first;
mod pairs;
mod session_file;
mod strangers;
mod tickets;
mod world;
