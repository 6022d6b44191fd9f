//! Lanes beside the main one, each in one word of the command line, such as `slow-headers:100`.
//!
//! It must never change the main lane.

use std::time::Duration;

use staunch_loadgen::flood::FloodPlan;
use staunch_loadgen::plan::{LaneKind, LanePlan};
use staunch_loadgen::schedule::Arrivals;
use staunch_loadgen::url::Url;
use staunch_netio::Address;

use super::arguments::Slow;
use super::plan::{self, Aim};
use crate::units;

/// Pause of a slow lane that stands beside another.
const INTERVAL: Duration = Duration::from_secs(1);

/// What may be written.
const FORMS: &str = "closed:N, open:RATE, slow-headers:N, slow-body:N, slow-reader:N, hold:N or \
                     flood:INTERFACE:RATE";

/// The lane that a word asks for. Its name is the word.
///
/// # Errors
/// Names the word and what could stand there.
pub(crate) fn lane(word: &str, aim: &Aim<'_>, address: &Address) -> Result<LanePlan, String> {
    let wrong = |reason: String| format!("--with {word}: {reason}");
    let Some((kind, rest)) = word.split_once(':') else {
        return Err(wrong(format!("write {FORMS}")));
    };
    let count = || {
        let count = units::count(rest).map_err(wrong)?;
        u32::try_from(count).map_err(|_| wrong("that is too many".into()))
    };
    let kind = match kind {
        "closed" => LaneKind::Closed {
            connections: count()?,
            pipeline: 1,
            requests_per_connection: aim.ways.no_keep_alive.then_some(1),
            requests: None,
        },
        "open" => LaneKind::Open {
            arrivals: Arrivals::Constant,
            profile: units::profile(rest).map_err(wrong)?,
            slots: plan::slots(aim.ways, None),
        },
        "slow-headers" => plan::slow_kind(Slow::Headers, count()?, INTERVAL),
        "slow-body" => plan::slow_kind(Slow::Body, count()?, INTERVAL),
        "slow-reader" => plan::slow_kind(Slow::Reader, count()?, INTERVAL),
        "hold" => LaneKind::Hold { connections: count()?, open_per_s: None, request_first: false },
        "flood" => LaneKind::Flood(flood(rest, address).map_err(wrong)?),
        _ => return Err(wrong(format!("write {FORMS}"))),
    };
    let url: Url = aim.url.parse().map_err(|fault| format!("{fault}"))?;
    let asks = matches!(kind, LaneKind::Closed { .. } | LaneKind::Open { .. });
    let mut lane = plan::lane(word, kind, aim, &url)?;
    if !asks {
        // Patience is that of people who wait for an answer. A slow client is there to stay.
        (lane.patience, lane.late_after) = (None, None);
    }
    Ok(lane)
}

/// `INTERFACE:RATE`.
fn flood(text: &str, address: &Address) -> Result<FloodPlan, String> {
    let Address::Internet(destination) = address else {
        return Err("a Unix socket cannot be flooded".into());
    };
    let (interface, rate) = text.split_once(':').unwrap_or((text, ""));
    let rate_per_s = if rate.is_empty() { None } else { Some(units::rate(rate)?) };
    Ok(FloodPlan { rate_per_s, ..FloodPlan::new(interface, *destination) })
}
