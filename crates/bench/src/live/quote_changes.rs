//! Symbols whose values change, and somebody who looks whether a line is ever half old and half new.
//!
//! This file owns the values of the symbols: each is one digit again and again, so a torn line has two. It
//! must never be timed.
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::publishing::post;
use crate::client::HttpClient;

const SYMBOLS: u32 = 5000;
const VALUE_BYTES: usize = 100;
/// 2 000 symbols a second.
const BATCH: u32 = 100;
const BATCH_INTERVAL: Duration = Duration::from_millis(50);
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Length of a list of so many symbols.
pub(super) fn list_bytes(symbols: usize) -> usize {
    symbols * (quote(&symbol(0), 0).len() + 1)
}

/// Publishes all symbols once.
///
/// # Errors
/// They are not taken.
pub(super) fn first_values(address: SocketAddr) -> Result<(), String> {
    publish(address, 0..SYMBOLS, 0)
}

/// Values that change until this ends.
#[derive(Debug)]
pub(super) struct Changes {
    over: Arc<AtomicBool>,
    publisher: JoinHandle<Result<(), String>>,
    looker: JoinHandle<Result<ListsSeen, String>>,
}

/// What somebody has seen who looked meanwhile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ListsSeen {
    /// Lists looked at.
    pub(super) lists: u64,
    /// Lines that were no value of any time.
    pub(super) torn: u64,
}

impl Changes {
    /// Values begin to change.
    pub(super) fn begin(address: SocketAddr) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (publisher, looker) = (Arc::clone(&over), Arc::clone(&over));
        Self {
            over,
            publisher: thread::spawn(move || change(address, &publisher)),
            looker: thread::spawn(move || look(address, &looker)),
        }
    }

    /// They change no more.
    ///
    /// # Errors
    /// A publication that was not taken, a list that was not answered.
    pub(super) fn end(self) -> Result<ListsSeen, String> {
        self.over.store(true, Ordering::Relaxed);
        let panicked = || "a thread has panicked".to_owned();
        let published = self.publisher.join().map_err(|_| panicked())?;
        let seen = self.looker.join().map_err(|_| panicked())?;
        published.and(seen)
    }
}

fn change(address: SocketAddr, over: &AtomicBool) -> Result<(), String> {
    for turn in 1.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let first = turn * BATCH % SYMBOLS;
        publish(address, first..first + BATCH, turn * BATCH / SYMBOLS)?;
        thread::sleep(BATCH_INTERVAL);
    }
    Ok(())
}

fn look(address: SocketAddr, over: &AtomicBool) -> Result<ListsSeen, String> {
    let mut client = HttpClient::connect(address)?;
    let mut seen = ListsSeen::default();
    while !over.load(Ordering::Relaxed) {
        let first = seen.lists as u32 * 37 % (SYMBOLS - 5);
        let symbols: Vec<String> = (first..first + 5).map(symbol).collect();
        let reply = client.get(&format!("/list={}", symbols.join(",")))?;
        seen.lists += 1;
        seen.torn += torn(&String::from_utf8_lossy(&reply.body), &symbols);
        thread::sleep(LOOK_INTERVAL);
    }
    Ok(seen)
}

fn publish(address: SocketAddr, symbols: std::ops::Range<u32>, version: u32) -> Result<(), String> {
    let line =
        |number| format!("{{\"topic\":\"quotes.{}\",\"data\":\"{}\"}}\n", symbol(number), value(version));
    let lines: String = symbols.map(line).collect();
    post(address, "/publish?quiet", "application/x-ndjson", &lines).map(|_| ())
}

fn symbol(number: u32) -> String {
    format!("s{number:04}")
}

fn value(version: u32) -> String {
    char::from(b'0' + (version % 10) as u8).to_string().repeat(VALUE_BYTES)
}

/// A line of a list, without its end.
fn quote(symbol: &str, version: u32) -> String {
    format!("var {symbol}=\"{}\";", value(version))
}

/// Lines that are not those of the symbols in their order, each with one digit.
fn torn(text: &str, symbols: &[String]) -> u64 {
    let mut lines = text.lines();
    let is_whole = |symbol: &String, line: &str| (0..10).any(|version| line == quote(symbol, version));
    symbols.iter().filter(|symbol| !lines.next().is_some_and(|line| is_whole(symbol, line))).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_is_seen() {
        let symbols = [symbol(1), symbol(22)];
        let line = |symbol: &str, value: &str| format!("var {symbol}=\"{value}\";\n");
        let whole = line("s0001", &value(3)) + &line("s0022", &value(14));
        assert_eq!(torn(&whole, &symbols), 0);
        let half = value(3)[..50].to_owned() + &value(4)[50..];
        assert_eq!(torn(&(line("s0001", &half) + &line("s0022", &value(1))), &symbols), 1);
        assert_eq!(torn(&line("s0022", &value(1)), &symbols), 2);
    }
}
