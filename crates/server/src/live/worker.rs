//! One worker's part of live data: its view, its readers, and its answers.
//!
//! It owns the view and whose turn it is. It must never wait, nor compress or format anything for a reader
//! but its first line.
//!
//! A delivery goes so: a wave leaves slices at a seat and wakes the exchange; `ready` pushes them; when the
//! kernel has taken them `ready` is called again, and the reader is looked at once more.

mod answering;
mod polling;
mod reading;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use staunch_engine::{Address, Answer, Answered, Ended, Finished, Outbox};
use staunch_live::limits::{GROUPS_MAX, TOKEN_BYTES_MAX};
use staunch_live::{Marks, View, Waves};
use staunch_protocol::Method;
use staunch_protocol::http1::Request;

use super::counts::{WorkerCounts, count, place};
use super::document::Documents;
use super::mail::{LiveMail, LiveTime};
use super::permit::{self, Rights};
use super::quotes::Quotes;
use super::reply;
use super::route::Endpoint;
use super::seat::{Pending, Seat, Seats};
use super::shared::LiveShared;
use super::waiting::Waiting;
use crate::limits::{HEARTBEAT_ROUND_S, HEARTBEAT_S, WAVE_READERS_MAX};
use crate::shared::Mail;

/// See the module's text.
pub(crate) struct LiveWorker {
    shared: Arc<LiveShared>,
    index: u16,
    view: View,
    waves: Waves,
    seats: Seats,
    documents: Documents,
    moment: LiveTime,
    /// Requests that wait until the view has come as far as the writer had when they came.
    behind: Vec<Address>,
    /// Slots that wait for a form.
    joining: Vec<u32>,
    /// Mail of its own is under way, after which it goes on.
    is_going_on: bool,
    /// Where the hand stands that gives signs of life.
    hand: usize,
    quotes: Quotes,
    waiting: Waiting,
    /// When readers' tokens end, with their exchanges.
    ends: BinaryHeap<Reverse<(u64, Address)>>,
}

/// What is known of who asks.
pub(super) enum Asker {
    /// What the request may do.
    Known(Rights),
    /// It is told by mail.
    Unknown,
    /// Too many tokens wait to be checked.
    TooMany,
}

impl LiveWorker {
    pub(crate) fn new(shared: Arc<LiveShared>, index: u16) -> Self {
        let quotes_prefix = shared.config.quotes_prefix.clone();
        let mut view = View::new(shared.epoch, GROUPS_MAX);
        view.read(&shared.introduction);
        let mut worker = Self {
            shared,
            index,
            view,
            waves: Waves::new(),
            seats: Seats::new(index),
            documents: Documents::default(),
            moment: LiveTime::default(),
            behind: Vec::new(),
            joining: Vec::new(),
            is_going_on: false,
            hand: 0,
            quotes: Quotes::new(&quotes_prefix),
            waiting: Waiting::new(),
            ends: BinaryHeap::new(),
        };
        worker.ask();
        worker
    }

    /// Whether an exchange is one of live data.
    #[inline]
    pub(crate) fn has(&self, address: Address) -> bool {
        self.seats.has(address)
    }

    /// See [`staunch_engine::Handler::handle`].
    #[inline(never)]
    pub(crate) fn handle(
        &mut self,
        endpoint: Endpoint<'_>,
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        let rights = match self.asker(request, &answer) {
            Asker::Known(rights) => rights,
            Asker::Unknown => return answer.later(),
            Asker::TooMany => return reply::come_back("too many tokens wait to be checked", answer),
        };
        self.handle_with(&rights, endpoint, request, answer)
    }

