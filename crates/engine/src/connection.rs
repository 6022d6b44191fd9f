//! A connection: bytes in, answers out, and where it stands in its life.
//!
//! It owns the session and the answers not yet handed over. HTTP/1.1 is spoken here, HTTP/2 in `http2`. It
//! must never call the network: the worker does, after it has asked what is to be sent. Order: `receive` (or
//! `resume`, `end`, `time_out`), then `take_outgoing`.

mod deadlines;
mod http1;
pub(crate) mod http2;
mod living;
mod marks;
mod refusing;

use staunch_netio::Outgoing;
use staunch_protocol::http1::{Event, Session};
use staunch_protocol::http2::WorkerMemory;
use staunch_protocol::limits::SPILL_BYTES_MAX;
use staunch_protocol::{Request, Timeouts};

pub(crate) use crate::connection::marks::Marks;
use crate::exchange::answer::Answer;
use crate::exchange::exchanges::Exchanges;
use crate::exchange::life;
use crate::exchange::open::Ended;
use crate::exchange::owner::Owner;
use crate::exchange::pen::{Http1Pen, Pen};
use crate::exchange::turn::Turn;
use crate::exchange::under_way::UnderWay;
use crate::handler::Handler;
use crate::limits::{BEHIND_BYTES_MAX, CONNECTION_BYTES_MAX, OUTGOING_BYTES_MAX};
use crate::pressure::Waited;
use crate::spare::Spare;

/// Where a connection stands in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The slot is free: no peer is connected.
    Free,
    /// A proxy has to tell first who is connected.
    Introducing,
    /// Requests are read and answered, in the protocol that its exchanges are of.
    Open,
    /// Nothing more is read; close once all is sent, half-closing first if bytes of the peer may still come.
    Ending { linger: bool },
    /// Half-closed: what comes is thrown away until the peer closes too.
    Lingering,
    /// The network is closing it; only its last completions are awaited.
    Closing,
}

/// A slot of the worker's table.
pub(crate) struct Connection {
    /// Of HTTP/1.1.
    session: Session,
    outgoing: Option<Box<Outgoing>>,
    /// Exchanges that are not over at once; they say which protocol is spoken.
    pub(crate) exchanges: Exchanges,
    /// When the send or lingering deadline ends.
    pub(crate) deadline_ms: u64,
    /// Memory of the container in flight.
    in_flight_bytes: u32,
    /// Memory that stands in the worker's account for it.
    pub(crate) counted_bytes: u32,
    /// Counts the uses of the slot and the exchanges that were not over at once, so that late mail finds
    /// nobody.
    pub(crate) generation: u32,
    /// What the peer had acknowledged when it was looked at last.
    mark: u16,
    pub(crate) marks: Marks,
    pub(crate) phase: Phase,
    pub(crate) sending: bool,
    /// The send under way began in this turn.
    pub(crate) just_begun: bool,
    /// Since when it is listened to, as the pace counts, if nothing was heard of the peer yet; else 0.
    pub(crate) unheard_since: u8,
    /// The connection was accepted, and waits to be listened to.
    pub(crate) in_line: bool,
    /// How long the connection waited in line, until it is heard.
    pub(crate) waited: Waited,
    pub(crate) paused: bool,
    /// Enough answers stood to be sent, or were being sent: the session was not asked to its end.
    pub(crate) behind: bool,
    /// The connection is being closed before its time: its memory is about to come back.
    pub(crate) leaving: bool,
}

// The wheel's node and the backend's state of a slot are 16 bytes each.
const _: () = assert!(size_of::<Connection>() + 16 + 16 <= CONNECTION_BYTES_MAX);

impl Connection {
    /// An empty slot.
    pub(crate) fn free() -> Self {
        Self {
            session: Session::new(0),
            outgoing: None,
            exchanges: Exchanges::default(),
            deadline_ms: 0,
            in_flight_bytes: 0,
            counted_bytes: 0,
            generation: 0,
            mark: 0,
            marks: Marks::NONE,
            phase: Phase::Free,
            sending: false,
            just_begun: false,
            unheard_since: 0,
            in_line: false,
            waited: Waited::SHORT,
            paused: false,
            behind: false,
            leaving: false,
        }
    }

    /// A peer connected, to be `turned_away` or not.
    pub(crate) fn open(&mut self, now_ms: u64, turned_away: bool) {
        let generation = self.generation.wrapping_add(1);
        let (session, phase) = (Session::new(now_ms), Phase::Open);
        *self = Self { session, generation, phase, ..Self::free() };
        if turned_away {
            self.marks.set(Marks::TURNED_AWAY);
        }
    }

