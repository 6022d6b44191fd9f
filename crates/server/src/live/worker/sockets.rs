//! WebSockets once they are open: how they are read, served and closed.
//!
//! It must never send a part of a frame between those of another, nor obey a command while its answer has no
//! room.
//!
//! What is to be sent stands in three places, and goes out in this order: what is said at once (replies,
//! pongs) is pushed where it arises; `Socket::pending` is what a new channel owes; the reader's own `pending`
//! is a delivery of a wave.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use staunch_engine::{Address, Body, Open, Piece, Slice};
use staunch_live::{Interest, Joined, Marks, Shape, Start, Version};
use staunch_protocol::limits::MESSAGE_BYTES_MAX;

use super::super::counts::place;
use super::super::pending::Pending;
use super::super::seat::{JoiningSeat, ReaderSeat, Seat};
use super::super::socket::{Socket, Wait, frame_of};
use super::super::turns::LineClient;
use super::super::undelivered::LongDelivery;
use super::LiveWorker;
use super::reading::drawn;
use crate::limits::{RETRY_MS_MAX, RETRY_MS_MIN};

impl LiveWorker {
    /// A letter came for a WebSocket that waits for one.
    pub(super) fn go_on_with_socket(&mut self, slot: u32) {
        if matches!(self.seats.at(slot), Some(Seat::Joining(_))) {
            let Some(Seat::Joining(seat)) = self.seats.lift(slot) else { return };
            let JoiningSeat { wish, generation, socket, .. } = *seat;
            let Some(socket) = socket else { return };
            let (form, interest) = (wish.form, wish.interest.clone());
            self.join_by_url(slot, generation, wish, socket);
            self.view.waited(&interest, form);
        } else if let Some(client) = self.seats.socket(slot).and_then(Socket::client)
            && matches!(client.waits, Some(Wait::View(_)))
        {
            client.waits = None;
        }
        self.seats.wake(slot);
    }

    /// What a peer sent on a WebSocket.
    pub(super) fn socket_body(&mut self, body: Body<'_>, open: &mut Open<'_>) {
        let Some(slot) = self.seats.seated(open.address()) else { return };
        let Body::Piece(piece) = body else { return open.end() };
        // Frames are unmasked where they stand, and the bytes that were received are not ours to change.
        self.scratch.clear();
        self.scratch.extend_from_slice(piece);
        self.read_socket(slot, open);
        self.serve_socket(slot, open);
    }

    /// Reads what came on a WebSocket, behind what it had no room for.
    fn read_socket(&mut self, slot: u32, open: &mut Open<'_>) {
        let mut output = Vec::new();
        if let Some(socket) = self.seats.socket(slot) {
            socket.take_unread(&mut self.scratch);
            let inflater = self.inflater.get_or_insert_default();
            let is_faulty = socket.read(&mut self.scratch, inflater, &mut output);
            socket.note_half(self.moment.up_s as u16);
            inflater.shrink(MESSAGE_BYTES_MAX);
            let counts = &self.shared.worker_counts[usize::from(self.index)];
            counts.socket_faults.fetch_add(u64::from(is_faulty), Relaxed);
        }
        if !output.is_empty() {
            open.push(Piece::Bytes(output));
        }
    }

    /// Sends a WebSocket what it is about to get, obeys its commands, and closes it if it is to be closed.
    pub(super) fn serve_socket(&mut self, slot: u32, open: &mut Open<'_>) {
        open.keep_little_unsent();
        self.seats.in_hand = Some(slot);
        while self.serve_once(slot, open) {}
        self.seats.in_hand = None;
        self.seats.wakes.drain(..).for_each(|address| open.outbox().wake(address));
        let of_connection = LineClient::of(None, open.address());
        let by = self.client(slot).map_or(of_connection, |client| client.by);
        self.ask_for(by);
        let reader = self.seats.reader_of(slot);
        let reader_bytes = reader.map_or(0, |reader| self.view.held_bytes(reader));
        let Some(socket) = self.seats.socket(slot) else { return };
        open.note_held(socket.held_bytes() + reader_bytes + self.undelivered.note(slot));
        // What came is worked off before more is read, and nothing is read that would be answered while there
        // is no room for that.
        let is_busy = socket.client().is_some_and(|client| client.is_busy());
        if is_busy || !open.has_room() { open.hold() } else { open.go_on() }
    }

