//! Ten thousand connections at once, of which the kernel's queue holds a part: every one is answered or
//! refused, or was lost by the kernel and given up; none hangs.
//!
//! The kernel loses: with a full queue it drops the last segment of a handshake and the request behind it,
//! and the client, which believes itself connected, sends its request again after 0.2, 0.4, 0.8 ... 120 s.
//! The SYN-ACK that is repeated meanwhile may complete the handshake without the request, and then a model
//! that serves one client at a time waits for that client, while the queue is full and drops more. On a busy
//! machine this lasts until the kernel gives up itself, after 924 s (`tcp_retries2`), which the server never
//! hears of. So clients here have a patience, as people have: who has it no more resets the connection.
//! The kernel loses resets too, and repeats none: a server that never hears of one waits for its client, and
//! the crowd with it. So a connection that the server still holds is reset again.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::{Errno, read, write};
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, connect, connect_unspec, getsockname, socket_with,
};
use staunch_lab::{MODELS, Model};
use staunch_netio::descriptors::raise_descriptor_limit;
use staunch_tests::house::waiting::HANG;

use crate::model::Running;

/// How many connect at once.
const CROWD_COUNT: usize = 10_000;
/// From then on clients give up whose connection or request the server's kernel has not acknowledged: time
/// for SYNs to be sent again three times.
const PATIENCE: Duration = Duration::from_secs(5);

struct Client {
    socket: OwnedFd,
    asked: bool,
    received: usize,
    end: Option<End>,
    /// The address of the connection, once the client has given it up.
    had: Option<SocketAddr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Answered,
    Refused,
    /// Nothing has reached the server.
    GivenUp,
}

fn start(address: SocketAddr) -> Client {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).expect("a socket");
    match connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(error) => panic!("a connection cannot be begun: {error}"),
    }
    Client { socket, asked: false, received: 0, end: None, had: None }
}

/// The clients of a server, by the places at which the kernel reports them.
struct Crowd {
    clients: Vec<Client>,
    reports: OwnedFd,
    request: String,
    server: SocketAddr,
}

impl Crowd {
    fn come(server: SocketAddr, request: String) -> Self {
        let reports = epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll");
        let clients: Vec<Client> = (0..CROWD_COUNT).map(|_| start(server)).collect();
        for (place, client) in (0..).zip(&clients) {
            let data = EventData::new_u64(place);
            epoll::add(&reports, &client.socket, data, EventFlags::OUT).expect("a socket");
        }
        Self { clients, reports, request, server }
    }

    fn count(&self, end: Option<End>) -> usize {
        self.clients.iter().filter(|client| client.end == end).count()
    }

    /// Does what this client can do without waiting.
    fn advance(&mut self, place: u64) {
        let client = &mut self.clients[place as usize];
        client.end = if client.asked { receive(client) } else { ask(client, &self.request) };
        if client.end.is_some() {
            epoll::delete(&self.reports, &client.socket).expect("it was added");
        } else if client.asked {
            let data = EventData::new_u64(place);
            epoll::modify(&self.reports, &client.socket, data, EventFlags::IN).expect("it was added");
        }
    }

    /// Lets clients that can go on do so; waits a second at most until one can.
    fn turn(&mut self) {
        let mut events: Vec<Event> = Vec::with_capacity(1_000);
        let timeout = Timespec { tv_sec: 1, tv_nsec: 0 };
        // EINTR is as good as a time that is over.
        let _ = epoll::wait(&self.reports, spare_capacity(&mut events), Some(&timeout));
        events.iter().for_each(|event| self.advance(event.data.u64()));
    }

    /// Resets the connections of clients that have reached nobody. Tells whether the server may hold some.
    fn give_up(&mut self) -> bool {
        self.clients.iter().filter(|client| client.end == Some(End::GivenUp)).for_each(reset);
        let (lost, held) = (self.unacknowledged(), self.held());
        let mut some_are_held = false;
        for client in &mut self.clients {
            match client.end {
                None => {
                    let own = getsockname(&client.socket).ok().and_then(|own| own.try_into().ok());
                    let Some(own) = own.filter(|own: &SocketAddr| lost.contains(&own.port())) else {
                        continue;
                    };
                    epoll::delete(&self.reports, &client.socket).expect("it was added");
                    reset(client);
                    (client.end, client.had) = (Some(End::GivenUp), Some(own));
                }
                Some(End::GivenUp) => {
                    let Some(had) = client.had.filter(|had| held.contains(&had.port())) else { continue };
                    provoke(client, had, self.server);
                }
                Some(_) => continue,
            }
            some_are_held = true;
        }
        some_are_held
    }

    /// Ports of clients that have sent something which is not acknowledged, be it a SYN.
    fn unacknowledged(&self) -> HashSet<u16> {
        let is_one = |line: &&Line| line.remote == self.server.port() && line.unacknowledged;
        lines().iter().filter(is_one).map(|line| line.local).collect()
    }

    /// Ports of clients whose connections the server has.
    fn held(&self) -> HashSet<u16> {
        let is_one = |line: &&Line| line.local == self.server.port() && !line.has_ended;
        lines().iter().filter(is_one).map(|line| line.remote).collect()
    }

