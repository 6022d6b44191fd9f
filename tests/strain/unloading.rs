//! This module owns the unloading under load: again and again, while peers of every manner come and others
//! stay connected. It tells how long that took, and never judges it.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::peers::Crowd;
use crate::pieces::read_to_end;
use crate::server::{Name, PATIENCE, Server, connect};

/// Peers that come while the module is unloaded.
const PEERS: u64 = 8;
/// Connections that peers open before each unloading.
const OPENED: usize = 40;
/// Mode `wq` of khttpd takes 512 connections; peers need places, too.
const HELD_BY_WQ_MAX: usize = 450;

/// How often the module is unloaded, and how many connections are held each time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    pub(crate) count: usize,
    pub(crate) connections: usize,
}

/// Unloads and loads again and again while peers of every manner come. `moves` is told of each round.
pub(crate) fn under_load(server: &Server, rounds: Rounds, moves: &dyn Fn()) -> Result<String, String> {
    let held = held_by(server, rounds.connections);
    let crowd = Crowd { rests: true.into(), ..Crowd::default() };
    let mut took = std::thread::scope(|scope| {
        for seed in 1..=PEERS {
            let crowd = &crowd;
            scope.spawn(move || crowd.keep_coming(server, seed));
        }
        let each = (0..rounds.count).map(|_| round(server, &crowd, held).inspect(|_| moves()));
        let took = each.collect::<Result<Vec<_>, _>>();
        crowd.is_over.store(true, Ordering::Relaxed);
        took
    })?;
    if crowd.pleased.load(Ordering::Relaxed) == 0 {
        return Err("no peer was served".to_owned());
    }
    took.sort();
    let ms = |at: usize| took.get(at).map_or(0, Duration::as_millis);
    let (middle, longest) = (ms(took.len() / 2), ms(took.len().saturating_sub(1)));
    Ok(format!("{} times with {held} held, {middle} ms each, {longest} ms at most", rounds.count))
}

/// How many connections can be held in this mode.
fn held_by(server: &Server, wished: usize) -> usize {
    let is_wq = server.name == Name::Khttpd && server.mode.split(' ').next() == Some("wq");
    if is_wq { wished.min(HELD_BY_WQ_MAX) } else { wished }
}

/// Loads, lets peers come, and unloads under all of them; how long the unloading took.
fn round(server: &Server, crowd: &Crowd, held: usize) -> Result<Duration, String> {
    // Long deadlines: the module must not close connections that are held.
    server.load(match server.name {
        Name::Kecho => "idle_s=3600",
        Name::Khttpd => "idle_ms=3600000 head_ms=3600000",
    })?;
    let streams = hold(server, held)?;
    crowd.rests.store(false, Ordering::Relaxed);
    crowd.wait_for(OPENED);
    let begin = Instant::now();
    server.unload()?;
    let took = begin.elapsed();
    // Peers would take the processors from the next ones to be held.
    crowd.rests.store(true, Ordering::Relaxed);
    for mut stream in streams {
        read_to_end(&mut stream)?;
    }
    Ok(took)
}

/// Opens connections that have asked, and waits until the module has all of them.
fn hold(server: &Server, count: usize) -> Result<Vec<TcpStream>, String> {
    let streams = (0..count).map(|_| {
        let mut stream = connect(PATIENCE)?;
        stream.write_all(server.request())?;
        Ok(stream)
    });
    let streams = streams.collect::<std::io::Result<Vec<_>>>();
    let streams = streams.map_err(|error| format!("a connection to be held: {error}"))?;
    let begin = Instant::now();
    while server.connections()? < count {
        if begin.elapsed() > PATIENCE {
            return Err(format!("{} of {count} connections are held", server.connections()?));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(streams)
}