    /// Handles a request of which is known what it may do.
    pub(super) fn handle_with(
        &mut self,
        rights: &Rights,
        endpoint: Endpoint<'_>,
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        let lines = reply::sharing(&self.shared.config.origins, request);
        match (endpoint, request.method) {
            (_, Method::Options) => reply::options(endpoint.allow(), &lines, answer),
            (Endpoint::Events, Method::Get | Method::Head) => self.subscribe(rights, &lines, request, answer),
            (Endpoint::Mercure, Method::Get | Method::Head) => {
                self.subscribe(rights, &lines, request, answer)
            }
            (Endpoint::Value(name), Method::Get | Method::Head) => {
                self.poll(rights, name, &lines, request, answer)
            }
            (Endpoint::List(list), Method::Get | Method::Head) => self.list(list, &lines, answer),
            (Endpoint::Quotes, Method::Get | Method::Head) => self.quotes(&lines, request, answer),
            (Endpoint::Publish | Endpoint::Mercure, Method::Post) => {
                self.publish(rights, &lines, request, answer)
            }
            (Endpoint::Topic(_), Method::Put | Method::Patch | Method::Delete) => {
                self.change(rights, &lines, request, answer)
            }
            _ => reply::method(endpoint.allow(), &lines, answer),
        }
    }

    /// See [`staunch_engine::Handler::mail`].
    pub(crate) fn mail(&mut self, mail: LiveMail, outbox: &Outbox) {
        match mail {
            LiveMail::News(letter) => {
                self.view.read(&letter);
                self.end_waiting(&letter);
                self.join_again();
                self.go_on_with_those_behind();
                self.wave();
            }
            LiveMail::Tick(moment) => self.tick(moment),
            LiveMail::Fed(address, outcomes) => {
                if let Some(Seat::Feed(_, feed)) = self.seats.find(address) {
                    feed.hear(&outcomes);
                    if let Some(number) = self.seats.number(address) {
                        self.seats.wake(number);
                    }
                }
            }
            LiveMail::Coded(coded) => self.documents.take(&coded),
            LiveMail::GoOn => {
                self.is_going_on = false;
                self.wave();
            }
            // For requests that wait, which are gone.
            LiveMail::Published(_) | LiveMail::Checked(_) | LiveMail::WaitedLong | LiveMail::Again => {}
        }
        self.ask();
        self.seats.wakes.drain(..).for_each(|address| outbox.wake(address));
    }

    /// See [`staunch_engine::Handler::finished`].
    pub(crate) fn finished(&mut self, finished: &Finished<'_>) {
        let Some(slot) = self.seats.number(finished.address) else { return };
        if finished.why == Ended::Overrun {
            count(&self.counts().slow);
        }
        match self.seats.at(slot) {
            Some(Seat::Reader(seat)) => {
                let transport = seat.reader.form.transport();
                self.waves.leave(&mut self.view, &mut self.seats, slot);
                self.counts().readers[place(transport)].fetch_sub(1, Relaxed);
            }
            Some(Seat::Joining(seat)) => {
                let form = seat.wish.form;
                if !seat.is_refused {
                    self.view.waited(form);
                    self.counts().readers[place(form.transport())].fetch_sub(1, Relaxed);
                }
                self.joining.retain(|own| *own != slot);
            }
            Some(Seat::Feed(..)) | None => {}
        }
        self.seats.take(slot);
        self.ask();
        if !self.seats.wakes.is_empty() {
            self.go_on_later();
        }
    }

    /// What a request may do, if that is known at once.
    fn asker(&self, request: &Request<'_>, answer: &Answer<'_>) -> Asker {
        let config = &self.shared.config;
        let Some(token) = permit::shown(request, &config.cookie, &config.origins) else {
            return Asker::Known(Rights::Anonymous);
        };
        if config.publish_token.as_ref().is_some_and(|own| permit::is_same(token, own)) {
            return Asker::Known(Rights::Everything);
        }
        let tokens = &self.shared.tokens;
        if !tokens.has_issuers() || token.len() > TOKEN_BYTES_MAX {
            return Asker::Known(Rights::Invalid);
        }
        let now_s = answer.unix_ms() / 1000;
        match tokens.find(token, now_s) {
            Some(granted) => Asker::Known(Rights::Granted(granted)),
            None if tokens.ask(token, now_s, answer.address()) => Asker::Unknown,
            None => Asker::TooMany,
        }
    }

    fn counts(&self) -> &WorkerCounts {
        &self.shared.worker_counts[usize::from(self.index)]
    }

