//! From content and a request to an answer: conditions, ranges, the whole.
//!
//! It must do nothing for a request without such fields but hand over the prepared block.

use staunch_engine::{Answer, Answered};
use staunch_protocol::Status;
use staunch_protocol::http1::{Method, Request};

use crate::content::entry::{Content, Representation};
use crate::content::multipart;
use crate::content::negotiate::IDENTITY;
use crate::content::range::{self, ByteRange, RangeAnswer};
use crate::content::validate::{self, Conditions, Verdict};
use crate::problem::{self, Problem, Problems};

/// Answers GET and HEAD with the representation at `place`, or the identity if that is not there.
#[inline]
pub(crate) fn answer_content(
    content: &Content,
    place: usize,
    problems: &Problems,
    request: &Request<'_>,
    answer: Answer<'_>,
) -> Answered {
    let chosen = content.representations.get(place).and_then(Option::as_ref).map(|one| (one, place));
    let Some((representation, place)) = chosen.or_else(|| content.identity().map(|one| (one, IDENTITY)))
    else {
        return problems.answer(Problem::Failed, answer);
    };
    if is_plain(request) {
        return answer_whole(representation, answer);
    }
    answer_conditionally(content, representation, place, problems, request, answer)
}

/// Conditions first, then ranges. Kept apart from the path of those that ask for the whole.
#[inline(never)]
fn answer_conditionally(
    content: &Content,
    representation: &Representation,
    place: usize,
    problems: &Problems,
    request: &Request<'_>,
    answer: Answer<'_>,
) -> Answered {
    match validate::evaluate(&conditions(request), representation.etag(), content.modified_unix_s) {
        Verdict::NotModified => answer.bytes(Status::NOT_MODIFIED, representation.fields_not_modified(), &[]),
        Verdict::Failed => problems.answer(Problem::Precondition, answer),
        Verdict::Proceed => match ranges(representation, request, answer.date()) {
            RangeAnswer::Ignore => answer_whole(representation, answer),
            RangeAnswer::Unsatisfiable => {
                problem::answer_unsatisfiable(representation.length_bytes(), answer)
            }
            RangeAnswer::One(range) => answer_part(representation, range, answer),
            // Of several parts it could not be said that each of them is encoded, only that their frame is.
            RangeAnswer::Many(_) if place != IDENTITY => answer_whole(representation, answer),
            RangeAnswer::Many(ranges) => answer_parts(representation, content.media.value, &ranges, answer),
        },
    }
}

/// Whether the request asks for the whole without conditions: nearly all do.
#[inline]
fn is_plain(request: &Request<'_>) -> bool {
    let names = Request::RANGE
        | Request::IF_NONE_MATCH
        | Request::IF_MODIFIED_SINCE
        | Request::IF_MATCH
        | Request::IF_UNMODIFIED_SINCE;
    !request.has_any(names)
}

#[inline]
fn answer_whole(representation: &Representation, answer: Answer<'_>) -> Answered {
    if representation.file.is_none() {
        return answer.block(Status::OK, &representation.block, representation.fields_bytes());
    }
    let end = representation.length_bytes();
    let piece = (end > 0).then(|| representation.piece(ByteRange { start: 0, end }));
    answer.pieces(Status::OK, representation.fields(), piece)
}

fn answer_part(representation: &Representation, range: ByteRange, answer: Answer<'_>) -> Answered {
    let mut fields = multipart::content_range(range, representation.length_bytes()).into_bytes();
    fields.extend_from_slice(b"Content-Length: ");
    fields.extend_from_slice(itoa::Buffer::new().format(range.length_bytes()).as_bytes());
    fields.extend_from_slice(b"\r\n");
    fields.extend_from_slice(representation.fields_of_part());
    answer.pieces(Status::PARTIAL_CONTENT, &fields, [representation.piece(range)])
}

fn answer_parts(
    representation: &Representation,
    media: &str,
    ranges: &[ByteRange],
    answer: Answer<'_>,
) -> Answered {
    let parts = multipart::cut(representation, media, ranges);
    answer.pieces(Status::PARTIAL_CONTENT, &parts.fields, parts.pieces)
}

fn conditions<'a>(request: &Request<'a>) -> Conditions<'a> {
    Conditions {
        if_match: list(request, request.if_match(), Request::IF_MATCH, b"if-match"),
        if_none_match: list(request, request.if_none_match(), Request::IF_NONE_MATCH, b"if-none-match"),
        if_modified_since: single(request, request.if_modified_since(), Request::IF_MODIFIED_SINCE),
        if_unmodified_since: single(request, request.if_unmodified_since(), Request::IF_UNMODIFIED_SINCE),
    }
}

/// All values of a field that is a list and may stand in several lines (RFC 9110, section 5.3).
fn list<'a>(request: &Request<'a>, first: Option<&'a [u8]>, bit: u16, name: &[u8]) -> Vec<&'a [u8]> {
    if request.repeated & bit == 0 { first.into_iter().collect() } else { request.values(name).collect() }
}

/// The value of a field that may stand only once; a repeated one is as good as none.
fn single<'a>(request: &Request<'a>, first: Option<&'a [u8]>, bit: u16) -> Option<&'a [u8]> {
    if request.repeated & bit == 0 { first } else { None }
}

/// Range is for GET alone (RFC 9110, section 14.2), and void if If-Range does not hold.
fn ranges(representation: &Representation, request: &Request<'_>, date: &[u8; 29]) -> RangeAnswer {
    let Some(range) = single(request, request.range(), Request::RANGE) else { return RangeAnswer::Ignore };
    if request.method != Method::Get {
        return RangeAnswer::Ignore;
    }
    if let Some(field) = request.if_range() {
        let once = request.repeated & Request::IF_RANGE == 0;
        let (etag, modified) = (representation.etag(), representation.modified());
        if !once || !validate::if_range_holds(field, etag, modified, date) {
            return RangeAnswer::Ignore;
        }
    }
    range::parse(range, representation.length_bytes())
}
