//! The client of one lane on one thread: connects, asks, reads answers, loses patience, and counts each end.
//!
//! It must never decide when a request or a connection is begun: the lane does. Order of calls for a request:
//! `dial` or an open connection, `ask`, then whatever the network reports; every flight is settled once.

mod securing;

use std::collections::VecDeque;

use staunch_netio::{Input, Io, Outgoing, Slot, Target};
use staunch_protocol::answer::{HeadMemory, Step};

use crate::check::CheckState;
use crate::connection::{ClientConnection, ConnectionState, Flight};
use crate::end::End;
use crate::mix::Mix;
use crate::network_side::NetworkSide;
use crate::order::WaitingOrder;
use crate::secured::{CUT_HANDSHAKE, SLOW_HANDSHAKE, TlsClient};
use crate::tally::Tally;

/// A connection that took at least so long may have sent its SYN again (RFC 6298: one second at first;
/// systems may have set less, never as little as this), so the kernel is asked.
const RETRANSMISSION_AFTER_NS: u64 = 200_000_000;

/// How long a server may take to close a connection after its last answer; then the client closes.
const LEAVING_NS: u64 = 1_000_000_000;

/// A lane's client.
pub(crate) struct LaneClient {
    /// The lane's number.
    lane: u16,
    targets: Vec<Target>,
    target_next: usize,
    pub(crate) patience_ns: Option<u64>,
    late_after_ns: u64,
    mix: Mix,
    /// Settings of TLS, if the server is spoken to by it.
    tls: Option<TlsClient>,
    /// Content of the records of one reading.
    opened: Vec<u8>,
    /// The head that came last: most answers of a server have the same.
    memory: HeadMemory,
    /// Number of the next request of this lane on this thread.
    serial: u64,
    /// Connections with requests under way.
    pub(crate) waiting: WaitingOrder,
    /// Connections the server is about to close: until when, which, and when they were begun.
    pub(crate) leaving: VecDeque<(u64, Slot, u64)>,
    pub(crate) tally: Tally,
    /// Requests under way.
    pub(crate) in_flight: u64,
    /// Connections given up of which the kernel is to tell its retransmissions.
    inspections: u64,
}

/// How a client is set up.
pub(crate) struct ClientPlan {
    pub(crate) lane: u16,
    pub(crate) targets: Vec<Target>,
    pub(crate) patience_ns: Option<u64>,
    pub(crate) late_after_ns: Option<u64>,
    pub(crate) tls: Option<TlsClient>,
    pub(crate) mix: Mix,
}

impl LaneClient {
    pub(crate) fn new(plan: ClientPlan) -> Self {
        Self {
            lane: plan.lane,
            targets: plan.targets,
            target_next: 0,
            patience_ns: plan.patience_ns,
            late_after_ns: plan.late_after_ns.or(plan.patience_ns).unwrap_or(u64::MAX),
            mix: plan.mix,
            tls: plan.tls,
            opened: Vec::new(),
            memory: HeadMemory::default(),
            serial: 0,
            waiting: WaitingOrder::default(),
            leaving: VecDeque::new(),
            tally: Tally::touched(),
            in_flight: 0,
            inspections: 0,
        }
    }

    /// Begins a connection.
    ///
    /// # Errors
    /// The errno, when there is no room for one.
    pub(crate) fn dial<I: Io>(&mut self, net: &mut NetworkSide<I>) -> Result<Slot, i32> {
        let target = &self.targets[self.target_next];
        self.target_next = (self.target_next + 1) % self.targets.len();
        let slot = net.connect(self.lane, target)?;
        self.tally.counts.connections_begun += 1;
        Ok(slot)
    }

    /// A request that could not be begun.
    pub(crate) fn leave_unsent(&mut self) {
        self.tally.counts.offered += 1;
        self.tally.counts.unsent += 1;
    }

    /// Whether a request that was meant to start then is still worth being begun: half of its client's
    /// patience is left. A generator that is behind would otherwise begin nothing but what is given up at
    /// once.
    pub(crate) fn has_patience(&self, intended_ns: u64, now_ns: u64) -> bool {
        self.patience_ns.is_none_or(|patience| now_ns < intended_ns.saturating_add(patience / 2))
    }

