//! One connection: bytes in, answers out, and where it stands in its life.
//!
//! It owns the session and the answers not yet handed over. It must never call the network: the worker does,
//! after it has asked what is to be sent. Order: `receive` (or `resume`, `end`, `time_out`), then
//! `take_outgoing`.

pub(crate) mod turn;

use staunch_netio::Outgoing;
use staunch_protocol::http1::{BodyRule, Event, Request, Session};
use staunch_protocol::limits::SPILL_BYTES_MAX;
use staunch_protocol::proxy::{Introduction, read_introduction};
use staunch_protocol::{Deadline, Status, Timeouts};

use crate::clients::{TOO_MANY_CONNECTIONS, TOO_SOON_BODY};
use crate::connection::turn::{COME_BACK, Turn};
use crate::handler::{Answer, Departure, Handler};
use crate::limits::{BEHIND_BYTES_MAX, CONNECTION_BYTES_MAX, OUTGOING_BYTES_MAX, TURNED_AWAY_MS};
use crate::spare::Spare;

/// Where a connection stands in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nobody is connected in this slot.
    Free,
    /// A proxy has to tell first who is connected.
    Introducing,
    /// Requests are read and answered.
    Open,
    /// A request waits for its answer; what comes meanwhile is kept.
    Waiting,
    /// Nothing more is read; close once all is sent, half-closing first if bytes of the peer may still come.
    Ending { linger: bool },
    /// Half-closed: what comes is thrown away until the peer closes too.
    Lingering,
    /// The network is closing it; only its last completions are awaited.
    Closing,
}

/// A slot of the worker's table.
pub(crate) struct Connection {
    session: Session,
    outgoing: Option<Box<Outgoing>>,
    /// When the send or lingering deadline ends.
    deadline_ms: u64,
    /// Memory of the container in flight.
    in_flight_bytes: u32,
    /// Memory that stands in the worker's account for it.
    pub(crate) counted_bytes: u32,
    /// Counts the uses of the slot, so that late mail finds nobody.
    pub(crate) generation: u32,
    pub(crate) phase: Phase,
    pub(crate) sending: bool,
    /// The send under way began in this turn.
    pub(crate) just_begun: bool,
    /// Since when it is listened to, as the pace counts, if nothing was heard of the peer yet; else 0.
    pub(crate) unheard_since: u8,
    /// It was accepted, and waits to be listened to.
    pub(crate) in_line: bool,
    /// It waited in line for longer than the patience, and was not heard yet.
    pub(crate) late: bool,
    pub(crate) paused: bool,
    /// Enough answers stood to be sent, or were being sent: the session was not asked to its end.
    pub(crate) behind: bool,
    /// It is being closed before its time: its memory is about to come back.
    pub(crate) leaving: bool,
    /// The peer will send no more.
    ended: bool,
    /// Came when only reserved slots were left: whatever it asks, it is told to come back.
    turned_away: bool,
}

// The wheel's node and the backend's state of a slot are 16 bytes each.
const _: () = assert!(size_of::<Connection>() + 16 + 16 <= CONNECTION_BYTES_MAX);

/// Deadlines of one that is turned away.
const TURNED_AWAY: Timeouts = Timeouts {
    header_ms: TURNED_AWAY_MS,
    keep_alive_ms: TURNED_AWAY_MS,
    body_ms: TURNED_AWAY_MS,
    send_ms: TURNED_AWAY_MS,
    linger_ms: TURNED_AWAY_MS,
    body_rate_min: 0,
};

impl Connection {
    /// An empty slot.
    pub(crate) fn free() -> Self {
        Self {
            session: Session::new(0),
            outgoing: None,
            deadline_ms: 0,
            in_flight_bytes: 0,
            counted_bytes: 0,
            generation: 0,
            phase: Phase::Free,
            sending: false,
            just_begun: false,
            unheard_since: 0,
            in_line: false,
            late: false,
            paused: false,
            behind: false,
            leaving: false,
            ended: false,
            turned_away: false,
        }
    }

