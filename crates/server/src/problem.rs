//! The pages for what cannot be served, made once: for people in HTML, for programs in JSON (RFC 9457).
//!
//! It owns their words. It must never name a file, a path or a cause that the peer has no business to know.

use std::sync::Arc;

use staunch_engine::{Answer, Answered};
use staunch_protocol::{Request, Status};

use crate::content::fields::{self, LINE_END};
use crate::content::folder::wants_problem_in_json;
use crate::page::{self, WAY_HOME};

/// Why there is no content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Problem {
    /// 400: the path is none.
    BadPath,
    /// 401: credentials are asked for.
    Unauthorized,
    /// 403: it may not be read.
    Forbidden,
    /// 403: a folder that has no index page may not be listed.
    Unlisted,
    /// 404
    NotFound,
    /// 410: a rule says so.
    Gone,
    /// 405: a method this server knows of but does not offer.
    Method,
    /// 412
    Precondition,
    /// 429: one client asks for too much.
    TooMany,
    /// 500: the disk failed.
    Failed,
    /// 501: a method this server does not know.
    UnknownMethod,
    /// 503: too much to load, or no descriptor left.
    Overloaded,
    /// 503: an application could not answer in time.
    Crowded,
    /// 503: a request that is not urgent gives way to others.
    GaveWay,
    /// 502: no server of an application can be reached.
    Unreachable,
    /// 502: what an application has answered is not HTTP.
    BadAnswer,
    /// 504: an application has not answered in time.
    NoAnswer,
}

/// How many kinds of problems there are.
const PROBLEMS_COUNT: usize = Problem::NoAnswer as usize + 1;

/// What the Allow field and OPTIONS answer (RFC 9110, section 10.2.1).
pub(crate) const ALLOW: &str = "GET, HEAD, OPTIONS";
/// The form of a problem depends on Accept.
const VARY: &str = "Vary: Accept\r\n";
/// The value of Cache-Control of a page.
const NO_CACHE: &str = "no-cache";
/// How long a peer is asked to stay away when there is too much to load, in seconds.
const RETRY_AFTER_S: &str = "1";

/// All pages, ready to be sent.
#[derive(Debug)]
pub(crate) struct Problems {
    pages: [Page; PROBLEMS_COUNT],
    in_json: [Page; PROBLEMS_COUNT],
}

#[derive(Debug)]
struct Page {
    status: Status,
    block: Arc<[u8]>,
    fields_bytes: usize,
}

impl Page {
    /// Fields and body.
    fn parts(&self) -> (&[u8], &[u8]) {
        let (fields, rest) = self.block.split_at(self.fields_bytes);
        (fields, &rest[LINE_END.len()..])
    }
}

impl Problems {
    /// Makes the pages.
    pub(crate) fn new() -> Self {
        const ALL: [Problem; PROBLEMS_COUNT] = [
            Problem::BadPath,
            Problem::Unauthorized,
            Problem::Forbidden,
            Problem::Unlisted,
            Problem::NotFound,
            Problem::Gone,
            Problem::Method,
            Problem::Precondition,
            Problem::TooMany,
            Problem::Failed,
            Problem::UnknownMethod,
            Problem::Overloaded,
            Problem::Crowded,
            Problem::GaveWay,
            Problem::Unreachable,
            Problem::BadAnswer,
            Problem::NoAnswer,
        ];
        Self {
            pages: ALL.map(|problem| made(problem, Form::Html)),
            in_json: ALL.map(|problem| made(problem, Form::Json)),
        }
    }

    /// Answers with a page in the form the request asks for, and with further field lines.
    pub(crate) fn answer(
        &self,
        problem: Problem,
        further: &[u8],
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        let pages = match Form::of(request) {
            Form::Html => &self.pages,
            Form::Json => &self.in_json,
        };
        let page = &pages[problem as usize];
        if further.is_empty() {
            return answer.block(page.status, &page.block, page.fields_bytes);
        }
        let (fields, body) = page.parts();
        answer.bytes(page.status, &[further, fields].concat(), body)
    }
}

impl Problem {
    /// The status it is answered with.
    pub(crate) fn status(self) -> Status {
        words(self).0
    }

    /// Field lines that belong to it whatever its page is.
    pub(crate) fn lines(self) -> String {
        match self {
            Self::Method | Self::UnknownMethod => format!("Allow: {ALLOW}\r\n"),
            Self::Overloaded | Self::TooMany => format!("Retry-After: {RETRY_AFTER_S}\r\n"),
            _ => String::new(),
        }
    }
}

/// 416 with the length that would have been satisfiable (RFC 9110, section 15.5.17).
pub(crate) fn answer_unsatisfiable(
    length_bytes: u64,
    further: &[u8],
    request: &Request<'_>,
    answer: Answer<'_>,
) -> Answered {
    let (status, form) = (Status::RANGE_NOT_SATISFIABLE, Form::of(request));
    let body = form.body(status, "The part of the content that was asked for does not exist.");
    let length = itoa::Buffer::new().format(length_bytes).to_owned();
    let fields = form.fields(&body, NO_CACHE, &format!("Content-Range: bytes */{length}\r\n"));
    answer.bytes(status, &[further, &fields].concat(), body.as_bytes())
}

