//! Who may publish.
//!
//! It owns the comparison of tokens, which takes as long whatever is wrong. It must never tell more than that
//! a token does not hold.

use staunch_engine::{Answer, Answered};
use staunch_protocol::Status;
use staunch_protocol::http1::Request;

use super::reply::refuse;

/// Whether the request may publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Permit {
    /// Everything.
    Everything,
    /// Nobody may.
    Nobody,
    /// It shows no token.
    Missing,
    /// Its token does not hold.
    Invalid,
}

impl Permit {
    /// What a request may that shows its token by `Authorization: Bearer`.
    pub(crate) fn of(token: Option<&[u8]>, request: &Request<'_>) -> Self {
        let Some(token) = token else { return Self::Nobody };
        match bearer(request) {
            None => Self::Missing,
            Some(shown) if is_same(shown, token) => Self::Everything,
            Some(_) => Self::Invalid,
        }
    }

    /// Answers a request that may not publish (RFC 6750, section 3).
    pub(crate) fn refuse(self, lines: &[u8], answer: Answer<'_>) -> Answered {
        let with = |line: &str| [lines, line.as_bytes()].concat();
        match self {
            Self::Nobody | Self::Everything => {
                let sentence = "nobody may publish here: the server has no `publish_token`";
                refuse(Status::FORBIDDEN, sentence, lines, answer)
            }
            Self::Missing => {
                let lines = with("WWW-Authenticate: Bearer\r\n");
                refuse(Status::UNAUTHORIZED, "publishing needs a token", &lines, answer)
            }
            Self::Invalid => {
                let lines = with("WWW-Authenticate: Bearer error=\"invalid_token\"\r\n");
                refuse(Status::UNAUTHORIZED, "the token does not hold", &lines, answer)
            }
        }
    }
}

/// The token of `Authorization: Bearer`, if there is one and no other.
fn bearer<'a>(request: &Request<'a>) -> Option<&'a [u8]> {
    let mut values = request.values(b"authorization");
    let value = values.next().filter(|_| values.next().is_none())?;
    let (scheme, token) = value.split_at_checked(value.iter().position(|byte| *byte == b' ')?)?;
    scheme.eq_ignore_ascii_case(b"bearer").then(|| token.trim_ascii())
}

/// Whether two tokens are the same, looking at every byte whatever comes before it.
fn is_same(shown: &[u8], token: &[u8]) -> bool {
    let differences = shown.iter().zip(token).fold(0, |all, (one, other)| all | (one ^ other));
    shown.len() == token.len() && std::hint::black_box(differences) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_the_same_or_not() {
        assert!(is_same(b"abc", b"abc"));
        for (shown, token) in [(&b"abd"[..], &b"abc"[..]), (b"ab", b"abc"), (b"abcd", b"abc"), (b"", b"abc")]
        {
            assert!(!is_same(shown, token));
        }
    }
}
