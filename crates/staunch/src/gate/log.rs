//! What happens, as lines on standard error: for people, or as JSON.

use std::io::Write as _;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use serde_json::json;
use staunch_gate::daemon::{Event, Say};
use staunch_netio::clock;

/// Says what happens.
pub(super) fn say(as_json: bool) -> Say {
    Arc::new(move |event| {
        let line = if as_json { json(event) } else { format!("staunch: gate: {}", event.text) };
        // Nobody who reads it is no reason not to protect.
        let _ = writeln!(std::io::stderr(), "{line}");
    })
}

fn json(event: &Event) -> String {
    let seconds = clock::unix_time().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    json!({"time": seconds, "event": event.kind, "interface": event.interface, "text": event.text})
        .to_string()
}