    /// Somebody connected, to be `turned_away` or not.
    pub(crate) fn open(&mut self, now_ms: u64, turned_away: bool) {
        let generation = self.generation.wrapping_add(1);
        let (session, phase) = (Session::new(now_ms), Phase::Open);
        *self = Self { session, generation, phase, turned_away, ..Self::free() };
    }

    /// It is listened to from now on, after a wait that may have been too long.
    pub(crate) fn leave_line(&mut self, now_ms: u64, late: bool) {
        (self.in_line, self.late) = (false, late);
        if matches!(self.phase, Phase::Open | Phase::Introducing) {
            self.session = Session::new(now_ms);
        }
    }

    /// Nobody is connected any more.
    pub(crate) fn retire(&mut self, spare: &mut Spare) {
        if let Some(outgoing) = self.outgoing.take() {
            spare.put(outgoing);
        }
        *self = Self { generation: self.generation, ..Self::free() };
    }

    /// Bytes came.
    #[inline]
    pub(crate) fn receive<H: Handler>(&mut self, bytes: &[u8], turn: &mut Turn<'_, H>) {
        match self.phase {
            Phase::Open => self.converse(bytes, None, turn),
            Phase::Waiting => {
                let joined = self.session.take_kept(bytes);
                let count = joined.len();
                self.session.keep_last(joined, count);
            }
            Phase::Introducing => self.introduce(bytes, turn),
            Phase::Free | Phase::Ending { .. } | Phase::Lingering | Phase::Closing => {}
        }
    }

    /// The first bytes are the proxy's.
    #[cold]
    fn introduce<H: Handler>(&mut self, bytes: &[u8], turn: &mut Turn<'_, H>) {
        let joined = self.session.take_kept(bytes);
        match read_introduction(&joined) {
            Introduction::NeedMore => {
                let count = joined.len();
                self.session.keep_last(joined, count);
            }
            Introduction::Fault(_) => {
                turn.context.stats.proxy_faults.add(1);
                self.phase = Phase::Ending { linger: false };
            }
            Introduction::Header { source, bytes_used } => {
                self.phase = Phase::Open;
                let (slot, now_ms) = (turn.context.address.slot, turn.now_ms);
                let clients = turn.context.clients.as_deref_mut();
                if clients.is_none_or(|clients| clients.introduce(slot, source, now_ms, turn.context.stats)) {
                    self.converse(&joined[bytes_used..], None, turn);
                } else {
                    self.turn_away(turn);
                }
            }
        }
    }

    /// Its client has too many connections.
    #[cold]
    pub(crate) fn turn_away<H: Handler>(&mut self, turn: &mut Turn<'_, H>) {
        let mut outgoing = self.outgoing(turn.spare);
        let status = Status::TOO_MANY_REQUESTS;
        let (fields, body) = TOO_MANY_CONNECTIONS;
        self.session.turn_away(status, fields.into(), body, turn.context.date, outgoing.bytes());
        self.put_outgoing(outgoing, turn.spare);
        self.phase = Phase::Ending { linger: true };
        turn.tell(status, body.len(), None);
    }

    /// There is room for answers again: requests kept behind the last ones are handled.
    pub(crate) fn catch_up<H: Handler>(&mut self, turn: &mut Turn<'_, H>) {
        if self.phase == Phase::Open && (self.behind || self.ended) {
            self.converse(&[], None, turn);
        }
    }

    /// Mail came for the request that waits.
    pub(crate) fn resume<H: Handler>(&mut self, mail: H::Mail, turn: &mut Turn<'_, H>) {
        debug_assert_eq!(self.phase, Phase::Waiting);
        self.phase = Phase::Open;
        self.session.resume();
        self.converse(&[], Some(mail), turn);
    }

