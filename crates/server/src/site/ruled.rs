//! The longer way of a request that rules apply to, and of one that cannot be served: gate, error pages,
//! fallback, other methods.
//!
//! It must never be on the way of a request for what is held and free of rules.

use std::sync::Arc;

use staunch_engine::{Answer, Answered, thread_busy_ns};
use staunch_protocol::Method;
use staunch_protocol::Status;
use staunch_protocol::http1::Request;

use super::Site;
use crate::content::entry::{Entry, Kind};
use crate::content::folder::wants_problem_in_json;
use crate::content::load::Outcome;
use crate::content::negotiate::weight;
use crate::permission::{Asked, Passage, granted};
use crate::problem::{ALLOW, Problem};
use crate::redirect;
use crate::respond::{Further, VARY_ACCEPT, answer_page};
use crate::rules::Ruling;
use crate::shared::Purpose;

impl Site {
    /// An entry with a ruling, through the gate.
    #[inline(never)]
    pub(super) fn answer_ruled(
        &mut self,
        entry: &Entry,
        asked: Asked<'_>,
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        let Some(ruling) = &entry.ruling else {
            return self.answer_passed(entry, asked, request, answer);
        };
        match self.permission.pass(ruling, asked, &self.shared, request, answer) {
            Passage::Open(answer) => self.answer_passed(entry, asked, request, answer),
            Passage::Answered(answered) => answered,
            Passage::Refused(problem, answer) => self.answer_problem(problem, Some(ruling), request, answer),
        }
    }

    /// A request that came by another host than it should.
    #[inline(never)]
    pub(crate) fn answer_elsewhere(
        &mut self,
        origin: &str,
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        self.with_path(request, answer, |site, path, answer| {
            let ruling = site.ruling(path);
            let lines = lines(ruling.as_deref(), request);
            redirect::to_host(origin, request.path, request.query, &lines, answer)
        })
    }

    /// An entry that may be shown.
    pub(super) fn answer_passed(
        &mut self,
        entry: &Entry,
        asked: Asked<'_>,
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        let Some(ruling) = entry.ruling.as_deref() else {
            let further = Further { ruling: None, granted: asked.lines };
            return self.answer_kind(entry, asked.path, further, request, answer);
        };
        note_guard(Some(ruling), &answer);
        if ruling.work_us > 0 && matches!(entry.kind, Kind::Content(_)) {
            burn(ruling.work_us);
        }
        let mut granted = granted(ruling, request);
        granted.extend_from_slice(asked.lines);
        let further = Further { ruling: Some(ruling), granted: &granted };
        self.answer_kind(entry, asked.path, further, request, answer)
    }

