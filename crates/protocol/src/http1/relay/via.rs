//! The way a message has gone (RFC 9110, section 7.6.3), and loops on it.

use super::super::field::list_members;
use super::refusal::RelayRefusal;
use crate::limits::HOPS_MAX;
use crate::message::{Request, Version};
use crate::status::Status;

const NAME: &[u8] = b"via";

/// Refuses a request that has come through here before, or through more proxies than any honest one. Commas
/// in a comment only add to the hops that are counted.
pub(super) fn check(request: &Request<'_>, pseudonym: &[u8]) -> Result<(), RelayRefusal> {
    let mut hops_count = 0;
    for hop in request.values(NAME).flat_map(list_members) {
        hops_count += 1;
        let receiver = hop.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty()).nth(1);
        if receiver.is_some_and(|receiver| receiver.eq_ignore_ascii_case(pseudonym)) {
            return Err(LOOPS);
        }
    }
    if hops_count > HOPS_MAX { Err(TOO_FAR) } else { Ok(()) }
}

const LOOPS: RelayRefusal =
    RelayRefusal { status: Status::LOOP_DETECTED, reason: "Via says that the request was here before" };
const TOO_FAR: RelayRefusal =
    RelayRefusal { status: Status::LOOP_DETECTED, reason: "Via names more than 16 proxies" };

const _: () = assert!(HOPS_MAX == 16);

/// What stands in front of our name: the version that the request came by.
pub(super) fn protocol(version: Version) -> &'static [u8] {
    match version {
        Version::Http10 => b"1.0 ",
        Version::Http11 => b"1.1 ",
        Version::Http2 => b"2 ",
    }
}
