//! `staunch dostp bench --one-way`: streams of messages by DOSTP and by UDP, in turn, and how many arrive.
//!
//! The other side is `staunch dostp serve --discard`. It must never compare runs that were made apart, nor
//! take for received what the other side has not counted.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::process::ExitCode;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, set_ip_mtu_discover};
use staunch_dostp::Socket;
use staunch_netio::clock;
use staunch_netio::datagram::{Datagrams as _, Transmit, Udp, UdpPath};
use staunch_program::{Failure, output};

use super::link::{self, NodeLink};
use super::service::{ANSWER_BYTES, DISCARD_PORT, count_in, question};
use super::trips;

/// Messages handed over by one call.
const BATCH_COUNT: usize = 64;
/// How long an answer of the other side is waited for before it is asked again: what it has not taken yet
/// stands before the question.
const ANSWER_PATIENCE: Duration = Duration::from_millis(100);
/// How often it is asked.
const QUESTIONS_MAX: u32 = 50;

/// The streams to be measured.
pub(super) struct Plan<'a> {
    pub(super) link: &'a NodeLink,
    /// The node that counts.
    pub(super) address: Ipv4Addr,
    /// Its port by UDP.
    pub(super) udp_port: u16,
    /// Bytes of messages.
    pub(super) sizes: &'a [u32],
    pub(super) rounds: u32,
    /// How long each way sends in a round.
    pub(super) duration: Duration,
}

/// A stream of one way and one size, over all rounds.
#[derive(Debug, Default, Clone, Copy)]
struct Stream {
    sent: u64,
    received: u64,
    time_ns: u64,
}

/// DOSTP or UDP.
trait Way {
    /// Sends messages of a batch in order, and says how many were taken; waits where there is no room.
    fn send(&mut self, payload: &[u8]) -> io::Result<usize>;
    /// Sends one message that the other side answers, and gives what comes back in a short time.
    fn ask(&mut self, question: &[u8]) -> io::Result<Vec<u8>>;
}

struct ByDostp {
    socket: Socket,
    to: SocketAddrV4,
}

impl Way for ByDostp {
    fn send(&mut self, payload: &[u8]) -> io::Result<usize> {
        self.socket.send_batch(&[(payload, self.to); BATCH_COUNT])
    }

    fn ask(&mut self, question: &[u8]) -> io::Result<Vec<u8>> {
        self.socket.send(question)?;
        self.socket.receive().map(|received| received.payload)
    }
}

struct ByUdp {
    udp: Udp,
    /// Another handle to that socket, for what is waited for.
    waiting: UdpSocket,
    path: UdpPath,
}

impl Way for ByUdp {
    fn send(&mut self, payload: &[u8]) -> io::Result<usize> {
        let message = Transmit { path: self.path, head: &[], bytes: payload, segment_bytes: None, ecn: None };
        let sent = self.udp.send_batch(&[message; BATCH_COUNT])?;
        match sent.errno {
            0 => {}
            errno => return Err(io::Error::from_raw_os_error(errno)),
        }
        if sent.done < BATCH_COUNT {
            poll(&mut [PollFd::new(&self.waiting, PollFlags::OUT)], None)?;
        }
        Ok(sent.done)
    }

    fn ask(&mut self, question: &[u8]) -> io::Result<Vec<u8>> {
        self.waiting.send_to(question, self.path.peer)?;
        let patience = ANSWER_PATIENCE.try_into().ok();
        poll(&mut [PollFd::new(&self.waiting, PollFlags::IN)], patience.as_ref())?;
        let mut answer = vec![0; ANSWER_BYTES];
        let length = self.waiting.recv(&mut answer)?;
        answer.truncate(length);
        Ok(answer)
    }
}

impl Stream {
    /// Sends for so long, and adds what was sent and what has arrived.
    fn run(&mut self, way: &mut dyn Way, payload: &[u8], duration: Duration) -> io::Result<()> {
        let before = received(way)?;
        let begun_ns = clock::now_ns();
        let end_ns = begun_ns + duration.as_nanos() as u64;
        loop {
            self.sent += way.send(payload)? as u64;
            let now_ns = clock::now_ns();
            if now_ns >= end_ns {
                self.time_ns += now_ns - begun_ns;
                break;
            }
        }
        self.received += received(way)?.saturating_sub(before);
        Ok(())
    }

