//! The answer itself: content, a redirect, a problem with its page.
//!
//! It must never decide whether something may be shown.

use std::borrow::Cow;
use std::sync::Arc;

use staunch_engine::Answered;
use staunch_protocol::Status;
use staunch_protocol::http1::{TargetError, decode_path};
use staunch_protocol::{Method, Request};

use super::Site;
use crate::content::entry::{Entry, Kind};
use crate::content::folder::wants_problem_in_json;
use crate::content::load::Outcome;
use crate::errand::Errand;
use crate::permission::{Asked, Passage, granted};
use crate::problem::{ALLOW, Problem};
use crate::redirect;
use crate::respond::{AddedFields, answer_content, answer_page};
use crate::rules::Ruling;
use crate::shared::Purpose;

impl Site {
    /// What an entry stands for.
    #[inline]
    pub(super) fn reply(
        &mut self,
        entry: &Entry,
        path: &[u8],
        further: AddedFields<'_>,
        errand: Errand<'_>,
    ) -> Answered {
        let fresh = entry.mark_used();
        match &entry.kind {
            Kind::Content(content) => {
                if fresh && !entry.is_settled() {
                    let load = &self.shared.load;
                    load.encoder.hint(entry, &load.config.encodings);
                }
                let Errand { request, answer } = errand;
                let place = self.represent(content, request);
                answer_content(content, place, &self.shared.problems, further, request, answer)
            }
            Kind::Alias(target) => self.resolve_alias(target, errand),
            Kind::Slashless => {
                redirect::to_folder(path, errand.request.query, &further.lines(), errand.answer)
            }
            Kind::Folder => self.resolve_folder(path, further, errand),
            // No application runs it here, or it stands at no path.
            Kind::Script | Kind::Version(_) | Kind::NoDifference => {
                self.refuse(Problem::NotFound, path, errand)
            }
        }
    }

    /// A request that came by another host than it should.
    #[inline(never)]
    pub(crate) fn reply_elsewhere(&mut self, origin: &str, errand: Errand<'_>) -> Answered {
        self.with_path(errand, |site, path, Errand { request, answer }| {
            let ruling = site.ruling(path);
            let lines = lines(ruling.as_deref(), request);
            let origin = with_port(origin, request);
            redirect::to_host(&origin, request.path, request.query, &lines, answer)
        })
    }

    /// OPTIONS, and methods that are not offered.
    #[cold]
    #[inline(never)]
    pub(super) fn reply_to_method(&mut self, errand: Errand<'_>) -> Answered {
        if self.shared.load.rules.is_none() || errand.request.path == b"*" {
            return self.reply_with_methods(None, errand);
        }
        self.with_path(errand, |site, path, errand| match site.permit_path(Asked::by_peer(path), errand) {
            Passage::Open(errand) => {
                let ruling = site.ruling(path);
                site.reply_with_methods(ruling.as_ref(), errand)
            }
            Passage::Answered(answered) => answered,
            Passage::Refused(problem, errand) => site.refuse(problem, path, errand),
        })
    }

    fn reply_with_methods(&mut self, ruling: Option<&Arc<Ruling>>, errand: Errand<'_>) -> Answered {
        let problem = match errand.request.method {
            Method::Options => {
                let lines = lines(ruling.map(|ruling| &**ruling), errand.request);
                let fields = [format!("Allow: {ALLOW}\r\n").as_bytes(), &lines].concat();
                return errand.answer.bytes(Status::NO_CONTENT, &fields, &[]);
            }
            Method::Unknown => Problem::UnknownMethod,
            _ => Problem::Method,
        };
        self.refuse_under(problem, ruling, errand)
    }

    #[cold]
    pub(super) fn refuse_path(&mut self, error: TargetError, errand: Errand<'_>) -> Answered {
        match error {
            TargetError::Malformed => self.refuse_under(Problem::BadPath, None, errand),
            TargetError::Nowhere => match clean_path(errand.request) {
                Some(path) => redirect::to_clean_path(&path, errand.request.query, errand.answer),
                None => self.refuse_under(Problem::NotFound, None, errand),
            },
        }
    }

    /// A problem with a path, under the rules of that.
    pub(super) fn refuse(&mut self, problem: Problem, path: &[u8], errand: Errand<'_>) -> Answered {
        let ruling = self.ruling(path);
        self.refuse_under(problem, ruling.as_ref(), errand)
    }

