//! Streams of events: how they begin, get their updates, and end.
//!
//! It must never hand over a second delivery before the first was taken by the kernel.

use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;

use staunch_engine::{Address, Answer, Answered, Body, Open, Piece, Slice};
use staunch_live::{Awaited, Form, Joined, Marks, Reader, TopicName, Transport};
use staunch_protocol::{Method, Request, Status};

use super::super::counts::{count, place};
use super::super::events::{StreamHead, Wish};
use super::super::pending::Pending;
use super::super::permit::{Rights, refuse_invalid};
use super::super::queue::{Publisher, Publishing};
use super::super::reply::refuse;
use super::super::route::Endpoint;
use super::super::seat::{JoiningSeat, ReaderSeat, Seat};
use super::super::socket::Closing;
use super::super::turns::LineClient;
use super::super::undelivered::LongDelivery;
use super::LiveWorker;
use crate::limits::{AWAY_S_MAX, CLIENT_PREFIX_IPV6, RESTING_BYTES_MAX, RETRY_MS_MAX, RETRY_MS_MIN};

/// What a stream is told that may lack updates because of its token.
const LEFT_OUT: &str = ": private updates are left out: no token was shown that grants all of these topics\n";

impl LiveWorker {
    /// Answers a request for `/events`, or for a subscription of Mercure.
    pub(super) fn subscribe(
        &mut self,
        rights: &Rights,
        endpoint: Endpoint<'_>,
        lines: &[u8],
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        if matches!(rights, Rights::Invalid) {
            return refuse_invalid(lines, answer);
        }
        let (grants, ends_at_s) = rights.reading();
        let is_mercure = endpoint == Endpoint::Mercure;
        let wish = match is_mercure {
            true => Wish::read_mercure(request, grants),
            false => Wish::read(request, grants),
        };
        let wish = match wish {
            Ok(wish) => wish.of(client_of(request, &answer)),
            Err(sentence) => return refuse(Status::BAD_REQUEST, &sentence, lines, answer),
        };
        // What a hub of Mercure is asked for may always be private, and is left out then.
        let forbidden = if is_mercure { None } else { self.forbidden(rights, &wish) };
        if let Some(topic) = forbidden {
            return rights.refuse_reading(&topic, lines, answer);
        }
        let mut fields = wish.fields(lines);
        if is_mercure {
            fields.extend_from_slice(wish.mercure_line(&self.view).as_bytes());
        }
        if request.method == Method::Head {
            return answer.open(request, Status::OK, &fields, None, false);
        }
        if self.has_no_room() {
            count(&self.counts().refused);
            let sentence = "there are as many readers as `live_connections` allows";
            return self.send_away(sentence, lines, answer);
        }
        let address = answer.address();
        let opening = Some(wish.head());
        let number = self.seats.promise(address);
        if !self.join(number, address.generation, wish, opening) {
            self.seats.take(number);
            count(&self.counts().refused);
            let sentence = "there are as many groups of readers, or patterns, as may be";
            return self.send_away(sentence, lines, answer);
        }
        self.watch_token(ends_at_s, address);
        self.ask_for(LineClient::of(answer.client(request), address));
        answer.open(request, Status::OK, &fields, None, false)
    }

    /// A topic that is asked for by name, of which a rule makes every update private, and none may be read.
    pub(super) fn forbidden(&self, rights: &Rights, wish: &Wish) -> Option<TopicName> {
        let is_forbidden = |name: &&TopicName| self.shared.is_private(name) && !rights.may_read(name);
        wish.interest.names().find(is_forbidden).cloned()
    }

    /// Whether this worker has its share of readers. What one has not, another may have: the share is rounded
    /// up.
    pub(super) fn has_no_room(&self) -> bool {
        let share = self.shared.config.readers_max.div_ceil(self.shared.worker_counts.len() as u64);
        self.counts().all_readers() >= share
    }

    pub(super) fn send_away(&self, sentence: &str, lines: &[u8], answer: Answer<'_>) -> Answered {
        let away_s = 1 + drawn(answer.address(), answer.unix_ms()) % AWAY_S_MAX;
        let lines = [lines, format!("Retry-After: {away_s}\r\n").as_bytes()].concat();
        refuse(Status::SERVICE_UNAVAILABLE, sentence, &lines, answer)
    }

    /// Makes a reader of a connection, or lets it wait for a form. Whether there is room for it.
    fn join(&mut self, slot: u32, generation: u32, wish: Wish, opening: Option<StreamHead>) -> bool {
        let (form, start) = (wish.form, wish.start(&self.view));
        let interest = (&wish.interest, wish.client);
        let seat = match self.view.join(slot, interest, form, start, Marks::default(), generation) {
            Joined::Full => return false,
            Joined::Reader(mut reader, batch) => {
                reader.marks.set(Marks::SENDING);
                if !self.view.is_small(&reader, RESTING_BYTES_MAX) {
                    reader.marks.set(Marks::COUNTED);
                }
                reader.written_at_s = self.moment.up_s as u16;
                let (pending, socket) = (Pending::of(&batch.slices), None);
                Seat::Reader(ReaderSeat { reader, opening, is_leaving: false, pending, socket })
            }
            Joined::Later(awaited) => {
                self.wait_for(slot, awaited);
                let seat = JoiningSeat { wish, generation, opening, is_refused: false, socket: None };
                Seat::Joining(Box::new(seat))
            }
        };
        self.seats.put(slot, seat);
        let counts = self.counts();
        counts.readers[place(form.transport())].fetch_add(1, Relaxed);
        count(&counts.joined);
        true
    }

