//! From content and a request to an answer: conditions, ranges, the whole.
//!
//! It must do nothing for a request without such fields but hand over the prepared block.

use staunch_engine::{Answer, Answered};
use staunch_protocol::Status;
use staunch_protocol::{Method, Request};

use crate::content::entry::{Content, Representation};
use crate::content::fields;
use crate::content::multipart;
use crate::content::negotiate::{Encoding, IDENTITY};
use crate::content::range::{self, ByteRange, RangeAnswer};
use crate::content::validate::{self, Conditions, Verdict};
use crate::problem::{self, Problem, Problems};
use crate::rules::Ruling;

/// What rules add to an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AddedFields<'a> {
    /// What applies to the path. Content has the lines of it prepared.
    pub(crate) ruling: Option<&'a Ruling>,
    /// Lines for this request alone.
    pub(crate) granted: &'a [u8],
}

/// Where it depends on Accept what stands at a path. Vary may stand in several lines.
pub(crate) const VARY_ACCEPT: &[u8] = b"Vary: Accept\r\n";

impl AddedFields<'_> {
    /// Nothing.
    pub(crate) const NONE: Self = Self { ruling: None, granted: &[] };

    /// All lines, for what is not prepared.
    pub(crate) fn lines(&self) -> Vec<u8> {
        [self.ruling.map_or("", |ruling| &ruling.lines).as_bytes(), self.granted].concat()
    }
}

/// Answers GET and HEAD with the representation at `place`, or the identity if that is not there.
#[inline]
pub(crate) fn answer_content(
    content: &Content,
    place: usize,
    problems: &Problems,
    added: AddedFields<'_>,
    request: &Request<'_>,
    answer: Answer<'_>,
) -> Answered {
    let Some((representation, place)) = chosen(content, place) else {
        return problems.answer(Problem::Failed, &added.lines(), request, answer);
    };
    if is_plain(request) {
        return answer_whole(representation, added.granted, answer);
    }
    answer_conditionally(content, (representation, place), problems, added, request, answer)
}

#[inline]
fn chosen(content: &Content, place: usize) -> Option<(&Representation, usize)> {
    let chosen = content.representations.get(place).and_then(Option::as_ref).map(|one| (one, place));
    chosen.or_else(|| content.identity().map(|one| (one, IDENTITY)))
}

/// Answers with the representation at `place` as the page of a status. It has no validator and no parts, and
/// is not kept by caches: it stands for something else.
pub(crate) fn answer_page(
    content: &Content,
    place: usize,
    status: Status,
    lines: &[u8],
    answer: Answer<'_>,
) -> Answered {
    let Some((representation, place)) = chosen(content, place) else {
        return answer.bytes(status, b"Content-Length: 0\r\n", &[]);
    };
    let end = representation.length_bytes();
    let mut out = lines.to_vec();
    fields::field(&mut out, "Content-Length", itoa::Buffer::new().format(end).as_bytes());
    fields::field(&mut out, "Content-Type", content.media.value.as_bytes());
    if let Some(encoding) = Encoding::ALL.into_iter().find(|encoding| encoding.place() == place) {
        fields::field(&mut out, "Content-Encoding", encoding.name().as_bytes());
    }
    // A client that asks for JSON is told the problem in another form.
    out.extend_from_slice(b"Vary: Accept");
    if let Some(vary) = content.vary {
        out.extend_from_slice(&[b", ", vary.as_bytes()].concat());
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(b"X-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\n");
    let piece = (end > 0).then(|| representation.piece(ByteRange { start: 0, end }));
    answer.pieces(status, &out, piece)
}

/// Conditions first, then ranges. Kept apart from the path of those that ask for the whole.
#[inline(never)]
fn answer_conditionally(
    content: &Content,
    (representation, place): (&Representation, usize),
    problems: &Problems,
    added: AddedFields<'_>,
    request: &Request<'_>,
    answer: Answer<'_>,
) -> Answered {
    match validate::evaluate(&conditions(request), representation.etag(), content.modified_unix_s) {
        Verdict::NotModified => {
            let fields = [added.granted, representation.fields_not_modified()].concat();
            answer.bytes(Status::NOT_MODIFIED, &fields, &[])
        }
        Verdict::Failed => problems.answer(Problem::Precondition, &added.lines(), request, answer),
        Verdict::Proceed => match ranges(content, representation, request, answer.unix_ms() / 1000) {
            RangeAnswer::Ignore => answer_whole(representation, added.granted, answer),
            RangeAnswer::Unsatisfiable => {
                problem::answer_unsatisfiable(representation.length_bytes(), &added.lines(), request, answer)
            }
            RangeAnswer::One(range) => answer_part(representation, range, added.granted, answer),
            // Of several parts it could not be said that each of them is encoded, only that their frame is.
            RangeAnswer::Many(_) if place != IDENTITY => answer_whole(representation, added.granted, answer),
            RangeAnswer::Many(ranges) => {
                let mut parts = multipart::cut(representation, &content.media.value, &ranges);
                parts.fields.splice(..0, added.granted.iter().copied());
                answer.pieces(Status::PARTIAL_CONTENT, &parts.fields, parts.pieces)
            }
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
fn answer_whole(representation: &Representation, granted: &[u8], answer: Answer<'_>) -> Answered {
    if representation.file.is_none() && granted.is_empty() {
        return answer.block(Status::OK, &representation.block, representation.fields_bytes());
    }
    answer_in_pieces(representation, granted, answer)
}

fn answer_in_pieces(representation: &Representation, granted: &[u8], answer: Answer<'_>) -> Answered {
    let end = representation.length_bytes();
    let piece = (end > 0).then(|| representation.piece(ByteRange { start: 0, end }));
    if granted.is_empty() {
        return answer.pieces(Status::OK, representation.fields(), piece);
    }
    answer.pieces(Status::OK, &[granted, representation.fields()].concat(), piece)
}

fn answer_part(
    representation: &Representation,
    range: ByteRange,
    granted: &[u8],
    answer: Answer<'_>,
) -> Answered {
    let mut fields = granted.to_vec();
    fields.extend_from_slice(multipart::content_range(range, representation.length_bytes()).as_bytes());
    fields.extend_from_slice(b"Content-Length: ");
    fields.extend_from_slice(itoa::Buffer::new().format(range.length_bytes()).as_bytes());
    fields.extend_from_slice(b"\r\n");
    fields.extend_from_slice(representation.fields_of_part());
    answer.pieces(Status::PARTIAL_CONTENT, &fields, [representation.piece(range)])
}

/// The fields that make a request conditional.
pub(crate) fn conditions<'a>(request: &Request<'a>) -> Conditions<'a> {
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
fn ranges(
    content: &Content,
    representation: &Representation,
    request: &Request<'_>,
    unix_s: u64,
) -> RangeAnswer {
    let Some(range) = single(request, request.range(), Request::RANGE) else { return RangeAnswer::Ignore };
    if request.method != Method::Get {
        return RangeAnswer::Ignore;
    }
    if let Some(field) = request.if_range() {
        let once = request.repeated & Request::IF_RANGE == 0;
        // A date is strong only if the second that it names is over (RFC 9110, section 8.8.2.2).
        let is_over = content.modified_unix_s.is_some_and(|modified_s| modified_s != unix_s as i64);
        let modified = representation.modified().filter(|_| is_over);
        if !once || !validate::if_range_holds(field, representation.etag(), modified) {
            return RangeAnswer::Ignore;
        }
    }
    range::parse(range, representation.length_bytes())
}
