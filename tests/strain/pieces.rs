//! What a module is put through, piece by piece.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::server::{Name, PATIENCE, Server, connect};

/// Connections at a time of the crowd: one more than a queue of the kernel's has workers for.
const CROWD: usize = 257;
/// Where nothing has come so long, nothing is under way.
const STILL: Duration = Duration::from_secs(3);

/// Much goes there and back, and comes whole.
pub(crate) fn whole(server: &Server) -> Result<String, String> {
    server.load("")?;
    let bytes = server.ask_much()?;
    server.ask()?;
    server.unload()?;
    Ok(format!("{} kB", bytes / 1000))
}

/// Reads to the end; a connection that is reset has ended as well.
pub(crate) fn read_to_end(stream: &mut TcpStream) -> Result<Vec<u8>, String> {
    let mut heard = Vec::new();
    match stream.read_to_end(&mut heard) {
        Ok(_) => Ok(heard),
        Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(heard),
        Err(error) => Err(format!("no end comes: {error}")),
    }
}

/// Opens a connection and sends these bytes.
fn begin(bytes: &[u8]) -> Result<TcpStream, String> {
    let mut stream = connect(PATIENCE).map_err(|error| format!("connect: {error}"))?;
    stream.write_all(bytes).map_err(|error| format!("write: {error}"))?;
    Ok(stream)
}

/// The server ends connections whose peers do nothing.
pub(crate) fn deadlines(server: &Server) -> Result<String, String> {
    server.load(match server.name {
        Name::Kecho => "idle_s=1",
        Name::Khttpd => "head_ms=400 idle_ms=700",
    })?;
    let silent = read_to_end(&mut begin(b"")?)?;
    if !silent.is_empty() {
        return Err(format!("said to a peer that said nothing: {silent:?}"));
    }
    if server.name == Name::Khttpd {
        let late = read_to_end(&mut begin(b"GET / HTTP/1.1\r\nHo")?)?;
        if !late.starts_with(b"HTTP/1.1 408 ") {
            return Err(format!("half a head: {:?}", String::from_utf8_lossy(&late)));
        }
    }
    server.unload()?;
    takes_nothing(server)?;
    Ok("kept".to_owned())
}

/// A peer that takes nothing of an answer gives its place back, though it stays.
fn takes_nothing(server: &Server) -> Result<(), String> {
    server.load(match server.name {
        Name::Kecho => "connections_max=1 idle_s=1",
        Name::Khttpd => "connections=1 write_ms=900",
    })?;
    let mut stays = begin(b"")?;
    stays.set_write_timeout(Some(Duration::from_millis(100))).map_err(|error| error.to_string())?;
    // Writing fails once nothing more fits.
    let _ = stays.write_all(&server.large_request());
    ask_until_there_is_room(server)?;
    drop(stays);
    server.unload()
}

/// Asks again as long as there is no room for one more connection.
fn ask_until_there_is_room(server: &Server) -> Result<(), String> {
    let begin = Instant::now();
    loop {
        match server.ask() {
            Ok(()) => return Ok(()),
            Err(error) if begin.elapsed() > PATIENCE => return Err(format!("no room: {error}")),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// A connection beyond the limit is refused, and has a place once another one has left.
pub(crate) fn one_too_many(server: &Server) -> Result<String, String> {
    server.load(match server.name {
        Name::Kecho => "connections_max=1",
        Name::Khttpd => "connections=1",
    })?;
    let mut first = connect(PATIENCE).map_err(|error| format!("connect: {error}"))?;
    server.ask_on(&mut first)?;
    let heard = read_to_end(&mut connect(PATIENCE).map_err(|error| format!("connect: {error}"))?)?;
    let expected: &[u8] = match server.name {
        Name::Kecho => b"",
        Name::Khttpd => b"HTTP/1.1 503 ",
    };
    if !heard.starts_with(expected) || (expected.is_empty() && !heard.is_empty()) {
        return Err(format!("the second one hears {:?}", String::from_utf8_lossy(&heard)));
    }
    server.ask_on(&mut first)?;
    drop(first);
    ask_until_there_is_room(server)?;
    server.unload()?;
    Ok("refused".to_owned())
}

/// Many connections at a time are all answered, some perhaps only once others have left. Then the module is
/// unloaded with all of them open, and each hears of it.
pub(crate) fn crowd(server: &Server) -> Result<String, String> {
    server.load("")?;
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    // A queue with a processor's own workers: one more than those of all processors.
    let count = if server.mode == "wq-percpu" { (CROWD - 1) * processors + 1 } else { CROWD };
    let mut streams = Vec::new();
    for _ in 0..count {
        let mut stream = connect(PATIENCE).map_err(|error| format!("connect: {error}"))?;
        stream.write_all(server.request()).map_err(|error| format!("request: {error}"))?;
        streams.push(stream);
    }
    let (mut answered, mut waiting) = part(server, streams, STILL)?;
    let had_to_wait = waiting.len();
    while !waiting.is_empty() {
        // As many leave as wait: each may free a worker of another processor only.
        answered.drain(..had_to_wait.min(answered.len()));
        let (further, rest) = part(server, waiting, STILL)?;
        if further.is_empty() && answered.is_empty() {
            return Err(format!("{} of {count} are never answered", rest.len()));
        }
        answered.extend(further);
        waiting = rest;
    }
    server.unload()?;
    for stream in &mut answered {
        read_to_end(stream)?;
    }
    Ok(format!("{count} answered, {had_to_wait} of them had to wait"))
}

/// Reads answers until all have come, or until none has come for so long. Gives who was answered and who was
/// not.
fn part(
    server: &Server,
    mut waiting: Vec<TcpStream>,
    still: Duration,
) -> Result<(Vec<TcpStream>, Vec<TcpStream>), String> {
    let mut answered = Vec::new();
    let mut moved = Instant::now();
    while !waiting.is_empty() && moved.elapsed() < still {
        let mut rest = Vec::new();
        for mut stream in waiting {
            let set = |is_nonblocking| stream.set_nonblocking(is_nonblocking).map_err(|e| e.to_string());
            set(true)?;
            let has_come = stream.peek(&mut [0; 1]).is_ok();
            set(false)?;
            if has_come {
                server.hear_on(&mut stream)?;
                answered.push(stream);
                moved = Instant::now();
            } else {
                rest.push(stream);
            }
        }
        waiting = rest;
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok((answered, waiting))
}