    /// What a slot waits for is told to it by [`LiveWorker::join_again`] or [`LiveWorker::join_compared`].
    pub(super) fn wait_for(&mut self, slot: u32, awaited: Awaited) {
        match awaited {
            Awaited::Letter => self.joining.push(slot),
            Awaited::Turn(turn) => self.comparing.push_back((turn, slot)),
        }
    }

    /// A letter came: those who wait for a form join again.
    pub(super) fn join_again(&mut self) {
        std::mem::take(&mut self.joining).into_iter().for_each(|slot| self.go_on_with(slot));
    }

    /// The view has compared patterns with topics: those who waited for that join again.
    pub(super) fn join_compared(&mut self) {
        while let Some((_, slot)) = self.comparing.pop_front_if(|(turn, _)| *turn <= self.view.compared_to())
        {
            self.go_on_with(slot);
        }
    }

    fn go_on_with(&mut self, slot: u32) {
        if self.seats.socket(slot).is_some() {
            return self.go_on_with_socket(slot);
        }
        let Some(Seat::Joining(seat)) = self.seats.at(slot).filter(Seat::is_waiting) else { return };
        let (wish, generation, opening) = (seat.wish.clone(), seat.generation, seat.opening);
        let (form, interest) = (wish.form, wish.interest.clone());
        self.counts().readers[place(form.transport())].fetch_sub(1, Relaxed);
        let has_room = self.join(slot, generation, wish, opening);
        self.view.waited(&interest, form);
        if let Some(Seat::Joining(seat)) = self.seats.at(slot).filter(|_| !has_room) {
            seat.is_refused = true;
        }
        self.seats.wake(slot);
    }

    /// See [`staunch_engine::Handler::ready`].
    pub(crate) fn ready(&mut self, open: &mut Open<'_>) {
        let Some(slot) = self.seats.seated(open.address()) else { return };
        if open.is_outdated() {
            return self.dismiss(slot, open);
        }
        if self.seats.socket(slot).is_some() {
            return self.serve_socket(slot, open);
        }
        if self.seats.reader_of(slot).is_some() {
            return self.ready_reader(slot, open);
        }
        match self.seats.at(slot) {
            Some(Seat::Joining(seat)) => {
                open.ignore_input();
                open.release_request();
                open.note_held(seat.wish.interest.held_bytes());
                if let Some(head) = seat.opening.take() {
                    begin(seat.wish.form, head, open);
                }
                if seat.is_refused || open.peer_has_ended() {
                    open.end();
                }
            }
            Some(Seat::Feed(..)) => self.go_on_with_feed(open),
            Some(Seat::Reader(_) | Seat::Socket(..)) | None => {}
        }
    }

    /// Serves a reader of a stream, and lets it rest unless it holds much. It needs its request no more: all
    /// that was asked stands in its group.
    fn ready_reader(&mut self, slot: u32, open: &mut Open<'_>) {
        open.ignore_input();
        // Streams of HTTP/2 never rest.
        let is_stream = open.address().stream.is_stream();
        let is_counted = |reader: &Reader| is_stream || reader.marks.has(Marks::COUNTED);
        let reader_bytes = match self.seats.reader_of(slot) {
            Some(reader) if is_counted(reader) => self.view.held_bytes(reader),
            _ => {
                open.release_request();
                0
            }
        };
        self.seats.in_hand = Some(slot);
        self.serve(slot, open);
        open.note_held(reader_bytes + self.undelivered.note(slot));
        self.seats.settle(slot);
        self.seats.in_hand = None;
        self.seats.wakes.drain(..).for_each(|address| open.outbox().wake(address));
        self.ask_for(LineClient::of(None, open.address()));
    }

    /// Ends what goes on for a client whose certificate is outdated, before it gets or says more. A WebSocket
    /// is told why; lines to publish are broken off, for their publisher waits for what became of them.
    fn dismiss(&mut self, slot: u32, open: &mut Open<'_>) {
        if let Some(socket) = self.seats.socket(slot) {
            socket.close(Closing::OUTDATED);
            return self.serve_socket(slot, open);
        }
        match self.seats.at(slot) {
            Some(Seat::Feed(..)) => open.abort(),
            Some(Seat::Reader(_) | Seat::Joining(_) | Seat::Socket(..)) | None => open.end(),
        }
    }

    /// Sends a reader what it is about to get, and looks what else it lacks when that was taken.
    fn serve(&mut self, slot: u32, open: &mut Open<'_>) {
        if open.peer_has_ended() {
            return open.end();
        }
        while self.hand_over(slot, open) {
            if !self.seats.reader_of(slot).is_some_and(|reader| reader.marks.has(Marks::SENDING)) {
                return;
            }
            self.waves.sent(&mut self.view, &mut self.seats, slot);
        }
    }