    /// The peer will send no more. What it asked before is still answered.
    pub(crate) fn end<H: Handler>(&mut self, turn: &mut Turn<'_, H>) {
        self.ended = true;
        self.session.handle_end();
        if self.phase == Phase::Waiting {
            turn.handler.left(turn.context.address, Departure::SendsNoMore);
        }
        if self.phase == Phase::Introducing {
            turn.context.stats.proxy_faults.add(u64::from(self.session.kept_bytes() > 0));
            self.phase = Phase::Ending { linger: false };
        }
        self.catch_up(turn);
    }

    /// The session's deadline has passed.
    pub(crate) fn time_out<H: Handler>(&mut self, turn: &mut Turn<'_, H>) {
        let mut outgoing = self.outgoing(turn.spare);
        let answered = self.session.handle_timeout(turn.context.date, outgoing.bytes());
        turn.tell_refused(answered);
        self.put_outgoing(outgoing, turn.spare);
        self.converse(&[], None, turn);
    }

    /// The story of a connection: every complete request in the bytes is answered, in order, until the bytes
    /// are used up, an answer has to wait, or enough answers stand to be sent.
    /// `mail` is for the first of them.
    fn converse<H: Handler>(&mut self, bytes: &[u8], mut mail: Option<H::Mail>, turn: &mut Turn<'_, H>) {
        let joined = self.session.take_kept(bytes);
        let mut input = &joined[..];
        let written_bytes_max = self.written_bytes_max(turn);
        let mut outgoing = self.outgoing(turn.spare);
        loop {
            self.behind = mail.is_none() && self.has_enough(&outgoing, written_bytes_max);
            if self.behind {
                // A peer that sends its body first reads nothing meanwhile.
                self.session.discard(&mut input, turn.now_ms);
                break;
            }
            let before = input;
            let written_bytes = outgoing.length_bytes();
            let (date, out) = (turn.context.date, outgoing.bytes());
            match self.session.poll_event_with(turn.heads, &mut input, turn.now_ms, date, out) {
                Event::Request(ref request) => {
                    // The last of those that came together says so.
                    if turn.draining && input.is_empty() {
                        self.session.close_after_response();
                    }
                    let waited = mail.as_ref().map(|_| turn.now_ms - self.session.waiting_since_ms());
                    if self.is_strained(turn) && self.send_back(waited, request, turn, &mut outgoing) {
                        mail = None;
                        continue;
                    }
                    let too_soon = mail.is_none() && turn.is_too_soon(request);
                    let answer = Answer {
                        session: &mut self.session,
                        outgoing: &mut outgoing,
                        context: &turn.context,
                        rendered: Some(&mut *turn.rendered),
                        waited_ms: waited.unwrap_or(0) as u32,
                    };
                    if too_soon {
                        answer.too_soon();
                        turn.tell(Status::TOO_MANY_REQUESTS, TOO_SOON_BODY.len(), Some(request));
                        continue;
                    }
                    let answered = match mail.take() {
                        Some(mail) => turn.handler.resume(mail, request, answer),
                        None => turn.handler.handle(request, answer),
                    };
                    if answered.is_later() {
                        input = before;
                        self.begin_waiting(waited.is_none(), turn);
                        break;
                    }
                    turn.context.stats.requests.add(1);
                    if let Some(waited_ms) = waited {
                        turn.count_late(waited_ms);
                    }
                }
                Event::NeedInput => break,
                Event::Close { linger, answered } => {
                    // Only a refusal is written by the session itself.
                    turn.context.stats.rejected.add(u64::from(outgoing.length_bytes() > written_bytes));
                    turn.tell_refused(answered);
                    // What crosses with the announced end must not destroy the answer that announces it.
                    self.phase = Phase::Ending { linger: (linger || turn.draining) && !self.ended };
                    break;
                }
            }
        }
        let rest_bytes = input.len();
        self.session.keep_last(joined, rest_bytes);
        self.put_outgoing(outgoing, turn.spare);
    }

