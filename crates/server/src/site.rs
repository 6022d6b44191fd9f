//! A worker's part of a site: a request's way from its path to its answer.
//!
//! A request for what is held takes the first step only: decode, find, choose, answer. What is not held is
//! asked of the loader and answered when its mail comes; what rules apply to has to be permitted first. It
//! must never wait, and never read the disk unless the site was told to hold nothing.
//!
//! Its steps, each of which takes the errand and answers it or hands it on: `resolve` (what stands at the
//! path), `permit` (whether it may be shown), `represent` (in which encoding), `reply` (content, redirect or
//! problem). What an application answers goes another way (`pass_on`, and `run` where it runs scripts).

mod differ;
mod pass_on;
mod permit;
mod reply;
mod represent;
mod resolve;
mod run;

use std::sync::Arc;

use staunch_engine::{Answer, Answered};
use staunch_protocol::http1::{decode_path, is_plain_path};
use staunch_protocol::{Method, Request};

pub(crate) use self::pass_on::{PassedOn, PassedTo};
use crate::content::negotiate::Preference;
use crate::errand::Errand;
use crate::permission::{Asked, Permission};
use crate::respond::AddedFields;
use crate::rules::auth::Tag;
use crate::shared::{Letter, Purpose, SiteShared};

/// A worker's part of a site.
pub(crate) struct Site {
    pub(crate) shared: Arc<SiteShared>,
    /// Memory for decoded paths, used again and again.
    scratch: Vec<u8>,
    /// Memory for keys of differences, used again and again.
    difference_key: Vec<u8>,
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
        let permission = Permission::default();
        Self { shared, scratch: Vec::new(), difference_key: Vec::new(), accepted, permission }
    }

    /// See [`staunch_engine::Handler::handle`].
    #[inline]
    pub(crate) fn handle(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        let errand = Errand { request, answer };
        match request.method {
            Method::Get | Method::Head => self.read(errand),
            _ => self.reply_to_method(errand),
        }
    }

    /// See [`staunch_engine::Handler::resume`].
    pub(crate) fn resume(&mut self, letter: Letter, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        let errand = Errand { request, answer };
        match letter {
            Letter::Loaded(outcome, Purpose::Page { problem, ruling }) => {
                self.reply_with_page(&outcome, problem, ruling.as_deref(), errand)
            }
            Letter::Loaded(outcome, purpose) => self
                .with_path(errand, |site, path, errand| site.resolve_loaded(outcome, &purpose, path, errand)),
            Letter::Checked { tag, since_s } => {
                self.learn(tag, since_s);
                let answered = self.handle(request, errand.answer);
                self.forget_verdict();
                answered
            }
            Letter::PutOff(excess) => {
                self.with_path(errand, |site, path, errand| site.refuse(excess.into(), path, errand))
            }
        }
    }

    /// See [`Permission::learn`].
    pub(crate) fn learn(&mut self, tag: Tag, since_s: Option<u32>) {
        self.permission.learn(tag, since_s);
    }

    /// See [`Permission::forget_verdict`].
    pub(crate) fn forget_verdict(&mut self) {
        self.permission.forget_verdict();
    }

    #[inline]
    fn read(&mut self, errand: Errand<'_>) -> Answered {
        self.with_path(errand, |site, path, errand| match site.shared.load.store.find(path) {
            // Nearly all: nothing depends on who asks.
            Some(entry) if site.shared.is_true(&entry, errand.answer.unix_ms()) && entry.ruling.is_none() => {
                site.reply(&entry, path, AddedFields::NONE, errand)
            }
            Some(entry) if site.shared.is_true(&entry, errand.answer.unix_ms()) => {
                site.permit(&entry, Asked::by_peer(path), errand)
            }
            _ => site.resolve(path, errand),
        })
    }

    /// Decodes the path and goes on with it.
    #[inline]
    fn with_path<'e>(
        &mut self,
        errand: Errand<'e>,
        then: impl FnOnce(&mut Self, &[u8], Errand<'e>) -> Answered,
    ) -> Answered {
        // Nearly all, which need no memory.
        if is_plain_path(errand.request.path) {
            let path = errand.request.path;
            return then(self, path, errand);
        }
        self.with_decoded_path(errand, then)
    }

    #[cold]
    fn with_decoded_path<'e>(
        &mut self,
        errand: Errand<'e>,
        then: impl FnOnce(&mut Self, &[u8], Errand<'e>) -> Answered,
    ) -> Answered {
        let mut scratch = std::mem::take(&mut self.scratch);
        let answered = match decode_path(errand.request.path, &mut scratch) {
            Ok(path) => then(self, path, errand),
            Err(error) => self.refuse_path(error, errand),
        };
        self.scratch = scratch;
        answered
    }
}

#[cfg(test)]
#[path = "site/testing.rs"]
pub(crate) mod testing;

#[cfg(test)]
mod branched;

#[cfg(test)]
mod tests;

#[cfg(test)]
mod tried;