    /// A problem, with the operator's page if there is one.
    #[inline(never)]
    pub(super) fn refuse_under(
        &mut self,
        problem: Problem,
        ruling: Option<&Arc<Ruling>>,
        errand: Errand<'_>,
    ) -> Answered {
        errand.note_guard(ruling.map(|ruling| &**ruling));
        let shared = Arc::clone(&self.shared);
        let page = shared.load.rules.as_ref().and_then(|rules| rules.error_page(problem.status()));
        // A program that asks for JSON is not told the problem in HTML.
        let page = page.filter(|page| page.ends_with(b".json") || !wants_problem_in_json(errand.request));
        let Some(key) = page else {
            return self.reply_built_in(problem, ruling.map(|ruling| &**ruling), errand);
        };
        if let Some(outcome) = self.held(key, &errand.answer) {
            let ruling = ruling.map(|ruling| &**ruling);
            return self.reply_with_page(&outcome, problem, ruling, errand);
        }
        let purpose = Purpose::Page { problem, ruling: ruling.cloned() };
        // Where there is too much to load, no page is loaded to say so.
        let answer = &errand.answer;
        let asked = problem != Problem::Overloaded
            && shared.ask_for(key, answer.unix_ms() / 1000, purpose, answer.address()).is_ok();
        if asked {
            return errand.answer.later();
        }
        self.reply_built_in(problem, ruling.map(|ruling| &**ruling), errand)
    }

    /// A problem with the page that was loaded for it, if one was.
    pub(super) fn reply_with_page(
        &mut self,
        page: &Outcome,
        problem: Problem,
        ruling: Option<&Ruling>,
        errand: Errand<'_>,
    ) -> Answered {
        errand.note_guard(ruling);
        let content = match page {
            Outcome::Entry(entry) => {
                entry.mark_used();
                entry.content()
            }
            Outcome::Problem(_) => None,
        };
        let Some(content) = content else { return self.reply_built_in(problem, ruling, errand) };
        let Errand { request, answer } = errand;
        let mut lines = problem_lines(problem, ruling, request);
        lines.extend_from_slice(problem.lines().as_bytes());
        answer_page(content, self.represent(content, request), problem.status(), &lines, answer)
    }

    fn reply_built_in(&self, problem: Problem, ruling: Option<&Ruling>, errand: Errand<'_>) -> Answered {
        let Errand { request, answer } = errand;
        self.shared.problems.answer(problem, &problem_lines(problem, ruling, request), request, answer)
    }
}

/// The decoded path of a request that has slashes in a row, with one in the place of each row.
fn clean_path(request: &Request<'_>) -> Option<Vec<u8>> {
    let is_read = matches!(request.method, Method::Get | Method::Head);
    let mut single = request.path.to_vec();
    single.dedup_by(|next, before| (*next, *before) == (b'/', b'/'));
    let is_other = is_read && single.len() < request.path.len();
    is_other.then(|| decode_path(&single, &mut Vec::new()).map(<[u8]>::to_vec).ok())?
}

/// The lines rules add to what is not prepared.
fn lines(ruling: Option<&Ruling>, request: &Request<'_>) -> Vec<u8> {
    let Some(ruling) = ruling else { return Vec::new() };
    AddedFields { ruling: Some(ruling), granted: &granted(ruling, request) }.lines()
}

fn problem_lines(problem: Problem, ruling: Option<&Ruling>, request: &Request<'_>) -> Vec<u8> {
    let mut lines = lines(ruling, request);
    if let (Problem::Unauthorized, Some(auth)) = (problem, ruling.and_then(|ruling| ruling.auth.as_ref())) {
        lines.extend_from_slice(auth.challenge().as_bytes());
    }
    lines
}

/// An origin with the port by which the client has come, unless it names one: what stands before the server
/// may have another than the server itself.
fn with_port<'a>(origin: &'a str, request: &Request<'_>) -> Cow<'a, str> {
    let authority = origin.split_once("//").map_or(origin, |(_, authority)| authority);
    let names_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
    let host = request.values(b"host").next().unwrap_or_default();
    let port = host.rsplit(|&byte| byte == b':').next().filter(|port| port.len() < host.len());
    let port = port.and_then(|port| std::str::from_utf8(port).ok()?.parse::<u16>().ok());
    match port {
        Some(port) if !names_port && !matches!(port, 80 | 443) => Cow::Owned(format!("{origin}:{port}")),
        _ => Cow::Borrowed(origin),
    }
}