    /// Adds a request to a connection; `flush` sends it.
    #[inline]
    pub(crate) fn ask<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot, intended_ns: u64) {
        self.expect(net, slot, intended_ns);
        net.connections[slot as usize].unsent += 1;
    }

    /// Adds a request whose bytes the lane sends by itself.
    #[inline]
    pub(crate) fn expect<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot, intended_ns: u64) {
        self.tally.counts.offered += 1;
        self.tally.counts.attempted += 1;
        self.tally.record_drift(net.now_ns.saturating_sub(intended_ns));
        self.tally.span.begin(intended_ns);
        let connection = &mut net.connections[slot as usize];
        connection.flights.push_back(Flight { intended_ns, entry: self.mix.draw() });
        connection.asked = connection.asked.saturating_add(1);
        self.in_flight += 1;
        self.await_answer(net, slot);
    }

    /// Sends what was asked, unless the connection is not made yet or a send is under way.
    #[inline]
    pub(crate) fn flush<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot) {
        let connection = &net.connections[slot as usize];
        if connection.state != ConnectionState::Open || connection.sending || connection.unsent == 0 {
            return;
        }
        let mut outgoing = net.take_spare();
        let unix_ms = net.unix_ms();
        let connection = &mut net.connections[slot as usize];
        let first = connection.flights.len() - connection.unsent as usize;
        for flight in connection.flights.range(first..) {
            self.mix.write(flight.entry, self.serial, slot, unix_ms, &mut outgoing);
            self.serial += 1;
        }
        connection.unsent = 0;
        self.send(net, slot, outgoing);
    }

    /// Sends a container of the lane's own making.
    #[inline]
    pub(crate) fn send<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot, outgoing: Box<Outgoing>) {
        let outgoing = net.sealed(slot, outgoing);
        self.tally.counts.sent_bytes += outgoing.length_bytes();
        net.connections[slot as usize].sending = true;
        net.io.send(slot, outgoing, false);
    }

    /// The kernel has taken a container, or never will: then there is an errno.
    #[inline]
    pub(crate) fn sent<I: Io>(
        &mut self,
        net: &mut NetworkSide<I>,
        slot: Slot,
        outgoing: Box<Outgoing>,
        errno: i32,
    ) {
        net.put_spare(outgoing);
        net.connections[slot as usize].sending = false;
        if errno == 0 {
            self.flush(net, slot);
            self.send_records(net, slot);
        } else {
            self.not_sent(net, slot, errno);
        }
    }

    /// A server that takes no more may have answered before: what it said is read first, then comes its end.
    /// Of anything else no end may ever come.
    #[cold]
    fn not_sent<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot, errno: i32) {
        let end = End::of_errno(errno);
        match net.connections[slot as usize].state {
            _ if end == End::Reset => {}
            ConnectionState::Open => self.give_up(net, slot, end),
            ConnectionState::Securing => self.lose(net, slot, CUT_HANDSHAKE, end),
            _ => {}
        }
    }

    /// The connection is made, or could not be. Returns whether it is; by TLS, what it is to be used for has
    /// to wait for [`LaneClient::secured`].
    pub(crate) fn connected<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot, errno: i32) -> bool {
        let connection = &mut net.connections[slot as usize];
        if connection.state != ConnectionState::Connecting {
            return false;
        }
        let took_ns = net.now_ns.saturating_sub(connection.begun_ns);
        if errno != 0 {
            self.give_up(net, slot, End::of_errno(errno));
            return false;
        }
        connection.state = ConnectionState::Open;
        self.tally.counts.connections_made += 1;
        self.tally.times.connect.record(took_ns);
        net.io.receive(slot);
        if took_ns >= RETRANSMISSION_AFTER_NS {
            net.io.inspect(slot);
        }
        if self.tls.is_some() {
            return self.begin_handshake(net, slot);
        }
        self.flush(net, slot);
        true
    }

    /// The kernel told how many segments it has sent again.
    pub(crate) fn inspected<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot, retransmitted: u32) {
        self.tally.counts.syn_retransmitted += u64::from(retransmitted);
        if net.connections[slot as usize].close_when_inspected {
            self.inspections -= 1;
            net.close(slot);
        }
    }

    /// Bytes came. Returns how many requests they have answered; the connection may be leaving or closing
    /// afterwards.
    #[inline]
    pub(crate) fn received<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot, input: Input) -> u32 {
        self.tally.counts.received_bytes += u64::from(input.length);
        let connection = &mut net.connections[slot as usize];
        if connection.wall.is_some() {
            return self.received_sealed(net, slot, input);
        }
        if connection.state != ConnectionState::Open {
            net.io.release(input);
            return 0;
        }
        let reading = self.read(connection, net.io.input(&input), net.now_ns);
        net.io.release(input);
        self.go_on(net, slot, reading)
    }

    /// Does what reading came to. Returns how many requests were answered.
    #[inline]
    fn go_on<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot, reading: Reading) -> u32 {
        if reading.answers > 0 {
            self.waiting.remove(&mut net.connections, slot);
            if !net.connections[slot as usize].flights.is_empty() {
                self.await_answer(net, slot);
            }
        }
        match reading.then {
            Then::GoOn => {}
            Then::Leave => self.leave(net, slot),
            Then::GiveUp(end) => self.give_up(net, slot, end),
        }
        reading.answers
    }

    /// The server has closed or reset the connection.
    pub(crate) fn ended<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot, errno: i32) {
        let connection = &mut net.connections[slot as usize];
        match connection.state {
            ConnectionState::Leaving => return net.close(slot),
            ConnectionState::Securing => return self.lose(net, slot, CUT_HANDSHAKE, End::Reset),
            ConnectionState::Open => {}
            _ => return,
        }
        let is_orderly = errno == 0 && connection.wall.as_ref().is_none_or(|wall| wall.has_ended());
        if connection.flights.is_empty() {
            self.tally.counts.connections_ended += 1;
        } else if is_orderly
            && connection.answering
            && let Ok(Some(step)) = connection.reader.end()
        {
            self.settle_answer(connection, step.status, net.now_ns);
        }
        self.give_up(net, slot, End::Reset);
    }

    /// No further request goes over this connection: waits for the server to close it.
    pub(crate) fn leave<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot) {
        self.settle_flights(net, slot, End::Reset);
        let connection = &mut net.connections[slot as usize];
        connection.state = ConnectionState::Leaving;
        self.leaving.push_back((net.now_ns + LEAVING_NS, slot, connection.begun_ns));
    }

    /// Closes a connection and settles what was under way on it.
    pub(crate) fn give_up<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot, end: End) {
        self.settle_flights(net, slot, end);
        let connection = &mut net.connections[slot as usize];
        let age_ns = net.now_ns.saturating_sub(connection.begun_ns);
        if connection.state == ConnectionState::Connecting && age_ns >= RETRANSMISSION_AFTER_NS {
            connection.state = ConnectionState::Closing;
            connection.close_when_inspected = true;
            self.inspections += 1;
            net.io.inspect(slot);
        } else {
            net.close(slot);
        }
    }

    /// Lists a connection among those that wait, if there is an end to its client's patience.
    #[inline]
    fn await_answer<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot) {
        if self.patience_ns.is_some() {
            self.waiting.insert(&mut net.connections, slot);
        }
    }

    /// Gives up what clients have waited too long for. Returns when there is something to be done again.
    #[inline]
    pub(crate) fn expire<I: Io>(&mut self, net: &mut NetworkSide<I>) -> u64 {
        while let Some(&(until_ns, slot, begun_ns)) = self.leaving.front() {
            let connection = &net.connections[slot as usize];
            let leaving = connection.state == ConnectionState::Leaving && connection.begun_ns == begun_ns;
            if leaving && until_ns > net.now_ns {
                break;
            }
            self.leaving.pop_front();
            if leaving {
                net.close(slot);
            }
        }
        let leaving_ns = self.leaving.front().map_or(u64::MAX, |leaving| leaving.0);
        let Some(patience_ns) = self.patience_ns else { return leaving_ns };
        while let Some(slot) = self.waiting.first() {
            let until_ns = net.connections[slot as usize].waits_since_ns().saturating_add(patience_ns);
            if until_ns > net.now_ns {
                return until_ns.min(leaving_ns);
            }
            self.lose_patience(net, slot);
        }
        leaving_ns
    }

    /// A client has waited too long for its answer; for a handshake, that is told as its reason.
    fn lose_patience<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot) {
        match net.connections[slot as usize].state {
            ConnectionState::Securing => self.lose(net, slot, SLOW_HANDSHAKE, End::TimedOut),
            _ => self.give_up(net, slot, End::TimedOut),
        }
    }

    /// Whether nothing is awaited that would be counted.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.in_flight == 0 && self.inspections == 0
    }

    /// The run is over: what is under way stays unfinished, and has taken until now.
    pub(crate) fn finish(&mut self, now_ns: u64) {
        if self.in_flight > 0 {
            self.tally.span.end(now_ns);
        }
        self.tally.counts.unfinished += self.in_flight;
        self.in_flight = 0;
    }

    /// Reads as many answers as the bytes hold.
    #[inline]
    fn read(&mut self, connection: &mut ClientConnection, mut bytes: &[u8], now_ns: u64) -> Reading {
        let mut answers = 0;
        while !bytes.is_empty() {
            let sent = connection.flights.len() - connection.unsent as usize;
            let Some(flight) = connection.flights.front().filter(|_| sent > 0) else {
                // Bytes nobody asked for: the connection cannot be trusted any more.
                return Reading { answers, then: Then::GiveUp(End::WrongAnswer) };
            };
            if !connection.answering {
                connection.answering = true;
                connection.check = CheckState::new();
                self.tally.times.first_byte.record(now_ns.saturating_sub(flight.intended_ns));
                connection.reader.begin(self.mix.asked_by_head(flight.entry));
            }
            let check = self.mix.check(flight.entry);
            let state = &mut connection.check;
            match connection
                .reader
                .read_with(&mut self.memory, bytes, &mut |body: &[u8]| state.feed(check, body))
            {
                Ok(Step::More) => break,
                Ok(Step::Complete { consumed, status, keep }) => {
                    bytes = &bytes[consumed..];
                    answers += 1;
                    self.settle_answer(connection, status, now_ns);
                    if !keep {
                        return Reading { answers, then: Then::Leave };
                    }
                }
                Err(_) => return Reading { answers, then: Then::GiveUp(End::WrongAnswer) },
            }
        }
        Reading { answers, then: Then::GoOn }
    }
}

