//! Peers of every manner, most of them bad. Each is one connection, and each is bounded in time and bytes.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::server::{Server, connect};

/// No peer waits longer for one operation: at unload they go on with the next connection soon.
const PATIENCE: Duration = Duration::from_secs(2);
/// Rest of a peer that finds no server.
const REST: Duration = Duration::from_millis(5);

/// Numbers that are the same in each run (xorshift, Marsaglia 2003).
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// What a peer does with its connection.
type Manner = fn(&Server, &mut TcpStream, &mut Dice) -> io::Result<()>;

/// Every manner; a peer takes one after the other.
const MANNERS: [Manner; 9] =
    [asks, leaves, resets, half_closes, trickles, takes_nothing, takes_little, sends_garbage, says_nothing];

fn asks(server: &Server, stream: &mut TcpStream, _: &mut Dice) -> io::Result<()> {
    (0..3).try_for_each(|_| server.ask_on(stream).map_err(io::Error::other))
}

fn leaves(_: &Server, _: &mut TcpStream, _: &mut Dice) -> io::Result<()> {
    Ok(())
}

fn resets(server: &Server, stream: &mut TcpStream, _: &mut Dice) -> io::Result<()> {
    stream.write_all(server.request())?;
    Ok(rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO))?)
}

fn half_closes(server: &Server, stream: &mut TcpStream, _: &mut Dice) -> io::Result<()> {
    stream.write_all(server.request())?;
    stream.shutdown(Shutdown::Write)?;
    stream.read_to_end(&mut Vec::new()).map(drop)
}

fn trickles(server: &Server, stream: &mut TcpStream, _: &mut Dice) -> io::Result<()> {
    stream.set_nodelay(true)?;
    server.request().iter().take(30).try_for_each(|byte| stream.write_all(&[*byte]))
}

/// Asks until nothing more fits, never reads, and leaves.
fn takes_nothing(server: &Server, stream: &mut TcpStream, dice: &mut Dice) -> io::Result<()> {
    stream.set_write_timeout(Some(Duration::from_millis(50 + dice.roll() % 100)))?;
    stream.write_all(&server.large_request())
}

fn takes_little(server: &Server, stream: &mut TcpStream, dice: &mut Dice) -> io::Result<()> {
    let sent = takes_nothing(server, stream, dice);
    stream.read_exact(&mut vec![0; 20_000])?;
    sent
}

fn sends_garbage(_: &Server, stream: &mut TcpStream, dice: &mut Dice) -> io::Result<()> {
    let bytes: Vec<u8> = (0..dice.roll() % 5000).map(|_| dice.roll() as u8).collect();
    stream.write_all(&bytes)?;
    stream.read(&mut [0; 100]).map(drop)
}

fn says_nothing(_: &Server, stream: &mut TcpStream, _: &mut Dice) -> io::Result<()> {
    stream.read(&mut [0; 1]).map(drop)
}

/// What peers have done so far.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    /// Connections that were opened.
    pub(crate) opened: AtomicUsize,
    /// Those that went as their peer wished.
    pub(crate) pleased: AtomicUsize,
    /// Peers begin no new connection for now.
    pub(crate) rests: AtomicBool,
    /// Peers begin no new connection any more, and end.
    pub(crate) is_over: AtomicBool,
}

impl Crowd {
    /// Begins peers one after the other until `is_over`. A failed one is no fault: the server may be gone.
    pub(crate) fn keep_coming(&self, server: &Server, seed: u64) {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut turn = seed as usize;
        while !self.is_over.load(Ordering::Relaxed) {
            if self.rests.load(Ordering::Relaxed) {
                std::thread::sleep(REST);
                continue;
            }
            turn += 1;
            let Ok(mut stream) = connect(PATIENCE) else {
                std::thread::sleep(REST);
                continue;
            };
            self.opened.fetch_add(1, Ordering::Relaxed);
            if MANNERS[turn % MANNERS.len()](server, &mut stream, &mut dice).is_ok() {
                self.pleased.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Waits until so many more connections were opened.
    pub(crate) fn wait_for(&self, further: usize) {
        let aim = self.opened.load(Ordering::Relaxed) + further;
        while self.opened.load(Ordering::Relaxed) < aim {
            std::thread::sleep(REST);
        }
    }
}
