//! The model's curves: what it says at many loads between two.
//!
//! It must never draw.

use staunch_queueing::{Gate, Host, OfferedLoad};

use super::expected::{Expected, expect};
use super::host::behind;
use super::measured::Over;

/// So many places are calculated along a curve: a bend every six points of a picture.
const PLACES_COUNT: usize = 120;

/// The model over a range of loads.
pub(crate) struct Curves {
    /// Where along the axis, growing.
    pub(crate) places: Vec<f64>,
    /// Without a gate, one per place.
    pub(crate) off: Vec<Expected>,
    /// Behind the gate.
    pub(crate) on: Vec<Expected>,
    /// Whether it is what will be for ever; otherwise it is what a measurement shows that ends, and what is
    /// served after it is no part of.
    pub(crate) is_long_run: bool,
}

/// What is asked along a curve.
pub(crate) struct Range<'a> {
    /// What grows.
    pub(crate) over: Over,
    /// What stays: the other half of the load.
    pub(crate) load: OfferedLoad,
    /// From, and to.
    pub(crate) ends: (f64, f64),
    /// Whether steps are equal, or equal factors.
    pub(crate) is_even: bool,
    /// Places that must be among them.
    pub(crate) also: &'a [f64],
    /// How long each load is offered; `None`: the long run.
    pub(crate) sending_s: Option<f64>,
}

/// Asks the model.
///
/// # Errors
/// A number that no host or load can have.
pub(crate) fn curves(host: &Host, gate: Gate, range: &Range<'_>) -> Result<Curves, String> {
    let places = places(range);
    let gated = behind(host, gate);
    let along = |host: &Host| {
        let at = |place: &f64| expect(host, &range.over.at(&range.load, *place), range.sending_s);
        places.iter().map(at).collect::<Result<Vec<Expected>, String>>()
    };
    Ok(Curves { off: along(host)?, on: along(&gated)?, is_long_run: range.sending_s.is_none(), places })
}

fn places(range: &Range<'_>) -> Vec<f64> {
    let (from, to) = range.ends;
    let last = (PLACES_COUNT - 1) as f64;
    let place = |step: usize| {
        let share = step as f64 / last;
        if range.is_even { from + (to - from) * share } else { from * (to / from).powf(share) }
    };
    let mut places: Vec<f64> = (0..PLACES_COUNT).map(place).chain(range.also.iter().copied()).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    places
}
