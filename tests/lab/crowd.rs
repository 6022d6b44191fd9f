//! Ten thousand connections at once, of which the kernel's queue holds a part: every one is answered or
//! refused, none hangs.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use staunch_netio::descriptors::raise_descriptor_limit;

use crate::model::{Running, with_each};

/// How many connect at once.
const CROWD_COUNT: usize = 10_000;
/// A limit for what hangs, in seconds. A client whose SYN or request was dropped sends it again after 1, 2,
/// 4, 8 ... seconds, and the kernel gives up after 15 times, some 924 s (`tcp_retries2`).
const PATIENCE_S: u64 = 1_000;

struct Client {
    socket: OwnedFd,
    asked: bool,
    received: usize,
    end: Option<End>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Answered,
    Refused,
}

fn start(address: SocketAddr) -> Client {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).expect("a socket");
    let end = match connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => None,
        Err(_) => Some(End::Refused),
    };
    Client { socket, asked: false, received: 0, end }
}

/// Does what can be done without waiting.
fn advance(client: &mut Client, request: &str) {
    if !client.asked {
        match write(&client.socket, request.as_bytes()) {
            Ok(_) => client.asked = true,
            Err(Errno::AGAIN) => {}
            Err(_) => client.end = Some(End::Refused),
        }
        return;
    }
    let mut buffer = [0; 16 * 1024];
    match read(&client.socket, &mut buffer) {
        Ok(0) if client.received > 0 => client.end = Some(End::Answered),
        Ok(0) => client.end = Some(End::Refused),
        Ok(count) => client.received += count,
        Err(Errno::AGAIN) => {}
        Err(_) => client.end = Some(End::Refused),
    }
}

fn wait_for_all(clients: &mut [Client], request: &str) {
    let start = Instant::now();
    while start.elapsed().as_secs() < PATIENCE_S {
        let mut open: Vec<&mut Client> = clients.iter_mut().filter(|client| client.end.is_none()).collect();
        if open.is_empty() {
            return;
        }
        let flags = |client: &Client| if client.asked { PollFlags::IN } else { PollFlags::OUT };
        let mut list: Vec<PollFd<'_>> =
            open.iter().map(|client| PollFd::new(&client.socket, flags(client))).collect();
        let timeout = Timespec { tv_sec: 1, tv_nsec: 0 };
        if poll(&mut list, Some(&timeout)).is_err() {
            continue;
        }
        let ready: Vec<bool> = list.iter().map(|entry| !entry.revents().is_empty()).collect();
        for (client, _) in open.iter_mut().zip(ready).filter(|(_, ready)| *ready) {
            advance(client, request);
        }
    }
}

#[test]
fn ten_thousand_are_answered_or_refused() {
    raise_descriptor_limit().expect("a limit");
    with_each(|model| {
        let running = Running::start_with(model, "true", &["--backlog", "512"]);
        let request = running.request(100);
        let mut clients: Vec<Client> = (0..CROWD_COUNT).map(|_| start(running.address())).collect();
        wait_for_all(&mut clients, &request);
        let count = |end| clients.iter().filter(|client| client.end == end).count();
        let (answered, refused) = (count(Some(End::Answered)), count(Some(End::Refused)));
        println!("  {answered} answered, {refused} refused");
        assert_eq!(count(None), 0, "{}: connections hang", model.name);
        assert!(answered > 0, "{}: nobody was answered", model.name);
        let short = clients.iter().filter(|client| client.received > 0 && client.received < 100).count();
        assert_eq!(short, 0, "{}: answers are cut off", model.name);
        drop(clients);
        running.assert_serves();
        running.end("after a crowd");
    });
}
