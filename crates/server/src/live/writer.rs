//! The thread that is the one writer of live data.
//!
//! It takes what waits, gives it to the hub, posts one letter to each worker for all of it, and then answers
//! the publishers: who was answered finds the update at every worker. What readers want made it makes piece
//! by piece, so that publications soon have a turn again. It is also the clock of readers: once a second, and
//! only while there are any. It must never wait for a worker but by not taking publications.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use staunch_engine::Post;
use staunch_live::{Accepted, Hub, IdempotencyKeys, KeyUse, Letter, Publication};

use super::config::LiveError;
use super::hands::Hand;
use super::keeping::Keeping;
use super::mail::{Became, BodyOutcome, CodedValue, LineOutcome, LiveMail, LiveTime, NotTaken};
use super::queue::{CodingWish, Publisher, Publishing};
use super::shared::LiveShared;
use super::value_coding::ValueCoding;
use crate::content::encode::encode_quickly;
use crate::limits::WRITER_MADE_BYTES;
use crate::mail::Mail;

/// How long the time of topics is not looked at, at most, in milliseconds.
const LOOK_MS_MAX: u64 = 1_000;
/// What making anything counts at least, in bytes.
const MADE_BYTES_MIN: usize = 1024;

/// The writer of a site's live data: its hub, and what stands around it.
pub(crate) struct Writer {
    hub: Hub,
    keeping: Option<Keeping>,
    keys: IdempotencyKeys<BodyOutcome>,
    shared: Arc<LiveShared>,
    post: Post<Mail>,
    started: Instant,
    /// When held back updates and outdated topics are looked at next.
    look_ms: Option<u64>,
    /// The last second that workers were told of.
    told_s: u32,
    /// Until when readers are to be gone, in seconds since the start.
    leaving_until_s: Option<u32>,
}

impl LiveShared {
    /// Starts the writer's thread, and the one that checks tokens. To be called once.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(self: &Arc<Self>, post: &Post<Mail>) -> Result<(), LiveError> {
        let taken = self.hub.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((hub, keeping)) = taken else { return Ok(()) };
        // The cell is empty: the hub was there, so this is the first call.
        let _ = self.post.set(post.clone());
        let writer = Writer::new(hub, keeping, Arc::clone(self), post.clone());
        let spawned = std::thread::Builder::new().name("live writer".into()).spawn(move || writer.run());
        let thread = spawned.map_err(LiveError::Thread)?;
        *self.writer.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        if !self.tokens.has_issuers() {
            return Ok(());
        }
        let (shared, post) = (Arc::clone(self), post.clone());
        let check = move || {
            shared.tokens.run(|address, verdict| {
                post.send(address, Mail::of_live(LiveMail::Checked(address, verdict)));
            });
        };
        let spawned = std::thread::Builder::new().name("live tokens".into()).spawn(check);
        spawned.map(drop).map_err(LiveError::Thread)
    }
}

impl Writer {
    fn new(hub: Hub, keeping: Option<Keeping>, shared: Arc<LiveShared>, post: Post<Mail>) -> Self {
        // tidy: allow(clock): the writer is a thread of its own, and the clock of live data.
        let started = Instant::now();
        let (keys, look_ms) = (IdempotencyKeys::default(), shared.config.is_timed().then_some(0));
        Self { hub, keeping, keys, shared, post, started, look_ms, told_s: 0, leaving_until_s: None }
    }

    /// Works until it is told to end.
    pub(crate) fn run(mut self) {
        loop {
            let is_held_back = self.hub.is_held_back();
            self.shared.writer_counts.waits.fetch_add(u64::from(is_held_back), Relaxed);
            let takes = !is_held_back && !self.is_lent();
            let work = self.shared.queue.wait(self.patience(), takes);
            let (now_ms, hand) = (self.now_ms(), self.shared.hands.get());
            if work.is_over {
                return self.end(now_ms, hand);
            }
            self.tell_time_of_day();
            self.look_at_store(now_ms);
            for (worker, told) in work.told {
                told.into_requests().for_each(|request| self.hub.request(usize::from(worker), request));
            }
            let mut answers = Vec::new();
            for publishing in work.publishings {
                let to = publishing.to;
                answers.push((to, self.publish(publishing, now_ms)));
            }
            self.look(now_ms);
            if hand == Hand::Lent && self.refusal().is_none() {
                self.publish_held_back(now_ms);
            }
            self.make_forms();
            let refusal = self.keep(now_ms);
            for (to, mut became) in answers {
                refusal.iter().for_each(|refusal| became.refuse(refusal));
                self.answer(to, became);
            }
            // After the answers, so that publishers hear of what was numbered.
            self.give_away(hand);
            if work.is_introduction_wanted {
                self.shared.follower.introduce(self.shared.number, &self.hub.introduction());
            }
            self.have_forms_asked_for();
            self.make_codings();
            self.tick((now_ms / 1000) as u32);
        }
    }

