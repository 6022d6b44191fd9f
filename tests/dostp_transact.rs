//! Transactions by DOSTP inside an emulated machine, on a way that loses messages: `dostp-transact`.
//!
//! Words: `serve WAY PORT` until it is asked for the end, `call WAY ADDRESS PORT COUNT BYTES`, `end WAY
//! ADDRESS PORT`, and `refusals ADDRESS`. A WAY is `module`, or `ring:INTERFACE` with `:KEYFILE` if there are
//! keys. The program must never be run outside of a machine made for it.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::collections::HashSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use staunch_dostp::kinds::transact::Concluded;
use staunch_dostp::{
    Backend, Kind, Mode, ModuleSocket, Options, Received, Secrets, Socket, TransactionCaller,
    TransactionService, TransactionSocket, read_secret,
};
use staunch_netio::datagram::{FamilyName, FamilySocket};

/// How long a caller waits: the machine is emulated.
const PATIENCE: Duration = Duration::from_secs(60);
/// The share of messages that are lost: one of so many that are sent.
const LOST_EACH: u32 = 3;
/// The request that ends a service.
const END: &[u8] = b"end";
/// The number of the module's family.
const FAMILY: u16 = 19;

/// A socket some of whose messages are lost.
struct Lossy {
    socket: Box<dyn TransactionSocket>,
    sent: Cell<u32>,
}

impl TransactionSocket for Lossy {
    fn send_transaction(&self, kind: Kind, id: u16, payload: &[u8], to: SocketAddrV4) -> io::Result<usize> {
        self.sent.set(self.sent.get() + 1);
        // The end is asked for and granted once.
        let is_of_end = payload.ends_with(END) || payload.ends_with(&reversed(END));
        if self.sent.get().is_multiple_of(LOST_EACH) && !is_of_end {
            return Ok(payload.len());
        }
        self.socket.send_transaction(kind, id, payload, to)
    }

    fn receive(&self) -> io::Result<Received> {
        self.socket.receive()
    }

    fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.socket.set_read_timeout(timeout)
    }
}

fn open(way: &str, port: u16) -> io::Result<Lossy> {
    let address = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port);
    let socket: Box<dyn TransactionSocket> = match way.split(':').collect::<Vec<_>>()[..] {
        ["ring", interface, ref key @ ..] => {
            let mut options = Options { backend: Some(Backend::Ring), ..Options::on(interface) };
            if let Some(file) = key.first() {
                let slots = [Some(read_secret(Path::new(file))?), None];
                options.secrets = Some(Secrets { slots, sends_by: 0, mode: Mode::Aead });
            }
            let socket = Socket::bind(address, &options)?;
            socket.set_transactions(true);
            Box::new(socket)
        }
        _ => Box::new(ModuleSocket::bind(address)?),
    };
    Ok(Lossy { socket, sent: Cell::new(0) })
}

fn serve(way: &str, port: u16) -> Result<(), String> {
    let mut service = TransactionService::over(open(way, port).map_err(|error| error.to_string())?);
    println!("serving");
    let (mut seen, mut twice, mut has_ended) = (HashSet::new(), 0, false);
    while !has_ended {
        let mut work = |_, request: &[u8]| {
            has_ended |= request == END;
            twice += u32::from(!seen.insert(request.to_vec()));
            reversed(request)
        };
        service.serve_next(&mut work).map_err(|error| error.to_string())?;
    }
    println!("served: {} requests, {twice} of them twice", seen.len() - 1);
    Ok(())
}

fn call(way: &str, to: SocketAddrV4, requests: &[Vec<u8>]) -> Result<u64, String> {
    let socket = open(way, 0).map_err(|error| error.to_string())?;
    let mut caller = TransactionCaller::over(socket).map_err(|error| error.to_string())?;
    for request in requests {
        match caller.call(to, request, PATIENCE) {
            Ok(Concluded::Reply(reply)) if reply == reversed(request) => {}
            Ok(Concluded::Reply(reply)) => return Err(format!("a wrong reply of {} bytes", reply.len())),
            Ok(Concluded::Unknown) => return Err("no reply".to_owned()),
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(caller.repeated())
}

/// Requests of so many bytes, all different: their serial number stands in them.
fn requests(count: usize, bytes: usize) -> Vec<Vec<u8>> {
    let request = |number: usize| {
        let mut request: Vec<u8> = (0..bytes).map(|place| (place * 7 + number) as u8).collect();
        request.extend_from_slice(&(number * 1_000_000 + bytes).to_be_bytes());
        request
    };
    (0..count).map(request).collect()
}

fn reversed(request: &[u8]) -> Vec<u8> {
    request.iter().rev().copied().collect()
}

/// Tries to send what the module must refuse.
fn refusals(other: Ipv4Addr) -> Result<(), String> {
    let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
    let socket = FamilySocket::bind(FAMILY, any).map_err(|error| error.to_string())?;
    let to = SocketAddrV4::new(other, 9);
    for kind in [0, Kind::Hello as u8, Kind::Conflict as u8, 10, 255] {
        match socket.send(b"x", FamilyName { kind, id: 1 }, to) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
            sent => return Err(format!("kind {kind}: {sent:?}")),
        }
    }
    match socket.send(b"x", FamilyName { kind: Kind::Ack as u8, id: 1 }, to) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
        sent => return Err(format!("an ACK with a payload: {sent:?}")),
    }
    println!("refusals: all");
    Ok(())
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<usize>().expect("a number");
    let place = |address: &str, port: &str| {
        SocketAddrV4::new(address.parse().expect("an address"), port.parse().expect("a port"))
    };
    let done = match words[..] {
        ["serve", way, port] => serve(way, number(port) as u16),
        ["call", way, address, port, count, bytes] => {
            let (count, bytes) = (number(count), number(bytes));
            call(way, place(address, port), &requests(count, bytes)).map(|repeated| {
                let was_lost = if repeated > 0 { "some were sent again" } else { "none was sent again" };
                println!("called: {count} of {bytes} bytes, {was_lost}");
            })
        }
        ["end", way, address, port] => call(way, place(address, port), &[END.to_vec()]).map(|_| ()),
        ["refusals", address] => refusals(address.parse().expect("an address")),
        _ => Err("its words stand in the first comment of its source".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("dostp-transact: {}: {error}", words.join(" "));
            ExitCode::FAILURE
        }
    }
}