    /// A count, by the second.
    fn rate(&self, count: u64) -> f64 {
        count as f64 * 1e9 / self.time_ns.max(1) as f64
    }
}

/// How many messages the other side has counted, once it has taken all that came before the question.
fn received(way: &mut dyn Way) -> io::Result<u64> {
    // All tries ask the same: a late answer is as good.
    let question = question(clock::now_ns());
    for _ in 0..QUESTIONS_MAX {
        match way.ask(&question) {
            Ok(answer) => {
                if let Some(count) = count_in(&answer, &question) {
                    return Ok(count);
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused) => {}
            Err(error) => return Err(error),
        }
    }
    let text = "no answer of `staunch dostp serve --discard` there";
    Err(io::Error::new(ErrorKind::TimedOut, text))
}

/// Measures, and prints a line for each size.
///
/// # Errors
/// The interface cannot be used, or nobody counts there.
pub(super) fn run(plan: &Plan<'_>) -> Result<ExitCode, Failure> {
    let mut dostp = by_dostp(plan).map_err(|error| plan.link.failure(&error))?;
    let mut udp = by_udp(plan).map_err(|error| format!("UDP: {error}"))?;
    output::print(&format!(
        "one way to {} {}, {BATCH_COUNT} messages a call, beside UDP\n",
        plan.address,
        link::describe(&dostp.socket)
    ));
    output::print("bytes    DOSTP sent/s  received/s    UDP sent/s  received/s   ratio\n");
    for &size in plan.sizes {
        let payload = vec![0x5a; size as usize];
        let (mut ours, mut theirs) = (Stream::default(), Stream::default());
        for _ in 0..plan.rounds {
            ours.run(&mut dostp, &payload, plan.duration)
                .map_err(|error| Failure { code: 1, text: trips::said(&error, plan.address) })?;
            theirs
                .run(&mut udp, &payload, plan.duration)
                .map_err(|error| Failure { code: 1, text: format!("UDP: {error}") })?;
        }
        output::print(&line(size, &ours, &theirs));
    }
    Ok(ExitCode::SUCCESS)
}

fn by_dostp(plan: &Plan<'_>) -> io::Result<ByDostp> {
    let socket = plan.link.open(0, |options| options.is_quiet = true)?;
    let to = SocketAddrV4::new(plan.address, DISCARD_PORT);
    socket.connect(to)?;
    socket.set_read_timeout(Some(ANSWER_PATIENCE))?;
    Ok(ByDostp { socket, to })
}

fn by_udp(plan: &Plan<'_>) -> io::Result<ByUdp> {
    let waiting = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let udp = Udp::new(waiting.try_clone()?.into())?;
    // As the kernel does unasked, where it was asked to let nothing be divided on the way.
    set_ip_mtu_discover(&waiting, Ipv4PathMtuDiscovery::WANT)?;
    let peer = SocketAddrV4::new(plan.address, plan.udp_port).into();
    Ok(ByUdp { udp, waiting, path: UdpPath { peer, local: None } })
}

fn line(size: u32, ours: &Stream, theirs: &Stream) -> String {
    let [sent, received] = [ours.sent, ours.received].map(|count| ours.rate(count));
    let [udp_sent, udp_received] = [theirs.sent, theirs.received].map(|count| theirs.rate(count));
    format!(
        "{size:<7} {sent:>13.0} {received:>11.0} {udp_sent:>13.0} {udp_received:>11.0}   {:>5.2}\n",
        received / udp_received
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_the_time_that_was_spent_sending() {
        let ours = Stream { sent: 3_000_000, received: 2_400_000, time_ns: 2_000_000_000 };
        let theirs = Stream { sent: 1_000_000, received: 600_000, time_ns: 1_000_000_000 };
        assert_eq!(
            line(64, &ours, &theirs),
            "64            1500000     1200000       1000000      600000    2.00\n"
        );
    }
}