    /// Updates that other nodes hear of are stamped with the time of day.
    fn tell_time_of_day(&mut self) {
        if self.shared.config.node.is_some() {
            // tidy: allow(clock): the writer is the clock of live data.
            let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            self.hub.set_wall_ms(u64::try_from(wall.as_millis()).unwrap_or(u64::MAX));
        }
    }

    fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    /// How long it may sleep: for ever, unless topics are timed or readers need a clock.
    fn patience(&self) -> Option<Duration> {
        let readers = self.shared.worker_counts.iter().map(|counts| counts.all_readers()).sum::<u64>();
        let tick_ms = (readers > 0).then(|| u64::from(self.told_s + 1) * 1000);
        let keeping = self.keeping.as_ref().filter(|_| self.shared.hands.get() == Hand::Own);
        let keep_ms = keeping.and_then(Keeping::next_ms);
        let next_ms = self.look_ms.into_iter().chain(tick_ms).chain(keep_ms).min()?;
        Some(Duration::from_millis(next_ms.saturating_sub(self.now_ms()).max(1)))
    }

    fn publish(&mut self, publishing: Publishing, now_ms: u64) -> Became {
        let Publishing { lines, fault, key, .. } = publishing;
        if let Some(refusal) = self.refusal() {
            let refused = |(line, _)| LineOutcome { line, became: Err(refusal.clone()) };
            return Became::Lines(lines.into_iter().map(refused).chain(fault).collect(), None);
        }
        // Where nothing is to be published there is nothing to repeat.
        let key = key.filter(|_| !lines.is_empty());
        if let Some((key, digest)) = &key {
            let refused =
                |status, sentence: &str| Became::Body(BodyOutcome::refused(NotTaken::new(status, sentence)));
            match self.keys.look_up(key, *digest, now_ms) {
                KeyUse::New => {}
                KeyUse::Repeated(became) => return Became::Body(became),
                KeyUse::Other => {
                    return refused(422, "`Idempotency-Key` was used for another request before");
                }
                KeyUse::Faulty => return refused(400, "`Idempotency-Key` has 1 to 256 bytes"),
            }
        }
        let id = lines.first().and_then(|(_, publication)| publication.id.clone());
        let mut outcomes: Vec<LineOutcome> = Vec::with_capacity(lines.len() + 1);
        for (line, publication) in lines {
            outcomes.push(LineOutcome { line, became: self.number(publication, now_ms) });
        }
        outcomes.extend(fault);
        if let Some((key, digest)) = key {
            let became = BodyOutcome { id: id.clone(), ..BodyOutcome::of(&outcomes) };
            // A body of which nothing was taken may be sent again.
            if became.published > 0 {
                self.keys.remember(&key, digest, became, now_ms);
            }
        }
        Became::Lines(outcomes, id)
    }

    fn number(&mut self, publication: Publication, now_ms: u64) -> Result<Accepted, NotTaken> {
        let accepted = self.hub.publish(publication, now_ms);
        let counts = &self.shared.writer_counts;
        match accepted {
            Ok(accepted) => {
                counts.published.fetch_add(u64::from(accepted.version.is_some()), Relaxed);
                if accepted.version.is_none() {
                    self.look_ms = Some(now_ms);
                }
                Ok(accepted)
            }
            Err(fault) => {
                counts.refused.fetch_add(1, Relaxed);
                Err(NotTaken::new(fault.status(), fault.to_string()))
            }
        }
    }