/// Settling: each flight leaves its connection here, and is counted once.
impl LaneClient {
    /// The oldest flight was answered as a whole.
    #[inline]
    fn settle_answer(&mut self, connection: &mut ClientConnection, status: u16, now_ns: u64) {
        let Some(flight) = connection.flights.pop_front() else { return };
        connection.answering = false;
        self.in_flight -= 1;
        self.tally.count_status(status);
        self.tally.span.end(now_ns);
        let counts = &mut self.tally.counts;
        if !connection.check.verdict(self.mix.check(flight.entry), status) {
            counts.wrong_answer += 1;
            return;
        }
        let took_ns = now_ns.saturating_sub(flight.intended_ns);
        self.tally.times.complete.record(took_ns);
        if took_ns <= self.late_after_ns {
            counts.in_time += 1;
        } else {
            counts.late += 1;
        }
    }

    /// All flights of a connection end: the oldest as told, those behind it because its connection ends, or
    /// because all of them wait for the same.
    fn settle_flights<I: Io>(&mut self, net: &mut NetworkSide<I>, slot: Slot, end: End) {
        self.waiting.remove(&mut net.connections, slot);
        let flights = &mut net.connections[slot as usize].flights;
        let count = flights.len() as u64;
        flights.clear();
        if count == 0 {
            return;
        }
        self.in_flight -= count;
        self.tally.span.end(net.now_ns);
        let behind = if end == End::WrongAnswer { End::Reset } else { end };
        end.count(&mut self.tally.counts, 1);
        behind.count(&mut self.tally.counts, count - 1);
    }
}

/// What reading came to.
struct Reading {
    answers: u32,
    then: Then,
}

/// What becomes of the connection afterwards.
enum Then {
    GoOn,
    Leave,
    GiveUp(End),
}
