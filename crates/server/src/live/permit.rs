//! Which requests may publish, and read what is private.
//!
//! It owns the comparison of tokens, which takes as long whatever is wrong. It must never tell more than that
//! a token does not hold.

use std::sync::Arc;

use staunch_engine::{Answer, Answered};
use staunch_live::token::Granted;
use staunch_live::{Grants, Pattern, TopicName, Update};
use staunch_protocol::{Request, Status};

use super::mail::{LineOutcome, NotTaken};
use super::publish::ReadBody;
use super::reply::{INSUFFICIENT_SCOPE, refuse};

/// What is told to who shows no token, where one may make a difference.
const BEARER: &[u8] = b"WWW-Authenticate: Bearer\r\n";

/// What a request may do.
#[derive(Debug, Clone)]
pub(crate) enum Rights {
    /// The request shows no token.
    Anonymous,
    /// The request shows the server's own token.
    Everything,
    /// The token of the request grants this.
    Granted(Arc<Granted>),
    /// The token of the request does not hold.
    Invalid,
}

impl Rights {
    /// What may be read that is private, and when that ends, in seconds since 1970; 0 for never.
    pub(crate) fn reading(&self) -> (Grants, u64) {
        match self {
            Self::Everything => (Grants::new(Vec::new(), Pattern::new("*").into_iter().collect()), 0),
            Self::Granted(granted) => (granted.subscribe.clone(), granted.ends_at_s),
            Self::Anonymous | Self::Invalid => (Grants::default(), 0),
        }
    }

    /// Whether a topic may be read that is private.
    pub(crate) fn may_read(&self, topic: &TopicName) -> bool {
        match self {
            Self::Everything => true,
            Self::Granted(granted) => granted.subscribe.cover(topic),
            Self::Anonymous | Self::Invalid => false,
        }
    }

    /// Whether an update may be read: it is for everybody, or one of its topics is granted.
    pub(crate) fn may_read_update(&self, update: &Update) -> bool {
        !update.private || update.topics().any(|topic| self.may_read(topic))
    }

    /// Answers a request that may not read what a rule makes private, whether or not there is anything.
    pub(crate) fn refuse_reading(&self, topic: &TopicName, lines: &[u8], answer: Answer<'_>) -> Answered {
        match self {
            Self::Invalid => refuse_invalid(lines, answer),
            Self::Anonymous => {
                let lines = [lines, BEARER].concat();
                let sentence = format!("reading {topic} needs a token");
                refuse(Status::UNAUTHORIZED, &sentence, &lines, answer)
            }
            Self::Everything | Self::Granted(_) => {
                let lines = [lines, INSUFFICIENT_SCOPE].concat();
                let sentence = format!("the token does not grant reading {topic}");
                refuse(Status::FORBIDDEN, &sentence, &lines, answer)
            }
        }
    }

    /// Answers a request for a value that is not there, or that it may not read: it is not told which.
    pub(crate) fn refuse_absent(&self, lines: &[u8], answer: Answer<'_>) -> Answered {
        match self {
            Self::Everything => refuse(Status::NOT_FOUND, "there is no such topic", lines, answer),
            Self::Invalid => refuse_invalid(lines, answer),
            Self::Anonymous | Self::Granted(_) => {
                let sentence = "there is no such topic, or reading it needs a token that grants it";
                refuse(Status::NOT_FOUND, sentence, &[lines, BEARER].concat(), answer)
            }
        }
    }

    /// Whether anything may be published.
    pub(crate) fn may_publish_something(&self) -> bool {
        match self {
            Self::Everything => true,
            Self::Granted(granted) => !granted.publish.is_empty(),
            Self::Anonymous | Self::Invalid => false,
        }
    }

