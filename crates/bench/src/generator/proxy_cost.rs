//! The scenarios `proxy-cost`: what a proxied request, a large answer, a WebSocket and a slow client cost.
//!
//! Each file below owns one scenario, measured beside nginx and HAProxy. Proxies have one worker, on CPU 0;
//! applications and load run on CPU 1. No scenario may judge by what a proxy says of itself: processor time
//! and memory come from /proc.

mod backing;
mod judging;
mod large;
mod places;
mod requests;
mod slow;
mod slow_clients;
mod tunnels;
mod upgrading;

pub(crate) use large::run as large;
pub(crate) use places::run as places;
pub(crate) use requests::run as requests;
pub(crate) use slow::run as slow;
pub(crate) use tunnels::run as tunnels;
