//! A worker's part of the live data of a site: its view, its readers, and its answers.
//!
//! It owns the view and whose turn it is. It must never wait, nor compress or format anything for a reader
//! but its first line.
//!
//! A delivery goes so: a wave leaves slices at a seat and wakes the exchange; `ready` pushes them; when the
//! kernel has taken them `ready` is called again, and the reader is looked at once more.

mod answering;
mod channels;
mod clock;
mod commands;
mod opening;
mod polling;
mod reading;
mod sockets;
mod values;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use staunch_engine::{Address, Answer, Answered, Ended, Finished, Outbox};
use staunch_live::limits::{GROUPS_MAX, TOKEN_BYTES_MAX};
use staunch_live::token::TokenFault;
use staunch_live::{View, Waves};
use staunch_protocol::websocket::Inflater;
use staunch_protocol::{Method, Request};

use super::counts::{WorkerCounts, count, place};
use super::differing::Differing;
use super::document::Documents;
use super::mail::{LiveMail, LiveTime};
use super::permit::{self, Rights};
use super::quotes::Quotes;
use super::reply;
use super::route::Endpoint;
use super::seat::Seat;
use super::seats::Seats;
use super::shared::LiveShared;
use super::socket::Heard;
use super::tokens::Verdict;
use super::turns::LineClient;
use super::undelivered::Undelivered;
use super::waiting::Waiting;
use crate::limits::WAVE_READERS_MAX;
use crate::mail::Mail;

/// A worker's part of the live data of a site.
pub(crate) struct LiveWorker {
    shared: Arc<LiveShared>,
    index: u16,
    view: View,
    waves: Waves,
    seats: Seats,
    undelivered: Undelivered,
    documents: Documents,
    differing: Differing,
    moment: LiveTime,
    /// Requests that wait until the view has come as far as the writer had when they came.
    behind: Vec<Address>,
    /// Slots that wait for a form, or for another reason for the next letter.
    joining: Vec<u32>,
    /// Slots that wait for patterns to be compared with topics, each until a turn of the view.
    comparing: VecDeque<(u64, u32)>,
    /// Mail of its own is under way, after which it goes on.
    is_going_on: bool,
    /// Where the hand stands that gives signs of life.
    hand: usize,
    quotes: Quotes,
    waiting: Waiting,
    /// When readers' tokens end, with their exchanges.
    ends: BinaryHeap<Reverse<(u64, Address)>>,
    /// For what comes compressed by WebSockets, once there is one.
    inflater: Option<Inflater>,
    /// What came last by a WebSocket, to be unmasked.
    scratch: Vec<u8>,
}