    /// The gate for a path of which no entry is at hand.
    pub(super) fn pass_by_path<'a>(
        &mut self,
        asked: Asked<'_>,
        request: &Request<'_>,
        answer: Answer<'a>,
    ) -> Passage<'a> {
        match self.ruling(asked.path) {
            Some(ruling) => self.permission.pass(&ruling, asked, &self.shared, request, answer),
            None => Passage::Open(answer),
        }
    }

    /// OPTIONS, and methods that are not offered.
    #[cold]
    #[inline(never)]
    pub(super) fn answer_other_method(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        if self.shared.load.rules.is_none() || request.path == b"*" {
            return self.answer_method(None, request, answer);
        }
        self.with_path(request, answer, |site, path, answer| {
            match site.pass_by_path(Asked::by_peer(path), request, answer) {
                Passage::Open(answer) => {
                    let ruling = site.ruling(path);
                    site.answer_method(ruling.as_ref(), request, answer)
                }
                Passage::Answered(answered) => answered,
                Passage::Refused(problem, answer) => site.answer_refused(problem, path, request, answer),
            }
        })
    }

    fn answer_method(
        &mut self,
        ruling: Option<&Arc<Ruling>>,
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        let problem = match request.method {
            Method::Options => {
                let lines = lines(ruling.map(|ruling| &**ruling), request);
                let fields = [format!("Allow: {ALLOW}\r\n").as_bytes(), &lines].concat();
                return answer.bytes(Status::NO_CONTENT, &fields, &[]);
            }
            Method::Unknown => Problem::UnknownMethod,
            _ => Problem::Method,
        };
        self.answer_problem(problem, ruling, request, answer)
    }

    /// What is not there: the fallback, if there is one and the path looks like a page's.
    #[inline(never)]
    pub(super) fn answer_missing(
        &mut self,
        problem: Problem,
        path: &[u8],
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        let shared = Arc::clone(&self.shared);
        let fallback = shared.load.rules.as_ref().filter(|rules| rules.tries(path).is_none());
        let fallback = fallback.and_then(|rules| rules.fallback.as_deref());
        match fallback {
            Some(key) if problem == Problem::NotFound && wants_page(path, request) => {
                let asked = Asked { lines: VARY_ACCEPT, ..Asked::within(key) };
                match self.held(key, &answer) {
                    Some(Outcome::Entry(entry)) => self.answer_entry(&entry, asked, request, answer),
                    Some(Outcome::Problem(problem)) => self.answer_refused(problem, path, request, answer),
                    None => self.ask(key, Purpose::Fallback, request, answer),
                }
            }
            _ => self.answer_refused(problem, path, request, answer),
        }
    }

    /// A problem with a path, under the rules of that.
    pub(super) fn answer_refused(
        &mut self,
        problem: Problem,
        path: &[u8],
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        let ruling = self.ruling(path);
        self.answer_problem(problem, ruling.as_ref(), request, answer)
    }

    /// A problem, with the operator's page if there is one.
    #[inline(never)]
    pub(super) fn answer_problem(
        &mut self,
        problem: Problem,
        ruling: Option<&Arc<Ruling>>,
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        note_guard(ruling.map(|ruling| &**ruling), &answer);
        let shared = Arc::clone(&self.shared);
        let page = shared.load.rules.as_ref().and_then(|rules| rules.error_page(problem.status()));
        // A program that asks for JSON is not told the problem in HTML.
        let page = page.filter(|page| page.ends_with(b".json") || !wants_problem_in_json(request));
        let Some(key) = page else {
            return self.answer_built_in(problem, ruling.map(|ruling| &**ruling), request, answer);
        };
        if let Some(outcome) = self.held(key, &answer) {
            let ruling = ruling.map(|ruling| &**ruling);
            return self.answer_with_page(&outcome, problem, ruling, request, answer);
        }
        let purpose = Purpose::Page { problem, ruling: ruling.cloned() };
        // Where there is too much to load, no page is loaded to say so.
        let asked = problem != Problem::Overloaded
            && shared.ask_for(key, answer.unix_ms() / 1000, purpose, answer.address()).is_ok();
        if asked {
            return answer.later();
        }
        self.answer_built_in(problem, ruling.map(|ruling| &**ruling), request, answer)
    }

    /// A problem with the page that was loaded for it, if one was.
    pub(super) fn answer_with_page(
        &mut self,
        page: &Outcome,
        problem: Problem,
        ruling: Option<&Ruling>,
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        note_guard(ruling, &answer);
        let content = match page {
            Outcome::Entry(entry) => {
                entry.mark_used();
                entry.content()
            }
            Outcome::Problem(_) => None,
        };
        let Some(content) = content else { return self.answer_built_in(problem, ruling, request, answer) };
        let mut lines = problem_lines(problem, ruling, request);
        lines.extend_from_slice(problem.lines().as_bytes());
        answer_page(content, self.place(content, request), problem.status(), &lines, answer)
    }

    fn answer_built_in(
        &self,
        problem: Problem,
        ruling: Option<&Ruling>,
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        self.shared.problems.answer(problem, &problem_lines(problem, ruling, request), request, answer)
    }

    /// What is held under a key, or is read at once by a site that holds nothing.
    fn held(&self, key: &[u8], answer: &Answer<'_>) -> Option<Outcome> {
        let load = &self.shared.load;
        if load.config.no_cache {
            return Some(load.unheld(key));
        }
        load.store.get(key).filter(|entry| entry.freshness.holds_at(answer.unix_ms())).map(Outcome::Entry)
    }

    fn ruling(&self, path: &[u8]) -> Option<Arc<Ruling>> {
        self.shared.load.rules.as_ref()?.of(path)
    }
}

/// An answer that another thread's mail has led to does not know any more that credentials were asked for.
fn note_guard(ruling: Option<&Ruling>, answer: &Answer<'_>) {
    if ruling.is_some_and(|ruling| ruling.auth.is_some()) {
        answer.guard();
    }
}

/// The lines rules add to what is not prepared.
fn lines(ruling: Option<&Ruling>, request: &Request<'_>) -> Vec<u8> {
    let Some(ruling) = ruling else { return Vec::new() };
    Further { ruling: Some(ruling), granted: &granted(ruling, request) }.lines()
}

fn problem_lines(problem: Problem, ruling: Option<&Ruling>, request: &Request<'_>) -> Vec<u8> {
    let mut lines = lines(ruling, request);
    if let (Problem::Unauthorized, Some(auth)) = (problem, ruling.and_then(|ruling| ruling.auth.as_ref())) {
        lines.extend_from_slice(auth.challenge().as_bytes());
    }
    lines
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

/// Uses up processor time of this thread.
fn burn(work_us: u32) {
    let end_ns = thread_busy_ns() + u64::from(work_us) * 1000;
    while thread_busy_ns() < end_ns {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests;
