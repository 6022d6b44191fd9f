//! What happens, as lines on standard error: for people, or as JSON.
//!
//! It must never make the loop of the gate wait for whoever reads them.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use serde_json::json;
use staunch_gate::daemon::{Event, Say};
use staunch_netio::clock;
use staunch_server::log::LineQueue;

/// Says what happens, by this queue.
pub(super) fn say(queue: Arc<LineQueue>, as_json: bool) -> Say {
    Arc::new(move |event| {
        queue.say(&if as_json { json(event) } else { format!("staunch: gate: {}", event.text) });
    })
}

fn json(event: &Event) -> String {
    let seconds = clock::unix_time().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let Event { kind, interface, port, text } = event;
    json!({"time": seconds, "event": kind, "interface": interface, "port": port, "text": text}).to_string()
}
