//! What the passing of time brings: signs of life, ends of tokens, farewells.
//!
//! It must never ask the time: the writer tells it, once a second while there are readers.

use std::cmp::Reverse;

use staunch_engine::Address;
use staunch_live::Marks;
use staunch_live::centrifugo::Disconnect;

use super::super::counts::count;
use super::super::mail::LiveTime;
use super::super::pending::Pending;
use super::super::seat::Seat;
use super::super::socket::{Closing, Socket};
use super::LiveWorker;
use crate::limits::{HEARTBEAT_ROUND_S, HEARTBEAT_S};

/// Ends that may stand in the list beside two for each seat: it is not gone through for a few.
const ENDS_SPARE: usize = 64;

impl LiveWorker {
    /// A second has passed: signs of life for a part of the readers, and the end for some if they have to
    /// leave.
    pub(super) fn tick(&mut self, moment: LiveTime) {
        let seconds = moment.up_s.saturating_sub(self.moment.up_s).max(1);
        self.moment = moment;
        // Before signs of life get readers up: those of a second ago rest again.
        self.seats.shrink();
        let slots = self.seats.len();
        let part = slots.div_ceil(HEARTBEAT_ROUND_S as usize).saturating_mul(seconds as usize).min(slots);
        for _ in 0..part {
            self.hand = if self.hand + 1 < slots { self.hand + 1 } else { 0 };
            self.look_after(self.seats.nth(self.hand));
        }
        // Of what many got at once, those that are left have more to bear.
        self.undelivered.outdated().into_iter().for_each(|slot| self.seats.wake(slot));
        self.end_tokens();
        self.end_long_waits();
        if let Some(left_s) = moment.leaving_s {
            self.send_off(left_s);
        }
    }

    /// Watches when the token of an exchange ends. Those that are gone are left out of the list now and then,
    /// so that it is not much longer than there are exchanges.
    pub(super) fn watch_token(&mut self, ends_at_s: u64, address: Address) {
        if ends_at_s == 0 {
            return;
        }
        if self.ends.len() >= 2 * self.seats.len() + ENDS_SPARE {
            let seats = &self.seats;
            self.ends.retain(|Reverse((_, address))| seats.has(*address));
        }
        self.ends.push(Reverse((ends_at_s, address)));
    }

    /// Ends the streams of readers whose tokens have ended. A stream that still waits for its form is asked
    /// again in a second.
    fn end_tokens(&mut self) {
        let mut joining = Vec::new();
        while let Some(&Reverse((ends_at_s, address))) = self.ends.peek() {
            if ends_at_s > self.moment.unix_s {
                break;
            }
            self.ends.pop();
            let Some(seat) = self.seats.find(address) else { continue };
            if let Some(socket) = seat.socket() {
                let renewed_to_s = socket.end_token(self.moment.unix_s);
                self.ends.extend(renewed_to_s.map(|ends_at_s| Reverse((ends_at_s, address))));
            } else if let Seat::Reader(seat) = seat {
                seat.is_leaving = true;
            } else if let Seat::Joining(_) = seat {
                joining.push(Reverse((self.moment.unix_s + 1, address)));
                continue;
            }
            self.seats.number(address).into_iter().for_each(|number| self.seats.wake(number));
        }
        self.ends.extend(joining);
    }

    /// Gives a sign of life to who was quiet for long, or asks for one.
    fn look_after(&mut self, slot: u32) {
        let now_s = self.moment.up_s as u16;
        if self.seats.socket(slot).is_some() {
            return self.ask_socket(slot, now_s);
        }
        let Some(reader) = self.seats.reader_of(slot) else { return };
        let quiet_s = now_s.wrapping_sub(reader.written_at_s);
        if u32::from(quiet_s) < HEARTBEAT_S || reader.marks.has(Marks::SENDING) {
            return;
        }
        let Some(seat) = self.seats.reader_seat(slot) else { return };
        seat.pending = Pending::One(seat.reader.form.heartbeat());
        seat.reader.marks.set(Marks::SENDING);
        self.seats.wake(slot);
        count(&self.counts().heartbeats);
    }