fn made(problem: Problem, form: Form) -> Page {
    let (status, text) = words(problem);
    let body = form.body(status, text);
    let cache_control = if problem == Problem::GaveWay { "no-store" } else { NO_CACHE };
    let mut block = form.fields(&body, cache_control, &problem.lines());
    let fields_bytes = block.len();
    block.extend_from_slice(LINE_END);
    block.extend_from_slice(body.as_bytes());
    Page { status, block: block.into(), fields_bytes }
}

fn words(problem: Problem) -> (Status, &'static str) {
    match problem {
        Problem::BadPath => (Status::BAD_REQUEST, "The address is not one that can be understood."),
        Problem::Unauthorized => (Status::UNAUTHORIZED, "This is shown to those only who say who they are."),
        Problem::Forbidden => (Status::FORBIDDEN, "What stands at this address may not be shown."),
        Problem::Unlisted => (Status::FORBIDDEN, "This folder has no index page, and listings are off."),
        Problem::NotFound => (Status::NOT_FOUND, "There is nothing at this address."),
        Problem::Gone => (Status::GONE, "What stood at this address is gone."),
        Problem::Method => (Status::METHOD_NOT_ALLOWED, "Here things can be read, not changed."),
        Problem::Precondition => {
            (Status::PRECONDITION_FAILED, "The content is not what the request expected it to be.")
        }
        Problem::TooMany => {
            (Status::TOO_MANY_REQUESTS, "Too much at once from where you are. Please try again in a moment.")
        }
        Problem::Failed => (Status::INTERNAL_SERVER_ERROR, "The content could not be read."),
        Problem::UnknownMethod => (Status::NOT_IMPLEMENTED, "This server does not know the method."),
        Problem::Overloaded => {
            (Status::SERVICE_UNAVAILABLE, "Too much at once. Please try again in a moment.")
        }
        Problem::Crowded => (
            Status::SERVICE_UNAVAILABLE,
            "Too many at once to be answered soon. Please try again in a moment.",
        ),
        Problem::GaveWay => {
            (Status::SERVICE_UNAVAILABLE, "What is more urgent goes first. Please try again in a moment.")
        }
        Problem::Unreachable => {
            (Status::BAD_GATEWAY, "The application behind this server cannot be reached.")
        }
        Problem::BadAnswer => (
            Status::BAD_GATEWAY,
            "The application behind this server gave an answer that cannot be passed on.",
        ),
        Problem::NoAnswer => {
            (Status::GATEWAY_TIMEOUT, "The application behind this server did not answer in time.")
        }
    }
}

/// In which form a problem is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Html,
    Json,
}

impl Form {
    /// The one a request asks for.
    #[inline]
    fn of(request: &Request<'_>) -> Self {
        if wants_problem_in_json(request) { Self::Json } else { Self::Html }
    }

    fn body(self, status: Status, text: &str) -> String {
        match self {
            Self::Html => page::html(status, text, WAY_HOME),
            Self::Json => {
                let (code, title) = (status.code(), status.reason());
                format!("{{\"status\":{code},\"title\":\"{title}\",\"detail\":\"{text}\"}}\n")
            }
        }
    }

    fn fields(self, body: &str, cache_control: &str, further: &str) -> Vec<u8> {
        let media: &[u8] = match self {
            Self::Html => b"text/html; charset=utf-8",
            Self::Json => b"application/problem+json",
        };
        let mut out = Vec::with_capacity(256);
        fields::field(&mut out, "Content-Length", itoa::Buffer::new().format(body.len()).as_bytes());
        fields::field(&mut out, "Content-Type", media);
        fields::field(&mut out, "X-Content-Type-Options", b"nosniff");
        fields::field(&mut out, "Cache-Control", cache_control.as_bytes());
        out.extend_from_slice(VARY.as_bytes());
        out.extend_from_slice(further.as_bytes());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_stand_in_the_order_of_the_problems() {
        let problems = Problems::new();
        let code = |problem: Problem| problems.pages[problem as usize].status.code();
        assert_eq!(code(Problem::BadPath), 400);
        assert_eq!(code(Problem::Unauthorized), 401);
        assert_eq!(code(Problem::Unlisted), 403);
        assert_eq!(code(Problem::NotFound), 404);
        assert_eq!(code(Problem::TooMany), 429);
        assert_eq!(code(Problem::UnknownMethod), 501);
        assert_eq!(code(Problem::Overloaded), 503);
    }

    #[test]
    fn lengths_are_right() {
        let Problems { pages, in_json } = Problems::new();
        for page in pages.into_iter().chain(in_json) {
            let (fields, body) = page.parts();
            let (fields, length) = (String::from_utf8(fields.to_vec()).unwrap(), body.len());
            assert!(fields.starts_with(&format!("Content-Length: {length}\r\n")), "{fields}");
            assert!(fields.ends_with("\r\n") && !fields.ends_with("\r\n\r\n"));
        }
    }

    #[test]
    fn what_programs_read_is_json() {
        let Problems { pages, in_json } = Problems::new();
        for (page, human) in in_json.iter().zip(&pages) {
            let told: serde_json::Value = serde_json::from_slice(page.parts().1).unwrap();
            assert_eq!(told["status"], page.status.code());
            assert_eq!(told["title"], page.status.reason());
            let detail = told["detail"].as_str().unwrap();
            let text = String::from_utf8(human.block.to_vec()).unwrap();
            assert!(text.contains(&format!("<p>{detail}</p>")), "{text}");
            assert_eq!(human.status.code(), page.status.code());
        }
    }
}
