//! The floor of a backend: accepts, receives, and answers every delivery with the same 5000 bytes, unparsed.
//!
//! For measuring what the backend itself costs a request. It must never do more than that.
//! `uring_floor ADDRESS [uring]`, then for instance `wrk -t1 -c64 -d5s http://ADDRESS/`.

use std::net::SocketAddr;

use staunch_netio::uring::{Uring, probe};
use staunch_netio::{Completion, Io, Outgoing, Waker, socket};

const CAPACITY: u32 = 100_000;
const BODY_BYTES: usize = 5000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address: SocketAddr = arguments.next().unwrap_or_else(|| "127.0.0.1:8080".into()).parse()?;
    let listener = socket::listen(address, 1024)?;
    match arguments.next().as_deref() {
        None | Some("uring") => {
            let features = probe()?;
            println!("io_uring: {features}");
            serve(Uring::new(vec![listener], Waker::new()?, CAPACITY, &features)?)
        }
        Some(other) => Err(format!("unknown backend {other}").into()),
    }
}

fn serve(mut io: impl Io) -> Result<(), Box<dyn std::error::Error>> {
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
                    let last = io.input(&input).starts_with(b"GET / HTTP/1.0");
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
                Completion::AcceptStopped { listener, errno } => {
                    eprintln!("accepting stopped: {errno}");
                    io.accept(listener);
                }
                Completion::Progress { .. } | Completion::Closed { .. } | Completion::Woken => {}
            }
        }
    }
}
