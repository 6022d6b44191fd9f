//! Polls that wait, and lists of quotes.
//!
//! It must never hold a poll for longer than it asks, nor than is allowed.

use std::sync::atomic::Ordering::Relaxed;

use staunch_engine::{Address, Answer, Answered, Departure};
use staunch_live::quotes::{ListFault, read_list};
use staunch_live::{Letter, News, Request as Asked, TopicName, Version, decode_form};
use staunch_protocol::{Request, Status};

use super::super::mail::LiveMail;
use super::super::permit::Rights;
use super::super::quotes::Quotes;
use super::super::reply::{come_back, decode_name, refuse, text};
use super::super::turns::LineClient;
use super::super::waiting::Waiting;
use super::LiveWorker;
use crate::limits::{POLL_WAIT_S, POLL_WAIT_S_MAX};
use crate::mail::Mail;

/// UpdateKey of long polls among the transports.
const LONG_POLLS: usize = 2;

/// What becomes of a poll that may wait.
pub(super) enum Wait {
    /// The poll waits, and so much is held for it.
    Later(usize),
    /// The query of the poll is wrong.
    Faulty(&'static str),
    /// There are as many readers as may be, and it would be one.
    Full,
}

impl Wait {
    pub(super) fn answer(self, lines: &[u8], answer: Answer<'_>) -> Answered {
        match self {
            Self::Later(bytes) => answer.later_holding(bytes),
            Self::Full => come_back("there are as many readers as `live_connections` allows", answer),
            Self::Faulty(sentence) => refuse(Status::BAD_REQUEST, sentence, lines, answer),
        }
    }
}

impl LiveWorker {
    /// Lets a poll wait that asks for what is behind a version (`after`), if nothing is that it may read.
    pub(super) fn waits_for(
        &mut self,
        rights: &Rights,
        topic: &TopicName,
        request: &Request<'_>,
        answer: &Answer<'_>,
    ) -> Option<Wait> {
        let pairs = decode_form(request.query?).ok()?;
        let find = |name: &str| pairs.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        let after = find("after")?;
        let wait_s = match find("wait").map(str::parse::<u32>) {
            None => POLL_WAIT_S,
            Some(Ok(wait_s)) => wait_s.min(POLL_WAIT_S_MAX),
            Some(Err(_)) => return Some(Wait::Faulty("`wait` is a number of seconds")),
        };
        let own = self.view.version();
        let Ok(version) = after.trim_matches('"').parse::<Version>() else { return None };
        let is_newer = self.readable(topic, rights).is_some_and(|update| update.number > version.number);
        // From another epoch, or from the future: what there is is the answer.
        if version.epoch != own.epoch || version.number > own.number || is_newer || wait_s == 0 {
            return None;
        }
        if self.has_no_room() {
            return Some(Wait::Full);
        }
        // Those of one moment do not all come back at one moment.
        let early_s = answer.address().slot % (wait_s / 8 + 1);
        let end_s = self.moment.up_s.saturating_add(wait_s - early_s + 1);
        let bytes = Waiting::bytes_of(topic);
        self.waiting.add(topic.clone(), answer.address(), end_s, rights.may_read(topic));
        self.count_poll(topic.clone(), 1);
        Some(Wait::Later(bytes))
    }

    /// A letter came: polls that waited for its topics are answered, if they may read the update.
    pub(super) fn end_waiting(&mut self, letter: &Letter) {
        if self.waiting.len() == 0 {
            return;
        }
        for news in letter.news.iter() {
            let News::Update(update, _) = news else { continue };
            for topic in update.topics() {
                for address in self.waiting.take(topic, update.private) {
                    self.count_poll(topic.clone(), -1);
                    self.tell(address, LiveMail::Again);
                }
            }
        }
    }

    pub(super) fn end_long_waits(&mut self) {
        for (address, topic) in self.waiting.take_ended(self.moment.up_s) {
            self.count_poll(topic, -1);
            self.tell(address, LiveMail::WaitedLong);
        }
    }

    pub(super) fn tell(&self, address: Address, mail: LiveMail) {
        if let Some(post) = self.shared.post() {
            post.send(address, Mail::of_live(mail));
        }
    }

    /// See [`staunch_engine::Handler::left`].
    pub(crate) fn left(&mut self, address: Address, departure: Departure) {
        if departure == Departure::Gone && self.shared.tokens.has_issuers() {
            self.shared.tokens.leave(address);
        }
        if departure == Departure::Gone
            && let Some(topic) = self.waiting.leave(address)
        {
            self.count_poll(topic, -1);
        }
    }

    fn count_poll(&self, topic: TopicName, change: i64) {
        let readers = &self.counts().readers[LONG_POLLS];
        match change {
            1 => readers.fetch_add(1, Relaxed),
            _ => readers.fetch_sub(1, Relaxed),
        };
        let all = LineClient::Worker(self.index);
        self.shared.queue.ask(self.index, all, vec![Asked::Readers(topic, change)]);
    }

    /// Answers a poll for which nothing came.
    pub(super) fn answer_unchanged(&self, lines: &[u8], answer: Answer<'_>) -> Answered {
        let own = format!("ETag: \"{}\"\r\nCache-Control: no-store\r\n", self.view.version());
        answer.bytes(Status::NO_CONTENT, &[lines, own.as_bytes()].concat(), b"")
    }

    /// Answers `/list=a,b,c`.
    pub(super) fn list(&mut self, list: &[u8], lines: &[u8], answer: Answer<'_>) -> Answered {
        let list = decode_name(list);
        let symbols = std::str::from_utf8(&list).map_err(|_| ListFault::Symbol(1)).and_then(read_list);
        let symbols = match symbols {
            Ok(symbols) => symbols,
            Err(fault) => return refuse(Status::BAD_REQUEST, &fault.to_string(), lines, answer),
        };
        let mut body = Vec::new();
        symbols.iter().for_each(|symbol| self.quotes.append(symbol, &self.view, &mut body));
        text(Status::OK, "text/javascript; charset=utf-8", &body, lines, answer)
    }

    /// Answers `/quotes?symbols=a,b,c`.
    pub(super) fn quotes(&mut self, lines: &[u8], request: &Request<'_>, answer: Answer<'_>) -> Answered {
        let pairs = decode_form(request.query.unwrap_or_default()).unwrap_or_default();
        let Some((_, list)) = pairs.iter().find(|(name, _)| name == "symbols") else {
            return refuse(Status::BAD_REQUEST, "`symbols` is missing: which quotes?", lines, answer);
        };
        match read_list(list) {
            Ok(symbols) => {
                let body = Quotes::json(&symbols, &self.view);
                text(Status::OK, "application/json", body.as_bytes(), lines, answer)
            }
            Err(fault) => refuse(Status::BAD_REQUEST, &fault.to_string(), lines, answer),
        }
    }
}
