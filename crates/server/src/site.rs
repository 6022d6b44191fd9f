//! One worker's part of a site: a request's way from its path to its answer.
//!
//! A request for what is held takes the first step only: decode, find, choose, answer. What is not held is
//! asked of the loader and answered when its mail comes. It must never wait, and never read the disk unless
//! the site was told to hold nothing.

use std::sync::Arc;

use staunch_engine::{Answer, Answered, Handler};
use staunch_protocol::Status;
use staunch_protocol::http1::{Method, Request, TargetError, decode_path};

use crate::content::entry::{Content, Entry, Kind, moment};
use crate::content::folder::Variant;
use crate::content::load::Outcome;
use crate::content::negotiate::{IDENTITY, Preference};
use crate::content::path::is_servable;
use crate::problem::{ALLOW, Problem};
use crate::redirect;
use crate::respond::answer_content;
use crate::shared::{Mail, SiteShared};

/// The handler of one worker.
pub struct Site {
    shared: Arc<SiteShared>,
    /// Memory for decoded paths, used again and again.
    scratch: Vec<u8>,
    /// The last Accept-Encoding and what it means: nearly all peers send one of very few.
    accepted: (Vec<u8>, Preference),
}

impl Handler for Site {
    type Mail = Mail;

    #[inline]
    fn handle(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        match request.method {
            Method::Get | Method::Head => self.read(request, answer),
            Method::Options => answer_options(answer),
            Method::Known => self.shared.problems.answer(Problem::Method, answer),
            Method::Unknown => self.shared.problems.answer(Problem::UnknownMethod, answer),
        }
    }

    fn resume(&mut self, mail: Mail, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        match mail.0 {
            Outcome::Entry(entry) => self.with_path(request, answer, |site, path, answer| {
                site.answer_entry(&entry, path, request, answer)
            }),
            Outcome::Problem(problem) => self.shared.problems.answer(problem, answer),
        }
    }
}

impl SiteShared {
    /// The handler of one worker.
    pub fn handler(self: &Arc<Self>) -> Site {
        Site::new(Arc::clone(self))
    }
}

impl Site {
    fn new(shared: Arc<SiteShared>) -> Self {
        Self { shared, scratch: Vec::new(), accepted: (Vec::new(), Preference::IDENTITY_ONLY) }
    }

    #[inline]
    fn read(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        self.with_path(request, answer, |site, path, answer| match site.shared.load.store.find(path) {
            Some(entry) if entry.is_true_at(answer.date()) => {
                site.answer_entry(&entry, path, request, answer)
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
            Err(TargetError::Malformed) => self.shared.problems.answer(Problem::BadPath, answer),
            Err(TargetError::Nowhere) => self.shared.problems.answer(Problem::NotFound, answer),
        };
        self.scratch = scratch;
        answered
    }

    /// What is not held: read at once if the site holds nothing, else asked of the loader.
    #[inline(never)]
    fn answer_unheld(&mut self, path: &[u8], request: &Request<'_>, answer: Answer<'_>) -> Answered {
        let config = &self.shared.load.config;
        if !is_servable(path, config.dotfiles) {
            return self.shared.problems.answer(Problem::NotFound, answer);
        }
        if !config.no_cache {
            return self.ask(path, answer);
        }
        match self.shared.load.unheld(path) {
            Outcome::Entry(entry) => self.answer_entry(&entry, path, request, answer),
            Outcome::Problem(problem) => self.shared.problems.answer(problem, answer),
        }
    }

    fn ask(&self, key: &[u8], answer: Answer<'_>) -> Answered {
        match self.shared.loader.ask(key, answer.address(), moment(answer.date())) {
            Ok(()) => answer.later(),
            Err(_) => self.shared.problems.answer(Problem::Overloaded, answer),
        }
    }

    #[inline]
    fn answer_entry(
        &mut self,
        entry: &Entry,
        path: &[u8],
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
                answer_content(content, place, &self.shared.problems, request, answer)
            }
            Kind::Alias(target) => self.answer_alias(target, request, answer),
            Kind::Slashless => redirect::to_folder(path, request.query, answer),
            Kind::Folder => self.answer_folder(path, request, answer),
        }
    }

    /// A folder without index file.
    #[inline(never)]
    fn answer_folder(&mut self, path: &[u8], request: &Request<'_>, answer: Answer<'_>) -> Answered {
        if self.shared.load.config.listing {
            self.answer_alias(&Variant::of_request(request).key(path), request, answer)
        } else {
            self.shared.problems.answer(Problem::Forbidden, answer)
        }
    }

    /// A folder answered by one of its files or by its listing, which are held under keys of their own.
    #[inline(never)]
    fn answer_alias(&mut self, target: &[u8], request: &Request<'_>, answer: Answer<'_>) -> Answered {
        match self.shared.load.store.find(target) {
            Some(entry) if entry.is_true_at(answer.date()) => {
                self.answer_entry(&entry, target, request, answer)
            }
            _ => self.ask(target, answer),
        }
    }

    /// Which representation the peer prefers.
    #[inline]
    fn place(&mut self, content: &Content, request: &Request<'_>) -> usize {
        match request.accept_encoding() {
            Some(first) if content.encodings() > 0 => {
                let repeated = request.repeated & Request::ACCEPT_ENCODING != 0;
                if repeated || self.accepted.0 != first {
                    self.read_preference(first, repeated, request);
                }
                self.accepted.1.choose(|place| content.representations[place].is_some())
            }
            _ => IDENTITY,
        }
    }

    #[inline(never)]
    fn read_preference(&mut self, first: &[u8], repeated: bool, request: &Request<'_>) {
        let order = &self.shared.load.config.encodings;
        let (value, preference) = &mut self.accepted;
        value.clear();
        if repeated {
            // Not remembered: what is remembered is one value.
            *preference = Preference::read(request.values(b"accept-encoding"), order);
        } else {
            value.extend_from_slice(first);
            *preference = Preference::read([first].into_iter(), order);
        }
    }
}

#[cold]
fn answer_options(answer: Answer<'_>) -> Answered {
    answer.bytes(Status::NO_CONTENT, format!("Allow: {ALLOW}\r\n\r\n").as_bytes(), &[])
}

#[cfg(test)]
#[path = "site/testing.rs"]
pub(crate) mod testing;

#[cfg(test)]
#[path = "site/tests.rs"]
mod tests;