/// What is known of who asks.
pub(super) enum Asker {
    /// What the request may do.
    Known(Rights),
    /// Its token held once, and does not any more.
    Over,
    /// The rights are not known yet; the answer comes by mail.
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
            undelivered: Undelivered::default(),
            documents: Documents::default(),
            differing: Differing::new(),
            moment: LiveTime::default(),
            behind: Vec::new(),
            joining: Vec::new(),
            comparing: VecDeque::new(),
            is_going_on: false,
            hand: 0,
            quotes: Quotes::new(&quotes_prefix),
            waiting: Waiting::new(),
            ends: BinaryHeap::new(),
            inflater: None,
            scratch: Vec::new(),
        };
        worker.ask();
        worker
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
            Asker::Over => Rights::Invalid,
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
            (Endpoint::Events | Endpoint::Mercure, Method::Get | Method::Head) => {
                self.subscribe(rights, endpoint, &lines, request, answer)
            }
            (Endpoint::Value(name), Method::Get | Method::Head) => {
                self.poll(rights, name, &lines, request, answer)
            }
            (Endpoint::List(list), Method::Get | Method::Head) => self.list(list, &lines, answer),
            (Endpoint::Quotes, Method::Get | Method::Head) => self.quotes(&lines, request, answer),
            (Endpoint::Publish | Endpoint::Mercure, Method::Post)
            | (Endpoint::Topic(_), Method::Put | Method::Patch | Method::Delete) => {
                self.publish(rights, endpoint, &lines, request, answer)
            }
            (Endpoint::Socket(kind), _) => self.open_socket(rights, kind, &lines, request, answer),
            (Endpoint::Script, Method::Get | Method::Head) => {
                self.shared.script.answer(&lines, request, answer)
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
                self.join_compared();
                self.go_on_with_those_behind();
                self.wave();
            }
            LiveMail::Tick(moment) => self.tick(moment),
            LiveMail::Fed(address, outcomes) => match self.seats.find(address) {
                Some(Seat::Feed(_, feed)) => {
                    feed.hear(&outcomes);
                    if let Some(number) = self.seats.number(address) {
                        self.seats.wake(number);
                    }
                }
                Some(_) => {
                    if let Some(number) = self.seats.number(address) {
                        self.tell_published(number, &outcomes);
                    }
                }
                None => {}
            },
            LiveMail::Checked(address, verdict) => {
                if let Some(number) = self.seats.seated(address) {
                    self.tell_socket(number, Heard::Token(verdict));
                }
            }
            LiveMail::Coded(coded) => self.take_coded(&coded),
            LiveMail::GoOn => {
                self.is_going_on = false;
                self.view.step();
                self.join_compared();
                self.wave();
            }
            // For requests that wait, which are gone.
            LiveMail::Published(..) | LiveMail::WaitedLong | LiveMail::Again | LiveMail::Differed => {}
        }
        self.ask();
        self.seats.wakes.drain(..).for_each(|address| outbox.wake(address));
    }

    /// See [`staunch_engine::Handler::finished`].
    pub(crate) fn finished(&mut self, finished: &Finished<'_>) {
        let Some(slot) = self.seats.seated(finished.address) else { return };
        if finished.why == Ended::Overrun {
            count(&self.counts().slow);
        }
        if !self.forget_socket(slot, finished.address) {
            self.forget_reader(slot);
        }
        self.seats.take(slot);
        self.undelivered.set(slot, None);
        self.ask();
        if !self.seats.wakes.is_empty() {
            self.go_on_later();
        }
    }

    /// What reads on a slot, other than a WebSocket, is gone.
    fn forget_reader(&mut self, slot: u32) {
        match self.seats.at(slot) {
            Some(Seat::Reader(seat)) => {
                let transport = seat.reader.form.transport();
                self.waves.leave(&mut self.view, &mut self.seats, slot);
                self.counts().readers[place(transport)].fetch_sub(1, Relaxed);
            }
            Some(Seat::Joining(seat)) => {
                let form = seat.wish.form;
                if !seat.is_refused {
                    self.view.waited(&seat.wish.interest, form);
                    self.counts().readers[place(form.transport())].fetch_sub(1, Relaxed);
                }
                self.joining.retain(|own| *own != slot);
            }
            Some(Seat::Feed(..) | Seat::Socket(..)) | None => {}
        }
    }

    /// What a request may do, if that is known at once.
    fn asker(&self, request: &Request<'_>, answer: &Answer<'_>) -> Asker {
        let config = &self.shared.config;
        let Some(token) = permit::shown(request, answer.is_secured(), &config.cookie, &config.origins) else {
            return Asker::Known(Rights::Anonymous);
        };
        let client = LineClient::of(answer.client(request), answer.address());
        self.asker_of(token, answer.unix_ms() / 1000, client, answer.address())
    }

    /// What who shows a token may do, if that is known at once.
    fn asker_of(&self, token: &[u8], now_s: u64, client: LineClient, address: Address) -> Asker {
        let own = self.shared.config.publish_token.as_ref();
        if own.is_some_and(|own| permit::is_same(token, own)) {
            return Asker::Known(Rights::Everything);
        }
        let tokens = &self.shared.tokens;
        if !tokens.has_issuers() || token.len() > TOKEN_BYTES_MAX {
            tokens.count(tokens.has_issuers().then_some(TokenFault::Form));
            return Asker::Known(Rights::Invalid);
        }
        match tokens.find(token, now_s) {
            Some(Verdict::Good(granted)) => Asker::Known(Rights::Granted(granted)),
            Some(Verdict::Bad) => Asker::Known(Rights::Invalid),
            Some(Verdict::Over) => Asker::Over,
            None if tokens.ask(token, now_s, client, address) => Asker::Unknown,
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
            self.shared.tell_worker(post, self.index, LiveMail::GoOn);
        }
    }

    /// Hands to the writer what the view asks of it for all readers together.
    fn ask(&mut self) {
        self.ask_for(LineClient::Worker(self.index));
    }

    /// Hands to the writer what the view asks of it for a client, and to readers what is in their account
    /// from now on.
    fn ask_for(&mut self, client: LineClient) {
        let recharged = self.view.take_recharged();
        if self.view.has_work() || !recharged.is_empty() {
            self.go_on_later();
        }
        recharged.into_iter().for_each(|slot| self.seats.wake(slot));
        let requests = self.view.take_requests();
        if !requests.is_empty() {
            self.shared.queue.ask(self.index, client, requests);
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
}
