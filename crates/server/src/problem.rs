//! The pages for what cannot be served, made once.
//!
//! It owns their words. It must never name a file, a path or a cause that the peer has no business to know.

use std::sync::Arc;

use staunch_engine::{Answer, Answered};
use staunch_protocol::Status;

use crate::content::fields;

/// Why there is no content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Problem {
    /// 400: the path is none.
    BadPath,
    /// 401: credentials are asked for.
    Unauthorized,
    /// 403: it may not be read, or a folder may not be listed.
    Forbidden,
    /// 404
    NotFound,
    /// 405: a method this server knows of but does not offer.
    Method,
    /// 412
    Precondition,
    /// 500: the disk failed.
    Failed,
    /// 501: a method this server does not know.
    UnknownMethod,
    /// 503: too much to load, or no descriptor left.
    Overloaded,
}

/// What the Allow field and OPTIONS answer (RFC 9110, section 10.2.1).
pub(crate) const ALLOW: &str = "GET, HEAD, OPTIONS";
/// How long a peer is asked to stay away when there is too much to load, in seconds.
const RETRY_AFTER_S: &str = "1";

/// All pages, ready to be sent.
#[derive(Debug)]
pub(crate) struct Problems {
    pages: [Page; 9],
}

#[derive(Debug)]
struct Page {
    status: Status,
    block: Arc<[u8]>,
    fields_bytes: usize,
}

impl Problems {
    /// Makes the pages.
    pub(crate) fn new() -> Self {
        const ALL: [Problem; 9] = [
            Problem::BadPath,
            Problem::Unauthorized,
            Problem::Forbidden,
            Problem::NotFound,
            Problem::Method,
            Problem::Precondition,
            Problem::Failed,
            Problem::UnknownMethod,
            Problem::Overloaded,
        ];
        Self { pages: ALL.map(page) }
    }

    /// Answers with a page, and with further field lines.
    pub(crate) fn answer(&self, problem: Problem, further: &[u8], answer: Answer<'_>) -> Answered {
        let page = &self.pages[problem as usize];
        if further.is_empty() {
            return answer.block(page.status, &page.block, page.fields_bytes);
        }
        let (fields, body) = page.block.split_at(page.fields_bytes);
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
            Self::Overloaded => format!("Retry-After: {RETRY_AFTER_S}\r\n"),
            _ => String::new(),
        }
    }
}

/// 416 with the length that would have been satisfiable (RFC 9110, section 15.5.17).
pub(crate) fn answer_unsatisfiable(length_bytes: u64, further: &[u8], answer: Answer<'_>) -> Answered {
    let status = Status::RANGE_NOT_SATISFIABLE;
    let body = html(status, "The part of the content that was asked for does not exist.");
    let length = itoa::Buffer::new().format(length_bytes).to_owned();
    let fields = fields_of(&body, &format!("Content-Range: bytes */{length}\r\n"));
    answer.bytes(status, &[further, &fields].concat(), body.as_bytes())
}

fn page(problem: Problem) -> Page {
    let (status, text) = words(problem);
    let body = html(status, text);
    let mut block = fields_of(&body, &problem.lines());
    let fields_bytes = block.len();
    block.extend_from_slice(body.as_bytes());
    Page { status, block: block.into(), fields_bytes }
}

fn words(problem: Problem) -> (Status, &'static str) {
    match problem {
        Problem::BadPath => (Status::BAD_REQUEST, "The address is not one that can be understood."),
        Problem::Unauthorized => (Status::UNAUTHORIZED, "This is shown to those only who say who they are."),
        Problem::Forbidden => (Status::FORBIDDEN, "What stands at this address may not be shown."),
        Problem::NotFound => (Status::NOT_FOUND, "There is nothing at this address."),
        Problem::Method => (Status::METHOD_NOT_ALLOWED, "Here things can be read, not changed."),
        Problem::Precondition => {
            (Status::PRECONDITION_FAILED, "The content is not what the request expected it to be.")
        }
        Problem::Failed => (Status::INTERNAL_SERVER_ERROR, "The content could not be read."),
        Problem::UnknownMethod => (Status::NOT_IMPLEMENTED, "This server does not know the method."),
        Problem::Overloaded => {
            (Status::SERVICE_UNAVAILABLE, "Too much at once. Please try again in a moment.")
        }
    }
}

fn fields_of(body: &str, further: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    fields::field(&mut out, "Content-Length", itoa::Buffer::new().format(body.len()).as_bytes());
    fields::field(&mut out, "Content-Type", b"text/html; charset=utf-8");
    fields::field(&mut out, "X-Content-Type-Options", b"nosniff");
    fields::field(&mut out, "Cache-Control", b"no-cache");
    out.extend_from_slice(further.as_bytes());
    out.extend_from_slice(b"\r\n");
    out
}

fn html(status: Status, text: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{status}</title>\n\
         <style>:root{{color-scheme:light dark}}body{{font:1.1rem/1.6 system-ui,sans-serif;\
         max-width:34rem;margin:18vh auto;padding:0 1.5rem}}h1{{font-size:1.5rem}}</style>\n\
         <h1>{status}</h1>\n<p>{text}</p>\n</html>\n"
    )
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
        assert_eq!(code(Problem::NotFound), 404);
        assert_eq!(code(Problem::UnknownMethod), 501);
        assert_eq!(code(Problem::Overloaded), 503);
    }

    #[test]
    fn lengths_are_right() {
        for page in Problems::new().pages {
            let fields = String::from_utf8(page.block[..page.fields_bytes].to_vec()).unwrap();
            let length = page.block.len() - page.fields_bytes;
            assert!(fields.starts_with(&format!("Content-Length: {length}\r\n")), "{fields}");
            assert!(fields.ends_with("\r\n\r\n"));
        }
    }
}