    /// The connection is listened to from now on, after a wait that may have been too long.
    pub(crate) fn leave_line(&mut self, now_ms: u64, waited: Waited) {
        (self.in_line, self.waited) = (false, waited);
        let is_new = matches!(self.phase, Phase::Open | Phase::Introducing) && self.exchanges.are_none();
        if is_new {
            self.session = Session::new(now_ms);
        }
    }

    /// Frees the slot: its peer is connected no more.
    pub(crate) fn retire(&mut self, spare: &mut Spare, memory: &mut WorkerMemory) {
        if let Some(http2) = self.exchanges.http2_mut() {
            http2.release(memory);
        }
        if let Some(outgoing) = self.outgoing.take() {
            spare.put(outgoing);
        }
        *self = Self { generation: self.generation, ..Self::free() };
    }

    /// Bytes came.
    #[inline]
    pub(crate) fn receive<H: Handler>(&mut self, bytes: &[u8], turn: &mut Turn<'_, H>) {
        match self.phase {
            Phase::Open if self.exchanges.http2().is_some() => self.converse_http2(bytes, turn),
            Phase::Open => self.converse(bytes, turn),
            Phase::Introducing => {
                if let Some(rest) = self.be_introduced(bytes, turn) {
                    self.converse(&rest, turn);
                }
            }
            Phase::Free | Phase::Ending { .. } | Phase::Lingering | Phase::Closing => {}
        }
    }

    /// There is room for answers again: requests kept behind the last ones are handled, and an answer that
    /// goes on does.
    pub(crate) fn catch_up<H: Handler>(&mut self, turn: &mut Turn<'_, H>) {
        if self.phase != Phase::Open {
            return;
        }
        match &self.exchanges {
            Exchanges::Streams(_) => self.catch_up_http2(turn),
            Exchanges::One(under_way) => {
                if !under_way.is_nothing() || self.behind || self.marks.has_ended() {
                    self.converse(&[], turn);
                }
            }
        }
    }

    /// The peer will send no more. What it asked before is still answered.
    pub(crate) fn end<H: Handler>(&mut self, turn: &mut Turn<'_, H>) {
        self.marks.set(Marks::ENDED);
        if self.has_streams() {
            return self.end_http2(turn);
        }
        self.session.handle_end();
        if !self.exchanges.are_none() {
            self.lend_only(turn, |port, turn| life::hear_end(port, turn));
        }
        if self.phase == Phase::Introducing {
            turn.context.stats.connections.proxy_faults.add(u64::from(self.session.kept_bytes() > 0));
            self.phase = Phase::Ending { linger: false };
        }
        self.catch_up(turn);
    }

    /// The session's deadline has passed.
    pub(crate) fn time_out<H: Handler>(&mut self, timeouts: &Timeouts, turn: &mut Turn<'_, H>) {
        if self.has_streams() {
            let timeouts = *self.marks.timeouts(timeouts);
            return self.time_out_http2(&timeouts, turn);
        }
        let mut outgoing = self.outgoing(turn.spare);
        let answered = self.session.handle_timeout(turn.context.date, outgoing.bytes());
        turn.tell_refused(answered, self.exchanges.owner_of_refused());
        self.put_outgoing(outgoing, turn.spare);
        self.break_exchanges(Ended::BadBody, turn);
        self.converse(&[], turn);
    }

    /// The story of a connection: every complete request in the bytes is answered, in order, until the bytes
    /// are used up, an answer has to wait or goes on, or enough answers stand to be sent.
    fn converse<H: Handler>(&mut self, bytes: &[u8], turn: &mut Turn<'_, H>) {
        let joined = self.session.take_kept(bytes);
        let mut input = &joined[..];
        // Few while the peer has not taken the answers before.
        let few_bytes = if self.behind { BEHIND_BYTES_MAX } else { usize::MAX };
        let written_bytes_max = turn.written_bytes_max.min(few_bytes);
        let mut outgoing = self.outgoing(turn.spare);
        loop {
            if !self.exchanges.are_none() && !self.go_on(&mut input, &mut outgoing, turn) {
                break;
            }
            // Enough answers stand to be sent, or are being sent.
            self.behind = self.sending
                || outgoing.written_bytes() >= written_bytes_max
                || outgoing.length_bytes() >= OUTGOING_BYTES_MAX;
            if self.behind {
                // A peer that sends its body first reads nothing meanwhile.
                self.session.discard(&mut input, turn.now_ms);
                break;
            }
            let written_bytes = outgoing.length_bytes();
            let (date, out) = (turn.context.date, outgoing.bytes());
            match self.session.poll_event_with(turn.heads, &mut input, turn.now_ms, date, out) {
                Event::Request(ref request) => {
                    self.answer(request, input.is_empty(), turn, &mut outgoing);
                }
                Event::NeedInput => break,
                Event::Preface => {
                    self.put_outgoing(outgoing, turn.spare);
                    return self.meet_preface(input, turn);
                }
                Event::Close { linger, answered } => {
                    // Only a refusal is written by the session itself.
                    turn.context
                        .stats
                        .connections
                        .rejected
                        .add(u64::from(outgoing.length_bytes() > written_bytes));
                    turn.tell_refused(answered, None);
                    self.begin_ending(linger, turn);
                    break;
                }
                Event::Body(_) | Event::BodyEnd => debug_assert!(false, "a body without an exchange"),
            }
        }
        let rest_bytes = input.len();
        self.session.keep_last(joined, rest_bytes);
        self.put_outgoing(outgoing, turn.spare);
    }

