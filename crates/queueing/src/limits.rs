//! Capacities of the model, each with its reason.
//!
//! It must never hold a number of a measurement.

/// Places of a queue. Linux keeps `somaxconn` far below; the exact recursion of deterministic service keeps
/// one number for each place.
pub(crate) const PLACES_MAX: u32 = 1 << 20;

/// Load of deterministic service above which the states are not computed: a state is e^30 times as likely as
/// the one below it, so only the last counts in double precision.
pub(crate) const DETERMINISTIC_LOAD_MAX: f64 = 30.0;

/// Events of one simulation. Ten minutes at a million packets a second; a mistaken scenario ends.
pub(crate) const EVENTS_MAX: u64 = 3_000_000_000;

/// Places a fit looks for. No backlog in use is longer, and each trial costs as much as there are places.
pub(crate) const PLACES_FITTED_MAX: u32 = 1 << 16;
