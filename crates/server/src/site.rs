//! One worker's part of a site: a request's way from its path to its answer.
//!
//! A request for what is held takes the first step only: decode, find, choose, answer. What is not held is
//! asked of the loader and answered when its mail comes; what rules apply to takes the longer way of
//! `site/ruled.rs`. It must never wait, and never read the disk unless the site was told to hold nothing.

mod ruled;

use std::sync::Arc;

use staunch_engine::{Answer, Answered};
use staunch_protocol::Method;
use staunch_protocol::http1::{Request, TargetError, decode_path};

use crate::content::entry::{Content, Entry, Kind};
use crate::content::folder::Variant;
use crate::content::load::Outcome;
use crate::content::negotiate::{IDENTITY, Preference};
use crate::content::path::is_servable;
use crate::permission::{Asked, Passage, Permission};
use crate::problem::Problem;
use crate::redirect;
use crate::respond::{Further, VARY_ACCEPT, answer_content};
use crate::shared::{Letter, Purpose, SiteShared};

/// One worker's part of a site.
pub(crate) struct Site {
    pub(crate) shared: Arc<SiteShared>,
    /// Memory for decoded paths, used again and again.
    scratch: Vec<u8>,
    accepted: Accepted,
    permission: Permission,
}

/// The last Accept-Encoding and what it means: nearly all peers send one of very few.
struct Accepted {
    /// Its value; `None` if it stood in several lines, which are not remembered.
    value: Option<Vec<u8>>,
    preference: Preference,
}

impl Site {
    /// A worker's part of this site.
    pub(crate) fn new(shared: Arc<SiteShared>) -> Self {
        let accepted = Accepted { value: None, preference: Preference::IDENTITY_ONLY };
        Self { shared, scratch: Vec::new(), accepted, permission: Permission::default() }
    }

    /// See [`staunch_engine::Handler::handle`].
    #[inline]
    pub(crate) fn handle(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        match request.method {
            Method::Get | Method::Head => self.read(request, answer),
            _ => self.answer_other_method(request, answer),
        }
    }

    /// See [`staunch_engine::Handler::resume`].
    pub(crate) fn resume(&mut self, letter: Letter, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        match letter {
            Letter::Loaded(outcome, Purpose::Page { problem, ruling }) => {
                self.answer_with_page(&outcome, problem, ruling.as_deref(), request, answer)
            }
            Letter::Loaded(outcome, purpose) => self.with_path(request, answer, |site, path, answer| {
                site.answer_loaded(outcome, &purpose, path, request, answer)
            }),
            Letter::Checked { tag, since_s } => {
                self.permission.learn(tag, since_s);
                let answered = self.handle(request, answer);
                self.permission.forget_verdict();
                answered
            }
            Letter::PutOff(excess) => self.with_path(request, answer, |site, path, answer| {
                site.answer_refused(excess.into(), path, request, answer)
            }),
        }
    }

    #[inline]
    fn read(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        self.with_path(request, answer, |site, path, answer| match site.shared.load.store.find(path) {
            // Nearly all: nothing depends on who asks.
            Some(entry) if entry.freshness.holds_at(answer.unix_ms()) && entry.ruling.is_none() => {
                site.answer_kind(&entry, path, Further::NONE, request, answer)
            }
            Some(entry) if entry.freshness.holds_at(answer.unix_ms()) => {
                site.answer_ruled(&entry, Asked::by_peer(path), request, answer)
            }
            _ => site.answer_unheld(path, request, answer),
        })
    }