    /// Whoever has not taken the answers before gets the next ones in small pieces.
    #[inline]
    fn written_bytes_max<H>(&self, turn: &Turn<'_, H>) -> usize {
        if self.behind { turn.written_bytes_max.min(BEHIND_BYTES_MAX) } else { turn.written_bytes_max }
    }

    /// Enough answers stand to be sent, or are being sent.
    #[inline]
    fn has_enough(&self, outgoing: &Outgoing, written_bytes_max: usize) -> bool {
        self.sending
            || outgoing.written_bytes() >= written_bytes_max
            || outgoing.length_bytes() >= OUTGOING_BYTES_MAX
    }

    /// The answer comes by mail: since when it is waited for counts from when the request came.
    fn begin_waiting<H>(&mut self, is_first_time: bool, turn: &Turn<'_, H>) {
        self.phase = Phase::Waiting;
        if is_first_time {
            turn.context.stats.waits.add(1);
            self.session.set_waiting_since(turn.came_ms);
        }
    }

    /// Whether a request may have to suffer for others, and is worth a look by `send_back`.
    #[inline]
    fn is_strained<H>(&self, turn: &Turn<'_, H>) -> bool {
        turn.strain.late || turn.strain.full || self.turned_away
    }

    /// Answers the request last given by telling it to come back, if it has to be; one that may stay is the
    /// last of its connection if others need the slot. `waited_ms` is how long it did for mail.
    #[cold]
    fn send_back<H: Handler>(
        &mut self,
        waited_ms: Option<u64>,
        request: &Request<'_>,
        turn: &mut Turn<'_, H>,
        outgoing: &mut Outgoing,
    ) -> bool {
        if turn.strain.full || self.turned_away {
            self.session.close_after_response();
        }
        // What has waited for its content has it now: to send it costs no more than to refuse it.
        let is_late = waited_ms.is_none() && turn.strain.late;
        let counter = match (self.turned_away, is_late) {
            (true, _) => &turn.context.stats.shed_full,
            (false, true) => &turn.context.stats.shed_patience,
            (false, false) => return false,
        };
        counter.add(1);
        if waited_ms.is_some() {
            turn.context.stats.answered_late.add(1);
            turn.context.stats.requests.add(1);
        }
        let (status, (fields, body)) = (Status::SERVICE_UNAVAILABLE, COME_BACK);
        let rule = self.session.begin_response(status, turn.context.date, outgoing.bytes());
        let body = if rule == BodyRule::Send { body } else { b"" };
        outgoing.bytes().extend_from_slice(fields);
        outgoing.bytes().extend_from_slice(b"\r\n");
        outgoing.bytes().extend_from_slice(body);
        turn.tell(status, body.len(), Some(request));
        true
    }

    /// What is to be sent now, if anything. At most one send is under way at a time.
    #[inline]
    pub(crate) fn take_outgoing(&mut self) -> Option<Box<Outgoing>> {
        if self.sending { None } else { self.outgoing.take() }
    }

    /// The container was handed over.
    #[inline]
    pub(crate) fn begin_send(&mut self, outgoing: &Outgoing) {
        (self.sending, self.just_begun) = (true, true);
        self.in_flight_bytes = u32::try_from(outgoing.held_bytes()).unwrap_or(u32::MAX);
    }

    /// The container has come back.
    #[inline]
    pub(crate) fn end_send(&mut self) {
        self.sending = false;
        self.in_flight_bytes = 0;
    }

    /// Memory that it holds: input kept, answers that stand to be sent, and those in flight.
    #[inline]
    pub(crate) fn held_bytes(&self) -> u32 {
        let standing_bytes = self.outgoing.as_ref().map_or(0, |outgoing| outgoing.held_bytes());
        self.in_flight_bytes.saturating_add((self.session.held_bytes() + standing_bytes) as u32)
    }

