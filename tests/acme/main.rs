//! Certificates by ACME from a real authority: Pebble, which Let's Encrypt tests clients with, on loopback
//! with a root of its own, and names from its own server of names.
//!
//! Where Pebble, curl or openssl is not installed that is said and the test skipped; with `CI=true` it fails.

mod faults;
mod life;
mod orders;
mod world;
