//! Which clients may ask anything of a site that demands certificates.
//!
//! It stands before everything that answers for a host, so that nothing there is had without a certificate.
//! It must never go by the name that the connection was made for: the request says which site it is for.

use staunch_engine::{Answer, Answered};
use staunch_protocol::Status;

use crate::config::ClientDemand;

/// What one gets that came without TLS, and so without a certificate, to a site that requires one.
const PLAIN: (&[u8], &[u8]) = (
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 73\r\n",
    b"403 Forbidden: a certificate is required here, and HTTPS to show it with\n",
);

/// Gives the answer back to be given by others: `Ok` if the site of the request, which demands this, admits
/// the client. A connection whose certificate is outdated ends with this answer in either case.
pub(crate) fn admit(demand: Option<ClientDemand>, mut answer: Answer<'_>) -> Result<Answer<'_>, Answer<'_>> {
    answer.end_if_outdated();
    match demand {
        Some(demand) if !demand.admits(answer.identity()) => Err(answer),
        _ => Ok(answer),
    }
}

/// Refuses a client that is not admitted: 421 over TLS, for on another connection it can show another
/// certificate (RFC 9110, section 15.5.20); 403 in plain text.
pub(crate) fn refuse(answer: Answer<'_>) -> Answered {
    if answer.is_secured() {
        return answer.misdirected();
    }
    let (fields, body) = PLAIN;
    answer.bytes(Status::FORBIDDEN, fields, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_is_as_long_as_it_says() {
        let (fields, body) = PLAIN;
        assert!(fields.ends_with(format!("Content-Length: {}\r\n", body.len()).as_bytes()));
    }
}