    /// Nothing more is read. What crosses with the announced end must not destroy the answer that announces
    /// it (RFC 9112, section 9.6): whoever was answered before keeps connections and may have sent the next
    /// request already, whoever asks for the first time may not, and is spared the half-close.
    fn begin_ending<H>(&mut self, linger: bool, turn: &Turn<'_, H>) {
        let may_cross = linger || turn.draining || self.marks.has(Marks::ANSWERED);
        self.phase = Phase::Ending { linger: may_cross && !self.marks.has_ended() };
    }

    /// Answers a request that has just come. `is_last`: nothing came behind it.
    #[inline]
    fn answer<H: Handler>(
        &mut self,
        request: &Request<'_>,
        is_last: bool,
        turn: &mut Turn<'_, H>,
        outgoing: &mut Outgoing,
    ) {
        // The last of those that came together says so.
        if turn.draining && is_last {
            self.session.close_after_response();
        }
        if turn.is_strained(self.marks.is_turned_away())
            && life::send_back(&mut self.port(outgoing, turn.now_ms), None, request, turn)
        {
            return;
        }
        let too_soon = turn.is_too_soon(request);
        if too_soon || turn.context.is_misdirected(request.host) {
            return life::turn_down(&mut self.port(outgoing, turn.now_ms), too_soon, request, turn);
        }
        let answer = Answer {
            pen: Pen::Http1(Http1Pen { session: &mut self.session, rendered: Some(&mut *turn.rendered) }),
            outgoing,
            context: &turn.context,
            waited_ms: 0,
            owner: Owner::default(),
        };
        let answered = turn.handler.handle(request, answer);
        if !answered.is_complete() {
            return life::begin(&mut self.port(outgoing, turn.now_ms), request, &answered, turn);
        }
        turn.context.stats.requests.answered.add(1);
    }

    /// What is to be sent now, if anything. At most one send is under way at a time.
    #[inline]
    pub(crate) fn take_outgoing(&mut self) -> Option<Box<Outgoing>> {
        if self.sending { None } else { self.outgoing.take() }
    }

    /// Whether something stands to be sent behind what is in flight.
    pub(crate) fn has_outgoing(&self) -> bool {
        self.outgoing.is_some()
    }

    /// The container was handed over: what is written from now on goes to another one.
    #[inline]
    pub(crate) fn leave_container(&mut self) {
        self.marks.set(Marks::ANSWERED);
        if let Some(http2) = self.exchanges.http2_mut() {
            http2.begin_send();
        }
    }

    /// A container, or a piece of one, was handed over.
    #[inline]
    pub(crate) fn begin_piece(&mut self, outgoing: &Outgoing) {
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
        let bytes = self.session.held_bytes() + standing_bytes + self.exchanges.held_bytes();
        self.in_flight_bytes.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX))
    }

    /// More was received than is worth holding: receiving should pause.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        if let Some(http2) = self.exchanges.http2() {
            return http2.kept_bytes() > if self.behind { 0 } else { SPILL_BYTES_MAX };
        }
        let is_body = !self.exchanges.are_none() && self.session.is_reading();
        let bytes_max = if self.behind || is_body { 0 } else { SPILL_BYTES_MAX };
        self.session.kept_bytes() > bytes_max
    }

    /// Since when nothing is under way on it, if nothing is. Who stands in line has asked.
    pub(crate) fn idle_since_ms(&self) -> Option<u64> {
        let quiet = !self.sending && self.outgoing.is_none() && !self.in_line;
        if self.phase != Phase::Open || !quiet {
            return None;
        }
        match &self.exchanges {
            Exchanges::One(UnderWay::Nothing) => self.session.idle_since_ms(),
            Exchanges::One(_) => None,
            Exchanges::Streams(http2) => http2.idle_since_ms(),
        }
    }

    /// Whether requests are read and answered by HTTP/2: any number may be under way.
    #[inline]
    pub(crate) fn has_streams(&self) -> bool {
        self.phase == Phase::Open && self.exchanges.http2().is_some()
    }

    /// Whether exchanges may be under way that are not over at once.
    #[inline]
    pub(crate) fn has_exchanges(&self) -> bool {
        self.phase == Phase::Open && !self.exchanges.are_none()
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