    /// More was received than is worth holding: receiving should pause.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        let bytes_max = if self.behind { 0 } else { SPILL_BYTES_MAX };
        self.session.kept_bytes() > bytes_max
    }

    /// Since when nothing is under way on it, if nothing is. Who stands in line has asked.
    pub(crate) fn idle_since_ms(&self) -> Option<u64> {
        let quiet = self.phase == Phase::Open && !self.sending && self.outgoing.is_none() && !self.in_line;
        if quiet { self.session.idle_since_ms() } else { None }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// The send or lingering deadline runs from now.
    #[inline]
    pub(crate) fn start_deadline(&mut self, deadline: Deadline, now_ms: u64, timeouts: &Timeouts) {
        self.deadline_ms = now_ms + u64::from(self.timeouts(timeouts).length_ms(deadline));
    }

    /// The peer took so many bytes: the send deadline begins anew, unless the peer is to take a minimum on
    /// the mean; then it moves by a second for every `rate_min` bytes.
    pub(crate) fn progress(&mut self, bytes: u32, rate_min: u64, now_ms: u64, timeouts: &Timeouts) {
        let before_ms = self.deadline_ms;
        self.start_deadline(Deadline::Send, now_ms, timeouts);
        if let Some(earned_ms) = (u64::from(bytes) * 1000).checked_div(rate_min) {
            self.deadline_ms = self.deadline_ms.min(before_ms + earned_ms);
        }
    }

    #[inline]
    fn timeouts<'a>(&self, usual: &'a Timeouts) -> &'a Timeouts {
        if self.turned_away { &TURNED_AWAY } else { usual }
    }

    /// The deadline that is running, and when it ends.
    #[inline]
    pub(crate) fn due(&self, timeouts: &Timeouts) -> Option<(u64, Deadline)> {
        match self.phase {
            Phase::Free => None,
            Phase::Lingering => Some((self.deadline_ms, Deadline::Linger)),
            _ if self.sending => Some((self.deadline_ms, Deadline::Send)),
            Phase::Closing => None,
            _ => self.session.poll_timeout(self.timeouts(timeouts)),
        }
    }

    #[inline]
    fn outgoing(&mut self, spare: &mut Spare) -> Box<Outgoing> {
        self.outgoing.take().unwrap_or_else(|| spare.take())
    }

    #[inline]
    fn put_outgoing(&mut self, outgoing: Box<Outgoing>, spare: &mut Spare) {
        if outgoing.is_empty() {
            spare.put(outgoing);
        } else {
            self.outgoing = Some(outgoing);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so many bytes every so many milliseconds; gives when the deadline cut it off, if ever.
    fn cut_off_ms(bytes: u32, every_ms: u64, rate_min: u64) -> Option<u64> {
        let timeouts = Timeouts { send_ms: 30_000, ..Timeouts::default() };
        let mut connection = Connection::free();
        connection.start_deadline(Deadline::Send, 0, &timeouts);
        for now_ms in (every_ms..1_000_000).step_by(every_ms as usize) {
            if connection.deadline_ms < now_ms {
                return Some(connection.deadline_ms);
            }
            connection.progress(bytes, rate_min, now_ms, &timeouts);
        }
        None
    }

    #[test]
    fn a_slow_reader_finishes_and_one_that_only_pretends_does_not() {
        assert_eq!(cut_off_ms(1, 1_000, 0), None, "no minimum is asked for");
        assert_eq!(cut_off_ms(1, 31_000, 0), Some(30_000), "no progress in time");
        assert_eq!(cut_off_ms(100, 1_000, 100), None);
        assert_eq!(cut_off_ms(3_000, 25_000, 100), None, "in bursts");
        assert_eq!(cut_off_ms(1, 1_000, 100), Some(30_300));
        assert_eq!(cut_off_ms(50, 1_000, 100), Some(60_000 - 500), "half of it lasts twice as long");
    }
}
