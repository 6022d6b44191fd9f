//! The least server: one fixed answer to whatever comes. Shows how a backend is driven, and is what its cost
//! a request is measured with.
//!
//! It owns one worker. It must never parse, but for a glance at whether to close (HTTP/1.0). Run: `least
//! 127.0.0.1:8081 epoll` (or `uring`), then point a load at it.

use std::error::Error;
use std::net::SocketAddr;

use staunch_netio::uring::{Uring, probe};
use staunch_netio::{Completion, Epoll, Io, Outgoing, Waker, descriptors, socket};

const BODY_BYTES: usize = 5_000;
const CAPACITY: u32 = 16_384;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let address: SocketAddr = arguments.next().as_deref().unwrap_or("127.0.0.1:8081").parse()?;
    descriptors::raise_descriptor_limit()?;
    let listener = socket::listen(address, 1024)?;
    println!("http://{}", socket::local_address(&listener)?);
    match arguments.next().as_deref() {
        None | Some("epoll") => serve(&mut Epoll::new(vec![listener], Waker::new()?, CAPACITY)?),
        Some("uring") => serve(&mut Uring::new(vec![listener], Waker::new()?, CAPACITY, &probe()?)?),
        Some(other) => Err(format!("unknown backend {other}").into()),
    }
}

fn serve(io: &mut impl Io) -> Result<(), Box<dyn Error>> {
    let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY_BYTES}\r\n\r\n").into_bytes();
    answer.resize(answer.len() + BODY_BYTES, b'x');
    let mut spare: Vec<Box<Outgoing>> = Vec::new();
    io.accept(0);
    loop {
        io.submit_and_wait(None)?;
        while let Some(completion) = io.next_completion() {
            match completion {
                Completion::Accepted { slot, .. } => io.receive(slot),
                Completion::Received { slot, input } => {
                    let last = io.input(&input).windows(8).any(|bytes| bytes == b"HTTP/1.0");
                    io.release(input);
                    let mut outgoing = spare.pop().unwrap_or_default();
                    outgoing.bytes().extend_from_slice(&answer);
                    io.send(slot, outgoing, last);
                }
                Completion::Sent { slot, outgoing, errno } => {
                    spare.push(outgoing);
                    if errno != 0 {
                        io.close(slot);
                    }
                }
                Completion::Ended { slot, .. } => io.close(slot),
                Completion::AcceptStopped { errno, .. } => {
                    return Err(format!("accept: errno {errno}").into());
                }
                _ => {}
            }
        }
    }
}