    /// Both ends of the connections that hang: how many are alike, and each that the server has accepted.
    fn ends_of_hanging(&self) -> String {
        let lines = lines();
        let (mut alike, mut accepted) = (BTreeMap::<String, usize>::new(), String::new());
        for client in &self.clients {
            let own = getsockname(&client.socket).ok().and_then(|own| SocketAddr::try_from(own).ok());
            let Some(port) = client.had.or(own).map(|own| own.port()) else { continue };
            let of_client = lines.iter().find(|line| (line.local, line.remote) == (port, self.server.port()));
            let of_server = lines.iter().find(|line| (line.local, line.remote) == (self.server.port(), port));
            let told = |line: Option<&Line>| line.map_or("none", |line| &line.told).to_owned();
            let both = format!(
                "{:?}, asked {}: client {}, server {}",
                client.end,
                client.asked,
                told(of_client),
                told(of_server)
            );
            if of_server.is_some_and(|line| line.is_owned && !line.has_ended) {
                accepted.push_str(&format!("  accepted, port {port}: {both}\n"));
            }
            if client.end.is_none() || of_server.is_some_and(|line| !line.has_ended) {
                *alike.entry(both).or_default() += 1;
            }
        }
        let alike = alike.iter().map(|(both, count)| format!("  {count} times {both}\n"));
        format!("{}{accepted}", alike.collect::<String>())
    }

    /// Waits for all to end. Whether the server still holds connections that were given up.
    fn await_all(&mut self) -> bool {
        let start = Instant::now();
        let mut patient_until = PATIENCE;
        let mut some_are_held = false;
        while start.elapsed() < HANG && (some_are_held || self.count(None) > 0) {
            self.turn();
            if start.elapsed() > patient_until {
                some_are_held = self.give_up();
                patient_until = start.elapsed() + Duration::from_secs(1);
            }
        }
        some_are_held
    }
}

/// Ends the connection of a client, if it has one, by a reset.
fn reset(client: &Client) {
    // An error tells of a connection that is reset already.
    let _ = connect_unspec(&client.socket);
}

/// Begins the connection of a client once more, from the address it `had`: a server that still holds it
/// answers with a challenge (RFC 5961, section 4), which the kernel answers with a reset.
fn provoke(client: &Client, had: SocketAddr, server: SocketAddr) {
    // The address may be another's by now; then the next round tries again. It stays bound from then on.
    let _ = bind(&client.socket, &had);
    let _ = connect(&client.socket, &server);
}

fn ask(client: &mut Client, request: &str) -> Option<End> {
    match write(&client.socket, request.as_bytes()) {
        Ok(_) => client.asked = true,
        Err(Errno::AGAIN) => {}
        Err(_) => return Some(End::Refused),
    }
    None
}

fn receive(client: &mut Client) -> Option<End> {
    match read(&client.socket, &mut [0; 16 * 1024]) {
        Ok(0) if client.received > 0 => return Some(End::Answered),
        Ok(0) => return Some(End::Refused),
        Ok(count) => client.received += count,
        Err(Errno::AGAIN) => {}
        Err(_) => return Some(End::Refused),
    }
    None
}

/// A connection in the kernel's table, by its ports.
struct Line {
    local: u16,
    remote: u16,
    /// Whether something that was sent is not acknowledged.
    unacknowledged: bool,
    /// Whether only the time is waited for in which packets of it may still come (TIME_WAIT).
    has_ended: bool,
    /// As the kernel tells it: state, bytes sent and received that wait, timer.
    told: String,
    /// Whether a process has a descriptor of it: at the server, whether it was accepted.
    is_owned: bool,
}

/// The kernel's table of connections.
fn lines() -> Vec<Line> {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("the kernel's table of connections");
    let port_of = |address: &str| u16::from_str_radix(address.rsplit_once(':')?.1, 16).ok();
    let line_of = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (local, remote) = (port_of(fields.get(1)?)?, port_of(fields.get(2)?)?);
        let unacknowledged = !fields.get(4)?.starts_with("00000000:");
        let told = fields.get(3..6)?.join(" ");
        let is_owned = *fields.get(9)? != "0";
        Some(Line { local, remote, unacknowledged, has_ended: *fields.get(3)? == "06", told, is_owned })
    };
    table.lines().filter_map(line_of).collect()
}

/// Ways to accept that have little in common: one process for all, several that share the listener, a thread
/// that hands over, reports at an edge and by signals, and the ring.
const USUAL: [&str; 6] =
    ["iterative", "prefork", "prethread-handover", "epoll-edge", "sigio", "staunch-uring"];

/// A crowd comes to a model.
fn crowd(model: &'static Model) {
    raise_descriptor_limit().expect("a limit");
    println!("{}", model.name);
    let running = Running::start_with(model, "true", &["--backlog", "512"]);
    let mut crowd = Crowd::come(running.address(), running.request(100));
    let some_are_held = crowd.await_all();
    let [answered, refused, given_up] =
        [End::Answered, End::Refused, End::GivenUp].map(|end| crowd.count(Some(end)));
    println!("  {answered} answered, {refused} refused, {given_up} given up");
    let ends = || crowd.ends_of_hanging();
    assert_eq!(crowd.count(None), 0, "{}: connections hang:\n{}", model.name, ends());
    assert!(!some_are_held, "{}: resets are not heard:\n{}", model.name, ends());
    assert!(answered > 0, "{}: nobody was answered", model.name);
    let is_short = |client: &&Client| (1..100).contains(&client.received);
    assert_eq!(crowd.clients.iter().filter(is_short).count(), 0, "{}: answers are cut off", model.name);
    drop(crowd);
    running.assert_serves();
    running.end("after a crowd");
}

#[test]
fn ten_thousand_are_answered_or_refused() {
    let all = MODELS.iter().copied();
    let models: Vec<&Model> = all.filter(|model| USUAL.contains(&model.name)).collect();
    assert_eq!(models.len(), USUAL.len(), "a model has another name");
    models.into_iter().for_each(crowd);
}

/// For `make soak`: 130 000 connections to models that accept as others do.
mod in_depth {
    use super::*;

    #[test]
    fn ten_thousand_are_answered_or_refused_by_the_other_models() {
        MODELS.iter().copied().filter(|model| !USUAL.contains(&model.name)).for_each(crowd);
    }
}