    /// Asks a WebSocket for a sign of life from time to time, whatever else is sent to it; closes one that
    /// gave none since, and a client that never began.
    fn ask_socket(&mut self, slot: u32, now_s: u16) {
        let Some(socket) = self.seats.socket(slot) else { return };
        if socket.is_slow(now_s) {
            socket.close(Closing::SLOW_MESSAGE);
            count(&self.counts().socket_faults);
            return self.seats.wake(slot);
        }
        let since_s = now_s.wrapping_sub(*socket.asked_at_s.get_or_insert(now_s));
        if u32::from(since_s) < HEARTBEAT_S {
            return;
        }
        let is_silent = socket.is_silent || socket.is_to_be_asked;
        let has_begun = socket.client().is_none_or(|client| client.is_connected);
        match (is_silent, has_begun) {
            (true, _) => socket.close(Disconnect::NO_PONG),
            (false, false) => socket.close(Disconnect::STALE),
            (false, true) => (socket.asked_at_s, socket.is_to_be_asked) = (Some(now_s), true),
        }
        let counts = self.counts();
        count(if is_silent || !has_begun { &counts.socket_silences } else { &counts.heartbeats });
        self.seats.wake(slot);
    }

    /// Ends so many streams that all are gone, evenly, in so many seconds.
    fn send_off(&mut self, left_s: u32) {
        let all: Vec<u32> = (0..self.seats.len()).map(|nth| self.seats.nth(nth)).collect();
        let staying: Vec<u32> = all.into_iter().filter(|slot| self.seats.is_staying(*slot)).collect();
        let count = staying.len().div_ceil(left_s.max(1) as usize);
        for slot in staying.into_iter().take(count) {
            match self.seats.at(slot) {
                Some(Seat::Reader(seat)) if seat.socket.is_none() => seat.is_leaving = true,
                Some(seat) => {
                    if let Some(socket) = seat.socket() {
                        socket.close(Closing::GOING_AWAY);
                    }
                }
                None => {}
            }
            self.seats.wake(slot);
        }
    }
}

