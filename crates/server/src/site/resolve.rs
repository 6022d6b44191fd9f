//! What stands at a path: held, read at once, asked of the loader, or nothing.
//!
//! It must never read the disk unless the site was told to hold nothing.

use std::sync::Arc;

use staunch_engine::{Answer, Answered};
use staunch_protocol::{Method, Request};

use super::Site;
use crate::content::entry::Entry;
use crate::content::folder::Variant;
use crate::content::load::Outcome;
use crate::content::negotiate::weight;
use crate::content::path::is_servable;
use crate::errand::Errand;
use crate::permission::{Asked, Passage};
use crate::problem::Problem;
use crate::respond::{AddedFields, VARY_ACCEPT};
use crate::shared::Purpose;

impl Site {
    /// What is not held: read at once if the site holds nothing, else asked of the loader.
    #[inline(never)]
    pub(super) fn resolve(&mut self, path: &[u8], errand: Errand<'_>) -> Answered {
        let asked = Asked::by_peer(path);
        let mut errand = match self.permit_path(asked, errand) {
            Passage::Open(errand) => errand,
            Passage::Answered(answered) => return answered,
            Passage::Refused(problem, errand) => return self.refuse(problem, path, errand),
        };
        let config = &self.shared.load.config;
        if config.has_no_folder() || !is_servable(path, config.dotfiles) {
            return self.resolve_missing(Problem::NotFound, path, errand);
        }
        if !config.no_cache {
            errand.hint(self.ruling(path).as_deref());
            return self.ask(path, Purpose::Content, errand);
        }
        self.shared.ask_to_look(errand.answer.unix_ms() / 1000);
        let outcome = self.shared.load.unheld(path);
        self.resolve_loaded(outcome, &Purpose::Content, path, errand)
    }

    /// What another thread, or this one, has just read.
    pub(super) fn resolve_loaded(
        &mut self,
        outcome: Outcome,
        purpose: &Purpose,
        path: &[u8],
        errand: Errand<'_>,
    ) -> Answered {
        match outcome {
            // The path was permitted before the load was asked for.
            Outcome::Entry(entry) if is_of(&entry, path) => self.show(&entry, Asked::by_peer(path), errand),
            Outcome::Entry(entry) => {
                let asked = Asked { lines: varying(purpose), ..Asked::within(&entry.key) };
                self.permit_entry(&entry, asked, errand)
            }
            Outcome::Problem(problem) if matches!(purpose, Purpose::Content) => {
                self.resolve_missing(problem, path, errand)
            }
            Outcome::Problem(problem) => self.refuse(problem, path, errand),
        }
    }

    fn ask(&mut self, key: &[u8], purpose: Purpose, errand: Errand<'_>) -> Answered {
        let answer = &errand.answer;
        match self.shared.ask_for(key, answer.unix_ms() / 1000, purpose, answer.address()) {
            Ok(()) => errand.answer.later(),
            Err(_) => self.refuse_under(Problem::Overloaded, None, errand),
        }
    }

    /// A folder without index file.
    #[inline(never)]
    pub(super) fn resolve_folder(
        &mut self,
        path: &[u8],
        further: AddedFields<'_>,
        errand: Errand<'_>,
    ) -> Answered {
        let listing = further.ruling.and_then(|ruling| ruling.listing);
        if listing.unwrap_or(self.shared.load.config.listing) {
            self.resolve_alias(&Variant::of_request(errand.request).key(path), errand)
        } else {
            self.refuse(Problem::Unlisted, path, errand)
        }
    }

    /// A folder answered by one of its files or by its listing, which are held under keys of their own.
    #[inline(never)]
    pub(super) fn resolve_alias(&mut self, target: &[u8], errand: Errand<'_>) -> Answered {
        match self.shared.load.store.find(target) {
            Some(entry) if self.shared.is_true(&entry, errand.answer.unix_ms()) => {
                self.permit_entry(&entry, Asked::within(target), errand)
            }
            _ => self.ask(target, Purpose::Content, errand),
        }
    }

    /// What is not there: the fallback, if there is one and the path looks like a page's.
    #[inline(never)]
    fn resolve_missing(&mut self, problem: Problem, path: &[u8], errand: Errand<'_>) -> Answered {
        let shared = Arc::clone(&self.shared);
        let fallback = shared.load.rules.as_ref().filter(|rules| rules.tries(path).is_none());
        let fallback = fallback.and_then(|rules| rules.fallback.as_deref());
        match fallback {
            Some(key) if problem == Problem::NotFound && wants_page(path, errand.request) => {
                let asked = Asked { lines: VARY_ACCEPT, ..Asked::within(key) };
                match self.held(key, &errand.answer) {
                    Some(Outcome::Entry(entry)) => self.permit_entry(&entry, asked, errand),
                    Some(Outcome::Problem(problem)) => self.refuse(problem, path, errand),
                    None => self.ask(key, Purpose::Fallback, errand),
                }
            }
            _ => self.refuse(problem, path, errand),
        }
    }

    /// What is held under a key, or is read at once by a site that holds nothing.
    pub(super) fn held(&self, key: &[u8], answer: &Answer<'_>) -> Option<Outcome> {
        let load = &self.shared.load;
        if load.config.no_cache {
            return Some(load.unheld(key));
        }
        load.store.get(key).filter(|entry| self.shared.is_true(entry, answer.unix_ms())).map(Outcome::Entry)
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

/// Whether a request is one that an application in the browser answers: for a page, at a path whose last name
/// has no dot. A picture that is missing stays missing.
fn wants_page(path: &[u8], request: &Request<'_>) -> bool {
    if !may_be_page(path, request) {
        return false;
    }
    if !request.has_any(Request::ACCEPT) {
        return true;
    }
    let mut ranges = request.values(b"accept").flat_map(|value| value.split(|&byte| byte == b','));
    ranges.any(|range| {
        let mut parts = range.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let name = parts.next().unwrap_or_default();
        let page =
            name == b"*/*" || name.eq_ignore_ascii_case(b"text/html") || name.eq_ignore_ascii_case(b"text/*");
        page && parts.find_map(weight) != Some(0)
    })
}

/// Whether such a request could be for a page, whatever it accepts.
fn may_be_page(path: &[u8], request: &Request<'_>) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    !name.contains(&b'.') && matches!(request.method, Method::Get | Method::Head)
}