    /// Serves readers, for a while; if there is more to do it goes on after everything else.
    fn wave(&mut self) {
        if self.waves.go(&mut self.view, &mut self.seats, WAVE_READERS_MAX) {
            self.go_on_later();
        }
        let counts = self.counts();
        counts.deliveries.store(self.waves.deliveries(), Relaxed);
        counts.passed_by.store(self.waves.passed_by(), Relaxed);
        counts.unknown_versions.store(self.view.unknown_versions(), Relaxed);
    }

    fn go_on_later(&mut self) {
        if let Some(post) = self.shared.post().filter(|_| !self.is_going_on) {
            self.is_going_on = true;
            post.send_to_worker(self.index, Mail::of_live(LiveMail::GoOn));
        }
    }

    /// Hands to the writer what the view asks of it.
    fn ask(&mut self) {
        let requests = self.view.take_requests();
        if !requests.is_empty() {
            self.shared.queue.ask(self.index, requests);
        }
    }

    /// The view has moved: those who waited for that are asked again.
    fn go_on_with_those_behind(&mut self) {
        if self.is_behind() {
            return;
        }
        if let Some(post) = self.shared.post() {
            self.behind.drain(..).for_each(|address| post.send(address, Mail::of_live(LiveMail::Again)));
        }
    }

    /// Whether publishers were told of updates that have not come here yet.
    fn is_behind(&self) -> bool {
        self.view.version().number < self.shared.posted.load(Relaxed)
    }

    /// A second has passed: signs of life for a part of the readers, and the end for some if they have to
    /// leave.
    fn tick(&mut self, moment: LiveTime) {
        let seconds = moment.up_s.saturating_sub(self.moment.up_s).max(1);
        self.moment = moment;
        let slots = self.seats.len();
        let part = slots.div_ceil(HEARTBEAT_ROUND_S as usize).saturating_mul(seconds as usize).min(slots);
        for _ in 0..part {
            self.hand = if self.hand + 1 < slots { self.hand + 1 } else { 0 };
            self.give_sign_of_life(self.seats.nth(self.hand));
        }
        self.end_tokens();
        self.end_long_waits();
        if let Some(left_s) = moment.leaving_s {
            self.send_off(left_s);
        }
    }

    /// Ends the streams of readers whose tokens have ended.
    fn end_tokens(&mut self) {
        while let Some(&Reverse((ends_at_s, address))) = self.ends.peek() {
            if ends_at_s > self.moment.unix_s {
                return;
            }
            self.ends.pop();
            if let Some(Seat::Reader(seat)) = self.seats.find(address) {
                seat.is_leaving = true;
                self.seats.number(address).into_iter().for_each(|number| self.seats.wake(number));
            }
        }
    }

    fn give_sign_of_life(&mut self, slot: u32) {
        let now_s = self.moment.up_s as u16;
        let Some(seat) = self.seats.reader_seat(slot) else { return };
        let quiet_s = now_s.wrapping_sub(seat.reader.written_at_s);
        if u32::from(quiet_s) < HEARTBEAT_S || seat.reader.marks.has(Marks::SENDING) {
            return;
        }
        seat.pending = Pending::One(seat.reader.form.heartbeat());
        seat.reader.marks.set(Marks::SENDING);
        self.seats.wake(slot);
        count(&self.counts().heartbeats);
    }

    /// Ends so many streams that all are gone, evenly, in so many seconds.
    fn send_off(&mut self, left_s: u32) {
        let stays = |seat: &Seat| matches!(seat, Seat::Reader(seat) if !seat.is_leaving);
        let all: Vec<u32> = (0..self.seats.len()).map(|nth| self.seats.nth(nth)).collect();
        let staying: Vec<u32> =
            all.into_iter().filter(|slot| self.seats.at(*slot).is_some_and(|s| stays(s))).collect();
        let count = staying.len().div_ceil(left_s.max(1) as usize);
        for slot in staying.into_iter().take(count) {
            if let Some(seat) = self.seats.reader_seat(slot) {
                seat.is_leaving = true;
                self.seats.wake(slot);
            }
        }
    }
}