    /// Whether there is more to do at once.
    fn serve_once(&mut self, slot: u32, open: &mut Open<'_>) -> bool {
        let Some(socket) = self.seats.socket(slot) else { return false };
        if open.peer_has_ended() {
            open.end();
            return false;
        }
        if let Some(closing) = socket.closing {
            open.push(Piece::Bytes(closing.frame()));
            open.end();
            return false;
        }
        if !open.has_room() {
            return false;
        }
        if socket.has_unread() {
            self.scratch.clear();
            self.read_socket(slot, open);
            return true;
        }
        if socket.is_to_be_asked {
            (socket.is_to_be_asked, socket.is_silent) = (false, true);
            open.push(Piece::Bytes(socket.ask_for_life()));
        }
        if !socket.pending.is_nothing() {
            self.undelivered.set(slot, LongDelivery::of(&socket.pending));
        }
        while open.has_room()
            && let Some(slice) = socket.pending.next()
        {
            push(slice, open);
        }
        if !socket.pending.is_nothing() {
            return false;
        }
        self.serve_reader(slot, open) && self.obey(slot, open)
    }

    /// Sends what a wave has left for the reader of a WebSocket. Whether nothing of it is under way.
    fn serve_reader(&mut self, slot: u32, open: &mut Open<'_>) -> bool {
        loop {
            let epoch = self.view.version().epoch;
            let Some(seat) = self.seats.reader_seat(slot) else { return true };
            if let (Some(_), Some(socket)) = (seat.opening.take(), &seat.socket)
                && seat.reader.form.shape() != Shape::Bare
            {
                let retry_ms =
                    RETRY_MS_MIN + drawn(open.address(), open.unix_ms()) % (RETRY_MS_MAX - RETRY_MS_MIN);
                let language = socket.language();
                let message = language.welcome(Version { epoch, number: socket.begins_at }, retry_ms);
                open.push(Piece::Bytes(frame_of(language.opcode(), &message)));
            }
            if !seat.pending.is_nothing() {
                self.undelivered.set(slot, LongDelivery::of(&seat.pending));
            } else if !open.has_unsent() {
                self.undelivered.set(slot, None);
            }
            while open.has_room()
                && let Some(slice) = seat.pending.next()
            {
                push(slice, open);
            }
            if !seat.reader.marks.has(Marks::SENDING) {
                return true;
            }
            if !seat.pending.is_nothing() || open.has_unsent() {
                open.call_when_sent();
                return false;
            }
            self.waves.sent(&mut self.view, &mut self.seats, slot);
        }
    }

    /// Makes a reader of a WebSocket that was none, from now on. Whether there is room for it.
    pub(super) fn begin_reading(&mut self, slot: u32, interest: (&Arc<Interest>, u64)) -> bool {
        let Some(form) = self.seats.socket(slot).map(|socket| socket.form) else { return false };
        let Some(generation) = self.seats.at(slot).map(|seat| seat.generation()) else { return false };
        let joined = self.view.join(slot, interest, form, Start::Now, Marks::default(), generation);
        let Joined::Reader(reader, _) = joined else { return false };
        let Some(seat) = self.seats.lift(slot) else { return false };
        let (opening, is_leaving, pending) = (None, false, Pending::Nothing);
        let socket = seat.into_socket();
        let seat = ReaderSeat { reader, opening, is_leaving, pending, socket };
        self.seats.put(slot, Seat::Reader(seat));
        true
    }

    /// A WebSocket reads nothing any more.
    pub(super) fn end_reading(&mut self, slot: u32) {
        self.undelivered.set(slot, None);
        self.waves.leave(&mut self.view, &mut self.seats, slot);
        let Some(seat) = self.seats.lift(slot) else { return };
        let generation = seat.generation();
        if let Some(socket) = seat.into_socket() {
            self.seats.put(slot, Seat::Socket(generation, socket));
        }
    }

    /// A WebSocket is gone. Whether it is one.
    pub(super) fn forget_socket(&mut self, slot: u32, address: Address) -> bool {
        let Some(socket) = self.seats.socket(slot) else { return false };
        let form = socket.form;
        let held = socket.client().and_then(|client| client.held.take());
        let awaits_token = socket.client().is_some_and(|client| client.waits == Some(Wait::Token));
        if awaits_token {
            self.shared.tokens.leave(address);
        }
        match self.seats.at(slot) {
            Some(Seat::Reader(_)) => self.waves.leave(&mut self.view, &mut self.seats, slot),
            Some(Seat::Joining(seat)) => self.view.waited(&seat.wish.interest, form),
            _ => {}
        }
        if let Some(channel) = held {
            self.view.waited(&channel, form);
        }
        self.joining.retain(|own| *own != slot);
        self.counts().readers[place(form.transport())].fetch_sub(1, Relaxed);
        true
    }
}

fn push(bytes: Arc<[u8]>, open: &mut Open<'_>) {
    open.push(Piece::Shared(Slice { start: 0, end: bytes.len(), bytes }));
}