    /// Whether publications wait in the queue: it is not known who will serve, or the store was taken back
    /// and is not open yet.
    fn is_lent(&self) -> bool {
        match self.shared.hands.get() {
            Hand::Lent | Hand::Awaited => true,
            Hand::Own => self.keeping.as_ref().is_some_and(Keeping::is_released),
            Hand::Gone => false,
        }
    }

    /// Why publications are refused now; none if they may be numbered.
    fn refusal(&self) -> Option<NotTaken> {
        if self.shared.hands.get() == Hand::Gone {
            return Some(NotTaken::new(503, "another process serves now"));
        }
        self.keeping.as_ref().and_then(Keeping::refusal)
    }

    /// Syncs the store, or opens it again, if it is time to and the store is this process's.
    fn look_at_store(&mut self, now_ms: u64) {
        let Some(keeping) = self.keeping.as_mut().filter(|_| self.shared.hands.get() == Hand::Own) else {
            return;
        };
        let letter = keeping.look(&self.hub, now_ms);
        keeping.looked(now_ms, self.started.elapsed().as_millis() as u64);
        letter.into_iter().for_each(|letter| self.tell_workers(letter));
    }

    /// The last turn: what is held back is published, for nobody could later, and the store is released.
    fn end(&mut self, now_ms: u64, hand: Hand) {
        if hand == Hand::Own && !self.is_lent() && self.refusal().is_none() {
            self.publish_held_back(now_ms);
            // A failure was logged.
            let _ = self.keep(now_ms);
        }
        self.keeping.iter_mut().for_each(Keeping::release);
    }

    /// Publishes what `every` holds back before its time.
    fn publish_held_back(&mut self, now_ms: u64) {
        let before = self.hub.version().number;
        self.hub.publish_held_back(now_ms);
        self.shared.writer_counts.published.fetch_add(self.hub.version().number - before, Relaxed);
    }

    /// Gives what is held to a new process that wants it: releases the store, or tells all without one.
    fn give_away(&mut self, hand: Hand) {
        if matches!(hand, Hand::Own | Hand::Awaited) {
            return;
        }
        self.keeping.iter_mut().for_each(Keeping::release);
        if let Some(wanted) = self.shared.hands.take_wanted() {
            // An error here is a new process that is gone.
            let _ = wanted.send((self.shared.site().to_owned(), self.hub.introduction()));
        }
    }

    /// Writes the hub's letter to the store, then sends it to the workers. If the write fails the workers get
    /// nothing, and the refusal for its publishers is given.
    fn keep(&mut self, now_ms: u64) -> Option<NotTaken> {
        let letter = self.hub.take_letter()?;
        let posted = self.shared.posted.load(Relaxed);
        let told = match &mut self.keeping {
            Some(keeping) => keeping.keep(letter, posted, now_ms),
            None => Some(letter),
        };
        match told {
            Some(letter) => {
                self.tell_workers(letter);
                None
            }
            None => self.refusal(),
        }
    }

    /// Publishes what was held back until now, and forgets topics whose time is over.
    fn look(&mut self, now_ms: u64) {
        if self.look_ms.is_some_and(|look_ms| look_ms <= now_ms) {
            if self.is_lent() || self.refusal().is_some() {
                self.look_ms = Some(now_ms + LOOK_MS_MAX);
                return;
            }
            let before = self.hub.version().number;
            let next_ms = self.hub.tick(now_ms).unwrap_or(u64::MAX);
            let numbered = self.hub.version().number - before;
            self.shared.writer_counts.published.fetch_add(numbered, Relaxed);
            self.look_ms = Some(next_ms.clamp(now_ms + 1, now_ms + LOOK_MS_MAX));
        }
    }

    fn tell_workers(&mut self, letter: Letter) {
        self.shared.posted.store(letter.number, Relaxed);
        for worker in 0..self.post.workers() {
            self.shared.tell_worker(&self.post, worker, LiveMail::News(letter.clone()));
        }
        self.shared.follower.hear(self.shared.number, &letter);
        let counts = &self.shared.writer_counts;
        counts.memory_bytes.store(self.hub.memory_bytes() as u64, Relaxed);
        counts.topics.store(self.hub.topics() as u64, Relaxed);
        counts.compressions.store(self.hub.compressions(), Relaxed);
    }

