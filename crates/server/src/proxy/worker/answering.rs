//! Answers to clients: that of a server, or that none has answered.
//!
//! Bytes of a server must never be shown in an answer that it did not give.

use staunch_engine::{Answer, Answered};
use staunch_protocol::{Request, Status};

use super::ProxyWorker;
use crate::problem::Problem;
use crate::proxy::exchange::{Failure, Forwarded, without_accept};

impl ProxyWorker {
    /// Answers with the answer of the server.
    pub(super) fn answer(
        &mut self,
        mut forwarded: Box<Forwarded>,
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        let address = answer.address();
        forwarded.is_events = forwarded.is_stream() && !forwarded.answer.is_held;
        let Some(head) = forwarded.answer.head.take() else {
            self.keep(address, forwarded);
            return answer.later();
        };
        let mut fields = match forwarded.socket_key {
            Some(_) => without_accept(&head.fields),
            None => head.fields,
        };
        fields.extend_from_slice(&forwarded.lines);
        fields.extend(forwarded.stay.iter_mut().flat_map(|stay| std::mem::take(&mut stay.cookie)));
        if forwarded.shows_times {
            fields.extend_from_slice(forwarded.journey.server_timing().as_bytes());
        }
        if head.status == Status::SWITCHING_PROTOCOLS {
            self.begin_tunnel(address, forwarded);
            return answer.upgrade(&fields);
        }
        let is_whole = forwarded.answer.has_ended && forwarded.answer.trailers.is_empty();
        if !is_whole {
            forwarded.answer.is_open = true;
            forwarded.head = Vec::new();
            forwarded.body.kept = Vec::new();
            let reads = !forwarded.body.has_ended;
            let length_bytes = head.length_bytes.filter(|_| head.has_body);
            self.keep(address, forwarded);
            return answer.open(request, head.status, &fields, length_bytes, reads);
        }
        let body = forwarded.answer.take_kept();
        if head.has_body {
            let length = itoa::Buffer::new().format(body.len()).to_owned();
            fields.extend_from_slice(b"Content-Length: ");
            fields.extend_from_slice(length.as_bytes());
            fields.extend_from_slice(b"\r\n");
        }
        self.journey = Some(std::mem::take(&mut forwarded.journey));
        self.leave(*forwarded, address);
        answer.bytes(head.status, &fields, &body)
    }

    /// Answers for an application that has not.
    pub(super) fn answer_failure(
        &self,
        failure: Failure,
        lines: &[u8],
        request: &Request<'_>,
        answer: Answer<'_>,
    ) -> Answered {
        let (problem, further) = match failure {
            Failure::Crowded { spread_s } => (Problem::Crowded, format!("Retry-After: {spread_s}\r\n")),
            Failure::GaveWay { spread_s } => (Problem::GaveWay, format!("Retry-After: {spread_s}\r\n")),
            Failure::Excess { held } => (Problem::TooMany, share_fields(held)),
            Failure::NoLink => (Problem::Crowded, "Retry-After: 1\r\n".to_owned()),
            Failure::Unreachable => (Problem::Unreachable, String::new()),
            Failure::BadAnswer => (Problem::BadAnswer, String::new()),
            Failure::TimedOut => (Problem::NoAnswer, String::new()),
            Failure::ClientGone => return answer.bytes(client_gone(), b"Content-Length: 0\r\n", b""),
            Failure::Refused(refusal) => {
                let body = format!("{}: {}\n", refusal.status, refusal.reason);
                let fields =
                    format!("Content-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n", body.len());
                return answer.bytes(refusal.status, fields.as_bytes(), body.as_bytes());
            }
        };
        let further = [lines, further.as_bytes()].concat();
        self.shared.problems.answer(problem, &further, request, answer)
    }
}

/// Fields that tell a client how many requests it may have at once while others are there, and that none is
/// left (draft-ietf-httpapi-ratelimit-headers-10).
fn share_fields(held: u32) -> String {
    format!(
        "RateLimit-Policy: \"proxy_share\";q={held};qu=\"concurrent-requests\"\r\n\
         RateLimit: \"proxy_share\";r=0\r\n"
    )
}

/// The status that nginx logs for a client that has left before its answer.
fn client_gone() -> Status {
    Status::from_code(499).unwrap_or(Status::REQUEST_TIMEOUT)
}
