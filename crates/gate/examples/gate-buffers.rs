//! Where the buffers come from that a web server's host receives into, counted while it is asked for pages
//! from another network namespace. Each line is `NAME WORK NUMBER COUNT`.
//!
//! It owns what is asked for. It must never judge a count: `cargo xtask buffers` does.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use staunch_gate::program::{Attach, Program, RECEPTION_COUNTS, ReceivedBuffers};

/// The words of the command.
const USAGE: &str = "gate-buffers NAME INTERFACE NAMESPACE-OF-CLIENTS ADDRESS [gate]";
/// Files of a hundred requests, and how often each is asked for: the mix of WebStone's first list but its
/// greatest file, which one request in a thousand asks for.
const FILES: [(&str, usize); 4] = [("500", 35), ("5000", 50), ("50000", 14), ("500000", 1)];
/// Connections that are kept, and what is asked over them and with a connection each.
const KEPT: usize = 8;
const REQUESTS: usize = 1000;
/// Requests before any is counted: buffers of before the beginning have come and gone by then.
const REQUESTS_BEFORE: usize = 400;
/// Time that a server may take to begin.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let counted = match words[..] {
        [name, interface, clients, address] => count(name, interface, clients, address, false),
        [name, interface, clients, address, "gate"] => count(name, interface, clients, address, true),
        _ => Err(USAGE.to_owned()),
    };
    match counted {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("gate-buffers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn count(name: &str, interface: &str, clients: &str, address: &str, with_gate: bool) -> Result<(), String> {
    let attach = Attach { interface, ports: &[80], tracker: false, ..Attach::default() };
    let _gate = with_gate
        .then(|| Program::attach(&attach))
        .transpose()
        .map_err(|error| format!("the gate on {interface}: {error}"))?;
    let reception = ReceivedBuffers::watch(interface).map_err(|error| format!("{interface}: {error}"))?;
    within(clients, || {
        until_served(address)?;
        tell(name, "kept", &reception, kept, address)?;
        tell(name, "new", &reception, new, address)
    })
    .map_err(|error| format!("{address} from {clients}: {error}"))
}

/// Asks, and says what was counted meanwhile.
fn tell(
    name: &str,
    work: &str,
    reception: &ReceivedBuffers,
    ask: fn(&str, usize) -> io::Result<()>,
    address: &str,
) -> io::Result<()> {
    ask(address, REQUESTS_BEFORE)?;
    let before = reception.counted()?;
    ask(address, REQUESTS)?;
    let after = reception.counted()?;
    for ((what, after), before) in RECEPTION_COUNTS.iter().zip(after).zip(before) {
        println!("{name} {work} {} {what}", after - before);
    }
    Ok(())
}

/// Does something in a named network namespace, by a thread of its own.
fn within<T: Send>(namespace: &str, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let file = File::open(format!("/run/netns/{namespace}"))?;
    thread::scope(|scope| {
        let there = scope.spawn(|| {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
            work()
        });
        there.join().unwrap_or_else(|_| Err(io::Error::other("the clients' thread has panicked")))
    })
}

fn until_served(address: &str) -> io::Result<()> {
    let begin = Instant::now();
    loop {
        match new(address, 1) {
            Err(error) if begin.elapsed() > PATIENCE => return Err(error),
            Err(_) => thread::sleep(Duration::from_millis(20)),
            Ok(()) => return Ok(()),
        }
    }
}

/// The file of a request by its number: each hundred has the whole mix, evenly spread.
fn file(number: usize) -> &'static str {
    // 37 and 100 have no divisor in common, so all places are met.
    let mut place = number * 37 % 100;
    for (file, times) in FILES {
        match place.checked_sub(times) {
            Some(rest) => place = rest,
            None => return file,
        }
    }
    FILES[0].0
}

fn ask(stream: &mut TcpStream, number: usize, end: &str) -> io::Result<()> {
    let file = file(number);
    stream.write_all(format!("GET /{file} HTTP/1.1\r\nHost: a\r\n{end}\r\n").as_bytes())
}

/// Reads an answer: the head, and as many bytes behind it as the file has.
fn hear(stream: &mut BufReader<TcpStream>, number: usize) -> io::Result<()> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    if !line.starts_with("HTTP/1.1 200 ") {
        return Err(io::Error::other(format!("no 200: {line:?}")));
    }
    while line != "\r\n" {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let bytes: u64 = file(number).parse().map_err(io::Error::other)?;
    match io::copy(&mut (&mut *stream).take(bytes), &mut io::sink())? {
        whole if whole == bytes => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Requests over connections that are kept, one at a time on each.
fn kept(address: &str, requests: usize) -> io::Result<()> {
    let connect = |_| TcpStream::connect(address).map(BufReader::new);
    let mut streams = (0..KEPT).map(connect).collect::<io::Result<Vec<_>>>()?;
    for first in (0..requests).step_by(KEPT) {
        for (number, stream) in (first..requests).zip(&mut streams) {
            ask(stream.get_mut(), number, "")?;
        }
        for (number, stream) in (first..requests).zip(&mut streams) {
            hear(stream, number)?;
        }
    }
    Ok(())
}

/// Requests, each over a connection of its own that the server ends.
fn new(address: &str, requests: usize) -> io::Result<()> {
    for number in 0..requests {
        let mut stream = BufReader::new(TcpStream::connect(address)?);
        ask(stream.get_mut(), number, "Connection: close\r\n")?;
        hear(&mut stream, number)?;
        if stream.read(&mut [0])? != 0 {
            return Err(io::Error::other("more than the answer came"));
        }
    }
    Ok(())
}