impl Socket {
    /// An end that is watched has come: the client is closed, unless it has shown a token since whose end is
    /// later; that is given.
    fn end_token(&mut self, now_s: u64) -> Option<u64> {
        let renewed_to_s = match self.client() {
            Some(client) if client.ends_at_s == 0 || client.ends_at_s > now_s => {
                client.watched_at_s = client.ends_at_s;
                client.ends_at_s
            }
            _ => {
                self.close(Disconnect::EXPIRED);
                0
            }
        };
        (renewed_to_s > 0).then_some(renewed_to_s)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use staunch_engine::StreamRef;
    use staunch_live::centrifugo::Language;
    use staunch_live::{Coding, Form, Grants, Interest, Shape, Transport};
    use staunch_protocol::websocket::Opcode;

    use super::*;
    use crate::live::config::LiveConfig;
    use crate::live::events::{Beginning, Wish};
    use crate::live::permit::Rights;
    use crate::live::seat::JoiningSeat;
    use crate::live::shared::LiveShared;
    use crate::live::socket::{CommandClient, Speech, frame_of};
    use crate::live::turns::LineClient;

    fn worker(speech: Speech) -> LiveWorker {
        let config = LiveConfig {
            site: String::new(),
            is_default: true,
            topics_max: 10,
            value_bytes_max: 100,
            memory_bytes: 1000,
            readers_max: 10,
            origins: Vec::new(),
            issuers: Vec::new(),
            quotes_prefix: String::new(),
            cookie: "t".into(),
            echo: true,
            publish_token: None,
            topics: Vec::new(),
            state: None,
            node: None,
        };
        let mut worker = LiveWorker::new(LiveShared::open(config, 0, 1, None, Arc::new(|_| ())).unwrap(), 0);
        worker.seats.put(0, Seat::Socket(0, Box::new(Socket::new(speech, (false, Language::Json), 100))));
        worker
    }

    fn client(is_connected: bool) -> Speech {
        Speech::Commands(Box::new(CommandClient {
            is_connected,
            ..CommandClient::new(Rights::Anonymous, LineClient::Node, 0)
        }))
    }

    /// Lets so many seconds pass, one by one.
    fn pass(worker: &mut LiveWorker, seconds: u32) {
        for _ in 0..seconds {
            let up_s = worker.moment.up_s + 1;
            worker.tick(LiveTime { up_s, unix_s: 1_000_000 + u64::from(up_s), leaving_s: None });
        }
    }

    fn socket(worker: &mut LiveWorker) -> &mut Socket {
        worker.seats.socket(0).unwrap()
    }

    #[test]
    fn a_websocket_is_asked_for_a_sign_of_life_and_closed_without_one() {
        let asks =
            [(client(true), frame_of(Opcode::Text, b"{}")), (Speech::Url, frame_of(Opcode::Ping, b""))];
        for (speech, ask) in asks {
            let mut worker = worker(speech);
            for _ in 0..3 {
                pass(&mut worker, HEARTBEAT_S + 1);
                let socket = socket(&mut worker);
                assert!(socket.is_to_be_asked && socket.closing.is_none());
                assert_eq!(socket.ask_for_life(), ask);
                // The client was asked for a sign of life, and has answered.
                (socket.is_to_be_asked, socket.is_silent) = (false, false);
            }
            socket(&mut worker).is_silent = true;
            pass(&mut worker, HEARTBEAT_S + 1);
            assert_eq!(socket(&mut worker).closing, Some(Disconnect::NO_PONG.into()));
        }
    }

    #[test]
    fn a_client_that_never_begins_is_closed() {
        let mut worker = worker(client(false));
        pass(&mut worker, HEARTBEAT_S);
        assert_eq!(socket(&mut worker).closing, None);
        pass(&mut worker, 1);
        assert_eq!(socket(&mut worker).closing, Some(Disconnect::STALE.into()));
    }

    #[test]
    fn a_token_that_was_renewed_is_watched_to_its_new_end() {
        let mut worker = worker(client(true));
        let address = Address { worker: 0, slot: 0, generation: 0, stream: StreamRef::ONLY };
        worker.ends.push(Reverse((1_000_010, address)));
        let own = socket(&mut worker).client().unwrap();
        (own.ends_at_s, own.watched_at_s) = (1_000_030, 1_000_010);
        pass(&mut worker, 29);
        assert_eq!(socket(&mut worker).closing, None);
        pass(&mut worker, 1);
        assert_eq!(socket(&mut worker).closing, Some(Disconnect::EXPIRED.into()));
    }

    #[test]
    fn a_token_that_ends_while_its_stream_waits_for_a_form_is_watched_on() {
        let mut worker = worker(client(true));
        let (coding, form) = (Coding::Gzip, Form::new(Shape::Bare, Transport::Chunked, Coding::Gzip));
        let interest = Interest::read(["a"], Grants::default(), 1).unwrap();
        let wish = Wish { interest: Arc::new(interest), form, coding, from: Beginning::Now, client: 0 };
        let joining = JoiningSeat { wish, generation: 0, opening: None, is_refused: false, socket: None };
        worker.seats.put(0, Seat::Joining(Box::new(joining)));
        let address = Address { worker: 0, slot: 0, generation: 0, stream: StreamRef::ONLY };
        worker.watch_token(1_000_010, address);
        pass(&mut worker, 20);
        assert_eq!(worker.ends.peek(), Some(&Reverse((1_000_021, address))));
    }

    #[test]
    fn ends_of_those_that_are_gone_are_not_kept() {
        let mut worker = worker(client(true));
        let address = |generation| Address { worker: 0, slot: 0, generation, stream: StreamRef::ONLY };
        // The first one stays; the others come and go.
        worker.watch_token(2_000_000, address(0));
        (1..10_000).for_each(|generation| worker.watch_token(2_000_000, address(generation)));
        assert!(worker.ends.len() <= 2 * worker.seats.len() + ENDS_SPARE + 1);
        assert!(worker.ends.iter().any(|Reverse((_, watched))| *watched == address(0)));
    }

    #[test]
    fn a_clock_that_is_set_back_ends_no_token_early_and_none_twice() {
        let mut worker = worker(client(true));
        let address = Address { worker: 0, slot: 0, generation: 0, stream: StreamRef::ONLY };
        worker.watch_token(1_000_010, address);
        let own = socket(&mut worker).client().unwrap();
        (own.ends_at_s, own.watched_at_s) = (1_000_010, 1_000_010);
        let mut tick = |up_s, unix_s| {
            worker.tick(LiveTime { up_s, unix_s, leaving_s: None });
            socket(&mut worker).closing
        };
        assert_eq!(tick(1, 1_000_009), None);
        assert_eq!(tick(2, 999_000), None, "the clock was set back: `exp` is later than now");
        assert_eq!(tick(3, 1_000_009), None);
        assert_eq!(tick(4, 1_000_010), Some(Disconnect::EXPIRED.into()));
        assert_eq!(tick(5, 999_000), Some(Disconnect::EXPIRED.into()), "what has ended has ended");
        assert!(worker.ends.is_empty());
    }
}
