//! Parameters of a Mercure subscription (draft-dunglas-mercure, section 4; and as 0.x has them).
//!
//! It owns which parameter asks for what. It must never take a parameter of matching that it does not know: a
//! reader would get less than it asked for.

use std::fmt;

use crate::body::decode;
use crate::interest::{Grants, Interest, InterestFault};
use crate::limits::INTERESTS_PER_STREAM_MAX;
use crate::name::{NameFault, TopicName};
use crate::pattern::Pattern;

/// What a subscriber asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// Topics, patterns, grants.
    pub interest: Interest,
    /// The id to resume from, if the query has one; a field of the request comes first.
    pub last_id: Option<String>,
}

/// Why a subscription is refused; the answer is 400.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubscriptionFault {
    /// A `match_...` that is none.
    Unknown(String),
    /// A value that is neither name nor pattern: the parameter, and why.
    Value(&'static str, NameFault),
    /// None, or too many.
    Interest(InterestFault),
}

impl fmt::Display for SubscriptionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => {
                write!(f, "`{name}` is not known here; there are `match`, `match_urlpattern` and `topic`")
            }
            Self::Value(name, fault) => write!(f, "`{name}`: {fault}"),
            Self::Interest(InterestFault::Nothing) => write!(f, "`match` is missing: which topics?"),
            Self::Interest(InterestFault::TooMany(limit)) => {
                write!(f, "`match`, `match_urlpattern` and `topic` stand more than {limit} times")
            }
            Self::Interest(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for SubscriptionFault {}

/// Reads a subscription from the pairs of a query, decoded.
///
/// # Errors
/// Names the parameter.
pub fn read_subscription(
    pairs: &[(String, String)],
    grants: Grants,
) -> Result<Subscription, SubscriptionFault> {
    let asked = pairs.iter().filter(|(name, _)| name == "topic" || name.starts_with("match")).count();
    if asked > INTERESTS_PER_STREAM_MAX {
        return Err(SubscriptionFault::Interest(InterestFault::TooMany(INTERESTS_PER_STREAM_MAX)));
    }
    let (mut names, mut patterns, mut last_id) = (Vec::new(), Vec::new(), None);
    for (name, value) in pairs {
        match &name[..] {
            "match" | "topic" if value == "*" => patterns.extend(Pattern::new("*")),
            "match" | "match_exact" => names.push(exact("match", value)?),
            "match_urlpattern" => {
                let faulty = |fault| SubscriptionFault::Value("match_urlpattern", fault);
                let granted = grants.url_pattern(value).map_err(faulty)?;
                let pattern = granted.map_or_else(|| Pattern::url_without_regexps(value), Ok);
                patterns.push(pattern.map_err(faulty)?);
            }
            // As 0.x has it: a template, and also the topic of just that name.
            "topic" => {
                names.push(exact("topic", value)?);
                match Pattern::template(value) {
                    Ok(template) if value.contains('{') => patterns.push(template),
                    Ok(_) | Err(NameFault::NoTemplate) => {}
                    Err(fault) => return Err(SubscriptionFault::Value("topic", fault)),
                }
            }
            "last_event_id" | "lastEventID" | "Last-Event-ID" => last_id = Some(value.clone()),
            other if other.starts_with("match") => return Err(SubscriptionFault::Unknown(other.to_owned())),
            _ => {}
        }
    }
    // A template of 0.x is asked for by name and as a template.
    let limit = 2 * INTERESTS_PER_STREAM_MAX;
    let interest = Interest::new(names, patterns, grants, limit).map_err(SubscriptionFault::Interest)?;
    Ok(Subscription { interest, last_id })
}

/// Whether a topic stands where the hub itself speaks: its path, resolved against the hub's URL, is that of
/// the hub or below it, whichever scheme and authority it names. Nobody else publishes there.
pub fn is_reserved(topic: &TopicName) -> bool {
    let topic = topic.as_str().replace('\\', "/");
    let (scheme, rest) = match topic.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
        _ => (None, &topic[..]),
    };
    let path = match (rest.strip_prefix("//"), scheme) {
        (Some(behind), _) => behind.find(['/', '?', '#']).map_or("", |start| &behind[start..]).to_owned(),
        (None, None) if !rest.starts_with('/') => format!("/.well-known/{rest}"),
        (None, _) => rest.to_owned(),
    };
    let path = path.split(['?', '#']).next().unwrap_or_default().replace('+', "%2B");
    let Ok(decoded) = decode(path.as_bytes()) else { return false };
    let mut names: Vec<&str> = Vec::new();
    for name in decoded.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    names.starts_with(&[".well-known", "mercure"])
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

fn exact(parameter: &'static str, value: &str) -> Result<TopicName, SubscriptionFault> {
    TopicName::new(value).map_err(|fault| SubscriptionFault::Value(parameter, fault))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<Subscription, SubscriptionFault> {
        read_subscription(&crate::body::decode_form(query.as_bytes()).unwrap(), Grants::default())
    }

    #[test]
    fn what_subscribers_ask_for() {
        let table = [
            ("match=https://e.com/1", &["https://e.com/1"][..], &["https://e.com/2"][..]),
            ("match=a&match=b.*", &["a", "b.*"], &["b.c"]),
            ("match=*", &["a", "https://e.com/1"], &[]),
            ("topic=*", &["a"], &[]),
            ("match_urlpattern=https://e.com/:id", &["https://e.com/1"], &["https://e.com/1/2"]),
            (
                "topic=https://e.com/%7Bid%7D",
                &["https://e.com/1", "https://e.com/{id}"],
                &["https://e.com/1/2"],
            ),
            ("topic=https://e.com/1", &["https://e.com/1"], &["https://e.com/2"]),
        ];
        for (query, covered, other) in table {
            let interest = read(query).unwrap().interest;
            let covers = |name: &&str| interest.covers(&TopicName::new(name).unwrap());
            assert!(covered.iter().all(covers), "{query}");
            assert!(!other.iter().any(covers), "{query}");
        }
        for name in ["last_event_id", "lastEventID", "Last-Event-ID"] {
            let asked = read(&format!("topic=a&{name}=e-1&authorization=x")).unwrap();
            assert_eq!(asked.last_id.as_deref(), Some("e-1"));
        }
    }

    #[test]
    fn a_regular_expression_is_read_for_whom_it_is_granted() {
        let text = "https://e.com/:x(\\d+)";
        let pairs = [("match_urlpattern".to_owned(), text.to_owned())];
        let read = |patterns: Vec<Pattern>| read_subscription(&pairs, Grants::new(Vec::new(), patterns));
        let refused = Err(SubscriptionFault::Value("match_urlpattern", NameFault::Regexp));
        assert_eq!(read(Vec::new()), refused);
        assert_eq!(read(vec![Pattern::url("https://e.com/*").unwrap()]), refused);
        assert_eq!(read(vec![Pattern::template(text).unwrap()]), refused);
        for granted in [Pattern::url(text).unwrap(), Pattern::new("*").unwrap()] {
            let interest = read(vec![granted]).unwrap().interest;
            assert!(interest.covers(&TopicName::new("https://e.com/12").unwrap()));
        }
    }

    /// Each of them would be large: they are counted before one is looked at.
    #[test]
    fn patterns_are_counted_before_they_are_read() {
        let query = "match_urlpattern=a:///(%5Cw%7B200%7D)&".repeat(240);
        let told = format!(
            "`match`, `match_urlpattern` and `topic` stand more than {INTERESTS_PER_STREAM_MAX} times"
        );
        assert_eq!(read(query.trim_end_matches('&')).unwrap_err().to_string(), told);
        let mut refused = None;
        let pairs = crate::body::decode_form(query.trim_end_matches('&').as_bytes()).unwrap();
        let measured = allocation_counter::measure(|| {
            refused = Some(read_subscription(&pairs, Grants::default()).is_err());
        });
        assert_eq!((refused, measured.count_total), (Some(true), 0));
    }

    #[test]
    fn what_is_refused() {
        let many = "topic=a&".repeat(INTERESTS_PER_STREAM_MAX + 1);
        let wild = format!("topic={}", "{a}x".repeat(40));
        let table = [
            ("", "`match` is missing: which topics?"),
            (
                "match_uritemplate=a",
                "`match_uritemplate` is not known here; there are `match`, `match_urlpattern` and `topic`",
            ),
            ("match=", "`match`: a topic's name must not be empty"),
            ("topic=$x", "`topic`: a topic's name must not begin with `$`"),
            ("match_urlpattern=/a", "`match_urlpattern`: this is not a URL pattern with a scheme"),
            (
                "match_urlpattern=https://e.com/(x)",
                "`match_urlpattern`: a regular expression in a URL pattern needs a token that grants this \
                 very pattern",
            ),
            (&wild, "`topic`: a pattern has at most 32 wildcards"),
            (&many, "`match`, `match_urlpattern` and `topic` stand more than 64 times"),
        ];
        for (query, told) in table {
            assert_eq!(read(query).unwrap_err().to_string(), told);
        }
    }

    #[test]
    fn where_the_hub_itself_speaks() {
        for (topic, reserved) in [
            ("/.well-known/mercure", true),
            ("/.well-known/mercure/subscriptions/x", true),
            ("/.well-known/%6Dercure/subscriptions", true),
            ("/.well%2Dknown/mercure/x", true),
            ("https://e.com/.well-known/mercure/subscriptions/a?b", true),
            ("//e.com/.well-known/mercure", true),
            ("mercure/subscriptions/x", true),
            ("/a/../.well-known/./mercure/x", true),
            ("/a&b=c/../.well-known/mercure", true),
            ("/.well-known/mercure#x", true),
            ("/.well-known/mercury", false),
            ("/.well-known/mercureX/a", false),
            ("https://e.com/books/1", false),
            ("https://e.com/?/.well-known/mercure", false),
            ("a/.well-known/mercure", false),
            ("urn:a:b", false),
            ("a", false),
        ] {
            assert_eq!(is_reserved(&TopicName::new(topic).unwrap()), reserved, "{topic}");
        }
    }
}