    /// Ends what is to be published before the first line with a topic that is not granted.
    pub(crate) fn restrict(&self, read: &mut ReadBody) {
        let Self::Granted(granted) = self else { return };
        let is_other = |topic: &TopicName| !granted.publish.cover(topic);
        let Some(place) =
            read.lines.iter().position(|(_, publication)| publication.topics.iter().any(is_other))
        else {
            return;
        };
        let (line, _) = read.lines[place];
        read.lines.truncate(place);
        let refused = NotTaken::new(403, "the token does not grant the topic");
        read.fault = Some(LineOutcome { line, became: Err(refused) });
    }

    /// Answers a request that may not publish (RFC 6750, section 3).
    pub(crate) fn refuse_publishing(&self, lines: &[u8], answer: Answer<'_>) -> Answered {
        match self {
            Self::Anonymous => {
                let lines = [lines, BEARER].concat();
                refuse(Status::UNAUTHORIZED, "publishing needs a token", &lines, answer)
            }
            Self::Invalid => refuse_invalid(lines, answer),
            Self::Everything | Self::Granted(_) => {
                let lines = [lines, INSUFFICIENT_SCOPE].concat();
                refuse(Status::FORBIDDEN, "the token grants no publishing", &lines, answer)
            }
        }
    }
}

/// Answers a request whose token does not hold.
pub(crate) fn refuse_invalid(lines: &[u8], answer: Answer<'_>) -> Answered {
    let lines = [lines, b"WWW-Authenticate: Bearer error=\"invalid_token\"\r\n"].concat();
    refuse(Status::UNAUTHORIZED, "the token is not valid", &lines, answer)
}

/// Answers where nobody may publish.
pub(crate) fn refuse_all(lines: &[u8], answer: Answer<'_>) -> Answered {
    let sentence = "nobody may publish here: the server has no `publish_token` and no `live_issuer`";
    refuse(Status::FORBIDDEN, sentence, lines, answer)
}

/// Whether no page asks, or one of this very server, or one whose origin is allowed. What came by TLS is not
/// for pages of the same name that came without: who stands between could have written those. What came
/// without may have come by TLS to a proxy.
pub(crate) fn is_allowed_page(
    request: &Request<'_>,
    is_secured: bool,
    allows: impl FnOnce(&[u8]) -> bool,
) -> bool {
    let Some(origin) = request.values(b"origin").next() else { return true };
    let plain = origin.strip_prefix(b"http://").filter(|_| !is_secured);
    let own = origin.strip_prefix(b"https://").or(plain);
    let is_own = match (own, request.values(b"host").next()) {
        (Some(own), Some(host)) => own.eq_ignore_ascii_case(host),
        _ => false,
    };
    is_own || allows(origin)
}

/// The token that a request shows: that of `Authorization: Bearer`, or else a cookie's. A cookie comes along
/// whichever page asks, so with an Origin it counts for this server's and for those that are allowed alone.
pub(crate) fn shown<'a>(
    request: &Request<'a>,
    is_secured: bool,
    cookie: &str,
    origins: &[String],
) -> Option<&'a [u8]> {
    let mut values = request.values(b"authorization");
    if let Some(value) = values.next() {
        // Two of them are none: it is not known which one is meant.
        let value = if values.next().is_none() { value } else { b"bearer " };
        let (scheme, token) = value.split_at_checked(value.iter().position(|byte| *byte == b' ')?)?;
        return scheme.eq_ignore_ascii_case(b"bearer").then(|| token.trim_ascii());
    }
    let allows = |origin: &[u8]| origins.iter().any(|known| known.as_bytes() == origin);
    let is_allowed = is_allowed_page(request, is_secured, allows);
    let pairs = request.values(b"cookie").flat_map(|value| value.split(|byte| *byte == b';'));
    let mut tokens = pairs.filter_map(|pair| {
        let pair = pair.trim_ascii();
        pair.strip_prefix(cookie.as_bytes())?.strip_prefix(b"=")
    });
    tokens.next().filter(|token| is_allowed && !token.is_empty())
}

/// Whether two tokens are the same, looking at every byte whatever comes before it.
pub(crate) fn is_same(shown: &[u8], token: &[u8]) -> bool {
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