    /// Decodes the path and goes on with it.
    #[inline]
    fn with_path(
        &mut self,
        request: &Request<'_>,
        answer: Answer<'_>,
        then: impl FnOnce(&mut Self, &[u8], Answer<'_>) -> Answered,
    ) -> Answered {
        let mut scratch = std::mem::take(&mut self.scratch);
        let answered = match decode_path(request.path, &mut scratch) {
            Ok(path) => then(self, path, answer),
            Err(error) => self.answer_bad_path(error, request, answer),
        };
        self.scratch = scratch;
        answered
    }

    #[cold]
    fn answer_bad_path(&mut self, error: TargetError, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        match error {
            TargetError::Malformed => self.answer_problem(Problem::BadPath, None, request, answer),
            TargetError::Nowhere => self.answer_problem(Problem::NotFound, None, request, answer),
        }
    }

    /// What is not held: read at once if the site holds nothing, else asked of the loader.
    #[inline(never)]
    fn answer_unheld(&mut self, path: &[u8], request: &Request<'_>, answer: Answer<'_>) -> Answered {
        let asked = Asked::by_peer(path);
        let answer = match self.pass_by_path(asked, request, answer) {
            Passage::Open(answer) => answer,
            Passage::Answered(answered) => return answered,
            Passage::Refused(problem, answer) => return self.answer_refused(problem, path, request, answer),
        };
        let config = &self.shared.load.config;
        if !is_servable(path, config.dotfiles) {
            return self.answer_missing(Problem::NotFound, path, request, answer);
        }
        if !config.no_cache {
            return self.ask(path, Purpose::Content, request, answer);
        }
        let outcome = self.shared.load.unheld(path);
        self.answer_loaded(outcome, &Purpose::Content, path, request, answer)
    }

    /// What another thread, or this one, has just read.
    fn answer_loaded(
        &mut self,
        outcome: Outcome,
        purpose: &Purpose,
        path: &[u8],
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        match outcome {
            // It has passed before it was asked for.
            Outcome::Entry(entry) if is_of(&entry, path) => {
                self.answer_passed(&entry, Asked::by_peer(path), request, answer)
            }
            Outcome::Entry(entry) => {
                let asked = Asked { lines: varying(purpose), ..Asked::within(&entry.key) };
                self.answer_entry(&entry, asked, request, answer)
            }
            Outcome::Problem(problem) if matches!(purpose, Purpose::Content) => {
                self.answer_missing(problem, path, request, answer)
            }
            Outcome::Problem(problem) => self.answer_refused(problem, path, request, answer),
        }
    }

    fn ask(&mut self, key: &[u8], purpose: Purpose, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        match self.shared.ask_for(key, answer.unix_ms() / 1000, purpose, answer.address()) {
            Ok(()) => answer.later(),
            Err(_) => self.answer_problem(Problem::Overloaded, None, request, answer),
        }
    }

    fn answer_entry(
        &mut self,
        entry: &Entry,
        asked: Asked<'_>,
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        if entry.ruling.is_some() {
            return self.answer_ruled(entry, asked, request, answer);
        }
        let further = Further { ruling: None, granted: asked.lines };
        self.answer_kind(entry, asked.path, further, request, answer)
    }

    #[inline]
    fn answer_kind(
        &mut self,
        entry: &Entry,
        path: &[u8],
        further: Further<'_>,
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        let fresh = entry.mark_used();
        match &entry.kind {
            Kind::Content(content) => {
                if fresh && !entry.is_settled() {
                    self.shared.load.encoder.hint(&entry.key);
                }
                let place = self.place(content, request);
                answer_content(content, place, &self.shared.problems, further, request, answer)
            }
            Kind::Alias(target) => self.answer_alias(target, request, answer),
            Kind::Slashless => redirect::to_folder(path, request.query, &further.lines(), answer),
            Kind::Folder => self.answer_folder(path, further, request, answer),
        }
    }

    /// A folder without index file.
    #[inline(never)]
    fn answer_folder(
        &mut self,
        path: &[u8],
        further: Further<'_>,
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        let listing = further.ruling.and_then(|ruling| ruling.listing);
        if listing.unwrap_or(self.shared.load.config.listing) {
            self.answer_alias(&Variant::of_request(request).key(path), request, answer)
        } else {
            self.answer_refused(Problem::Unlisted, path, request, answer)
        }
    }

    /// A folder answered by one of its files or by its listing, which are held under keys of their own.
    #[inline(never)]
    fn answer_alias(&mut self, target: &[u8], request: &Request<'_>, answer: Answer<'_>) -> Answered {
        match self.shared.load.store.find(target) {
            Some(entry) if entry.freshness.holds_at(answer.unix_ms()) => {
                self.answer_entry(&entry, Asked::within(target), request, answer)
            }
            _ => self.ask(target, Purpose::Content, request, answer),
        }
    }

    /// Which representation the peer prefers.
    #[inline]
    fn place(&mut self, content: &Content, request: &Request<'_>) -> usize {
        match request.accept_encoding() {
            Some(first) if content.encodings() > 0 => {
                let repeated = request.repeated & Request::ACCEPT_ENCODING != 0;
                if repeated || self.accepted.value.as_deref() != Some(first) {
                    self.read_preference(first, repeated, request);
                }
                self.accepted.preference.choose(|place| content.representations[place].is_some())
            }
            _ => IDENTITY,
        }
    }

    #[inline(never)]
    fn read_preference(&mut self, first: &[u8], repeated: bool, request: &Request<'_>) {
        let order = &self.shared.load.config.encodings;
        let Accepted { value, preference } = &mut self.accepted;
        if repeated {
            *value = None;
            *preference = Preference::read(request.values(b"accept-encoding"), order);
        } else {
            let value = value.get_or_insert_default();
            value.clear();
            value.extend_from_slice(first);
            *preference = Preference::read([first].into_iter(), order);
        }
    }
}

/// The line that says what an answer depends on that was loaded for this purpose.
fn varying(purpose: &Purpose) -> &'static [u8] {
    if matches!(purpose, Purpose::Fallback) { VARY_ACCEPT } else { b"" }
}

/// Whether an entry is that of a path itself or of its listing.
fn is_of(entry: &Entry, path: &[u8]) -> bool {
    *entry.key == *path || Variant::of_key(&entry.key).is_some_and(|(folder, _)| folder == path)
}

#[cfg(test)]
#[path = "site/testing.rs"]
pub(crate) mod testing;

#[cfg(test)]
#[path = "site/tests.rs"]
mod tests;

#[cfg(test)]
mod tried;
