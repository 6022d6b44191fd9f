//! Readers that have stopped reading, and a server that can send them no more.
//!
//! This file owns what is published until every one of them stands still. It must never judge.
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::fan_server::FanOut;
use super::publishing::publish;
use super::readers::{Readers, Reading};
use super::sockets::BufferedSockets;
use crate::setting::Setting;

/// More than the buffers of both ends hold: some 150 KB on loopback.
const UPDATES: u32 = 250;
const VALUE_BYTES: usize = 2000;
/// Each update is sent before the next one comes: an older one that is still to be sent may be skipped.
const PAUSE: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(20);

/// Publishes as much as stalls readers: also before they come, so that what is kept of a topic is the same
/// before and after.
///
/// # Errors
/// A publication that is not taken.
pub(super) fn publish_much(server: &FanOut) -> Result<(), String> {
    let value = "x".repeat(VALUE_BYTES);
    for _ in 0..UPDATES {
        publish(server, &value)?;
        sleep(PAUSE);
    }
    Ok(())
}

/// So many readers come and stop reading; returns when the kernel takes no more for any of them.
///
/// # Errors
/// Some do not come, or do not stand still.
pub(super) fn stall(
    server: &FanOut,
    count: u32,
    group: u8,
    setting: &Setting,
) -> Result<(Readers, BufferedSockets), String> {
    let reading = Reading { count, stalled: true, group, ..Reading::default() };
    let mut readers = Readers::start(server, &reading, setting)?;
    readers.wait()?;
    publish_much(server)?;
    let began = Instant::now();
    loop {
        let sockets = BufferedSockets::of_port(server.port())?;
        if sockets.waiting >= u64::from(count) {
            return Ok((readers, sockets));
        }
        if began.elapsed() > PATIENCE {
            return Err(format!("only {} of {count} readers stand still", sockets.waiting));
        }
        publish_much(server)?;
    }
}