    /// Sends a reader what it is about to get. Whether all that was handed over was taken, and it stays.
    fn hand_over(&mut self, slot: u32, open: &mut Open<'_>) -> bool {
        let now_s = self.moment.up_s as u16;
        if self.seats.resting(slot).is_some() {
            let has_unsent = open.has_unsent();
            if has_unsent {
                open.call_when_sent();
            } else {
                self.undelivered.set(slot, None);
            }
            return !has_unsent;
        }
        let Some(seat) = self.seats.reader_seat(slot) else { return false };
        let form = seat.reader.form;
        if let Some(head) = seat.opening.take() {
            begin(form, head, open);
        } else if open.has_unsent() {
            open.call_when_sent();
            return false;
        }
        self.undelivered.set(slot, LongDelivery::of(&seat.pending));
        let had_pending = !seat.pending.is_nothing();
        while open.has_room()
            && let Some(slice) = seat.pending.next()
        {
            push(form, slice, open);
        }
        if had_pending || open.has_unsent() {
            seat.reader.written_at_s = now_s;
            open.call_when_sent();
            return false;
        }
        if seat.is_leaving {
            open.end();
        }
        !seat.is_leaving
    }

    /// See [`staunch_engine::Handler::body`].
    pub(crate) fn body(&mut self, body: Body<'_>, open: &mut Open<'_>) {
        let address = open.address();
        let Some(slot) = self.seats.seated(address) else { return };
        if open.is_outdated() {
            return self.dismiss(slot, open);
        }
        if self.seats.socket(slot).is_some() {
            return self.socket_body(body, open);
        }
        let Some(Seat::Feed(_, feed)) = self.seats.find(address) else { return };
        let read = feed.read(match body {
            Body::Piece(piece) => Some(piece),
            Body::End => None,
        });
        let (mut is_ahead, client) = (feed.is_ahead(), feed.client);
        if !read.lines.is_empty() || read.fault.is_some() {
            let to = Publisher::Feed(address);
            let publishing = Publishing { lines: read.lines, fault: read.fault, key: None, to, client };
            is_ahead |= self.shared.queue.feed(publishing);
        }
        if is_ahead {
            open.hold();
        }
        self.go_on_with_feed(open);
    }

    fn go_on_with_feed(&mut self, open: &mut Open<'_>) {
        let Some(Seat::Feed(_, feed)) = self.seats.find(open.address()) else { return };
        if !feed.answers.is_empty() && open.has_room() {
            open.push(Piece::Bytes(std::mem::take(&mut feed.answers)));
        }
        if feed.is_done() && feed.answers.is_empty() {
            open.end();
        } else if !feed.is_ahead() && feed.answers.is_empty() {
            open.go_on();
        } else {
            open.hold();
        }
    }
}

/// What every stream begins with: the coding's own beginning, when to come back, and whether something may be
/// left out.
fn begin(form: Form, head: StreamHead, open: &mut Open<'_>) {
    open.keep_little_unsent();
    let of_coding = head.coding.stream_head();
    if !of_coding.is_empty() {
        open.push(Piece::Bytes(of_coding.to_vec()));
    }
    let said = if head.hides_private { LEFT_OUT } else { "" };
    let spread_ms = RETRY_MS_MAX - RETRY_MS_MIN;
    let retry_ms = RETRY_MS_MIN + drawn(open.address(), open.unix_ms()) % spread_ms;
    push(form, form.frame(format!("retry: {retry_ms}\n{said}\n").as_bytes()), open);
}

fn push(form: Form, bytes: std::sync::Arc<[u8]>, open: &mut Open<'_>) {
    let slice = Slice { start: 0, end: bytes.len(), bytes };
    match form.transport() {
        Transport::Chunked => open.push_framed(slice),
        Transport::Plain | Transport::Socket | Transport::Protobuf => open.push(Piece::Shared(slice)),
    };
}

/// By which number patterns are shared out: that of the client's network, or that of its connection where
/// clients are not told apart.
pub(super) fn client_of(request: &Request<'_>, answer: &Answer<'_>) -> u64 {
    match answer.client(request) {
        Some(IpAddr::V4(address)) => 1 << 63 | u64::from(address.to_bits()),
        // A subscriber has at least that much of an address; 2000::/3 is all that is given out.
        Some(IpAddr::V6(address)) => (address.to_bits() >> CLIENT_PREFIX_IPV6) as u64 & (u64::MAX >> 1),
        None => 1 << 62 | 1 << 63 | u64::from(answer.address().slot),
    }
}

/// A number that differs from reader to reader, so that they do not all come back at once.
pub(super) fn drawn(address: Address, unix_ms: u64) -> u64 {
    let mixed = u64::from(address.slot) << 32
        | u64::from(address.generation ^ address.stream.number().unwrap_or(0) << 16);
    let mixed = (mixed ^ unix_ms.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed >> 33
}