    fn answer(&self, to: Publisher, became: Became) {
        match (to, became) {
            (Publisher::Request(address, form), Became::Lines(outcomes, id)) => {
                let outcome = BodyOutcome { id, ..BodyOutcome::of(&outcomes) };
                self.post.send(address, Mail::of_live(LiveMail::Published(outcome, form)));
            }
            (Publisher::Request(address, form), Became::Body(outcome)) => {
                self.post.send(address, Mail::of_live(LiveMail::Published(outcome, form)));
            }
            (Publisher::Feed(address), Became::Lines(outcomes, _)) => {
                self.post.send(address, Mail::of_live(LiveMail::Fed(address, outcomes)));
            }
            // Only requests have keys.
            (Publisher::Feed(_), Became::Body(_)) => debug_assert!(false, "a feed with a key"),
            (Publisher::Node, _) => {}
        }
    }

    /// Makes forms that readers wait for, as many as a turn has room for: those of one delivery at least.
    fn make_forms(&mut self) {
        let mut left_bytes = WRITER_MADE_BYTES;
        while left_bytes > 0
            && let Some(wanted) = self.shared.queue.next_forms()
        {
            left_bytes = left_bytes.saturating_sub(self.hub.make(&wanted).max(MADE_BYTES_MIN));
        }
    }

    /// Workers of which forms were left out are told to ask for them: by a letter in which nothing stands.
    fn have_forms_asked_for(&self) {
        for worker in self.shared.queue.take_left_out() {
            let (epoch, number) = (self.shared.epoch, self.shared.posted.load(Relaxed));
            let letter = Letter { epoch, news: [].into(), number };
            self.shared.tell_worker(&self.post, worker, LiveMail::News(letter));
        }
    }

    /// Makes codings of polled values, as many as a turn has room for: one at least.
    fn make_codings(&mut self) {
        let mut left_bytes = WRITER_MADE_BYTES;
        while left_bytes > 0
            && let Some(wish) = self.shared.queue.next_coding()
        {
            left_bytes = left_bytes.saturating_sub(self.code(wish).max(MADE_BYTES_MIN));
        }
    }

    /// Makes a coding of a value, if it is the last one still; gives the bytes that were gone through.
    fn code(&mut self, wish: CodingWish) -> usize {
        let CodingWish { topic, number, coding } = wish;
        let (body, of_bytes) = match coding {
            ValueCoding::Whole(encoding) => {
                let last = self.hub.value(&topic).filter(|(_, update)| update.number == number);
                let Some((_, update)) = last else { return 0 };
                let bytes = update.value.bytes();
                (encode_quickly(encoding, bytes).map(Into::into), bytes.len())
            }
            ValueCoding::Difference(from) => {
                let made = self.hub.difference(&topic, number, from);
                (made.body, made.of_bytes)
            }
        };
        let coded = CodedValue { topic, number, coding, body };
        for worker in 0..self.post.workers() {
            self.shared.tell_worker(&self.post, worker, LiveMail::Coded(coded.clone()));
        }
        of_bytes
    }

    /// Tells workers with readers that a second has passed.
    fn tick(&mut self, up_s: u32) {
        if up_s == self.told_s {
            return;
        }
        self.told_s = up_s;
        self.hub.let_forms_go();
        let within_s = self.shared.leaving_s.load(Relaxed);
        if within_s > 0 && self.leaving_until_s.is_none() {
            self.leaving_until_s = Some(up_s.saturating_add(u32::try_from(within_s).unwrap_or(u32::MAX)));
        }
        // tidy: allow(clock): tokens end by the time of day, and the writer is the clock of live data.
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let leaving_s = self.leaving_until_s.map(|until_s| until_s.saturating_sub(up_s));
        let moment = LiveTime { up_s, unix_s: unix.as_secs(), leaving_s };
        for worker in 0..self.post.workers() {
            if self.shared.worker_counts[usize::from(worker)].all_readers() > 0 {
                self.shared.tell_worker(&self.post, worker, LiveMail::Tick(moment));
            }
        }
    }
}
