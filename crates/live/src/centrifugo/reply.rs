//! Replies to commands, each one line of JSON.
//!
//! It must never frame one: several go in one message.

use std::fmt::Write as _;

use super::{Ask, ClientError};
use crate::encoder::{append_value, quoted};
use crate::update::Update;
use crate::version::Version;

/// The reply to `connect`: the client, how often the server gives a sign of life, and in how many seconds a
/// token is to be shown anew.
pub fn connected(id: u32, client: &str, ping_s: u32, expires_in_s: Option<u64>) -> String {
    let (client, expires) = (quoted(client), expires(expires_in_s));
    let ping = format!("\"ping\":{ping_s},\"pong\":true");
    format!("{{\"id\":{id},\"connect\":{{\"client\":{client},\"version\":\"staunch\",{ping}{expires}}}}}")
}

/// The reply to `refresh`.
pub fn refreshed(id: u32, client: &str, expires_in_s: Option<u64>) -> String {
    let (client, expires) = (quoted(client), expires(expires_in_s));
    format!("{{\"id\":{id},\"refresh\":{{\"client\":{client},\"version\":\"staunch\"{expires}}}}}")
}

/// The reply to `subscribe`: from where the channel is read. What the client lacked follows as pushes, each
/// of which moves its place. `recovered` tells whether these are all, if it asked to recover.
pub fn subscribed(id: u32, from: Version, recovered: Option<bool>) -> String {
    let Version { epoch, number } = from;
    let recovered = recovered
        .map_or(String::new(), |recovered| format!(",\"was_recovering\":true,\"recovered\":{recovered}"));
    let position = format!("\"epoch\":\"{epoch}\",\"offset\":{number}");
    format!("{{\"id\":{id},\"subscribe\":{{\"recoverable\":true,{position}{recovered}}}}}")
}

/// The reply to `history`, with the version of all that there is.
pub fn history(id: u32, version: Version, publications: &[&Update]) -> String {
    let Version { epoch, number } = version;
    let mut text =
        format!("{{\"id\":{id},\"history\":{{\"epoch\":\"{epoch}\",\"offset\":{number},\"publications\":[");
    for (place, update) in publications.iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        append_publication(update, &mut text);
    }
    text.push_str("]}}");
    text
}

/// The reply to `unsubscribe`, `publish` and `ping`, whose result is empty.
pub fn done(id: u32, ask: &Ask) -> Option<String> {
    let name = match ask {
        Ask::Unsubscribe(_) => "unsubscribe",
        Ask::Publish(..) => "publish",
        Ask::Ping => "ping",
        _ => return None,
    };
    Some(format!("{{\"id\":{id},\"{name}\":{{}}}}"))
}

/// The reply that says why not.
pub fn refused(id: u32, error: ClientError) -> String {
    let ClientError { code, message, temporary } = error;
    let temporary = if temporary { ",\"temporary\":true" } else { "" };
    format!("{{\"id\":{id},\"error\":{{\"code\":{code},\"message\":{}{temporary}}}}}", quoted(message))
}

/// The first message where the URL says what is read: from where, and after how many milliseconds to come
/// back when the connection is cut.
pub fn welcome(from: Version, retry_ms: u64) -> String {
    let Version { epoch, number } = from;
    let position = format!("\"epoch\":\"{epoch}\",\"offset\":{number}");
    format!("{{\"push\":{{\"connect\":{{\"version\":\"staunch\",{position},\"retry\":{retry_ms}}}}}}}")
}

fn expires(in_s: Option<u64>) -> String {
    in_s.map_or(String::new(), |ttl| format!(",\"expires\":true,\"ttl\":{ttl}"))
}

fn append_publication(update: &Update, text: &mut String) {
    text.push_str("{\"data\":");
    let coded = append_value(&update.value, text);
    let _ = write!(text, ",\"offset\":{}", update.number);
    if let Some(coded) = coded {
        let _ = write!(text, ",\"tags\":{{\"{coded}\":\"1\"}}");
    }
    text.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::TopicName;
    use crate::topic::TopicId;
    use crate::update::Value;
    use crate::version::Epoch;

    fn update(number: u64, value: Value) -> Update {
        Update {
            number,
            topics: [(TopicId(0), TopicName::new("a").unwrap())].into(),
            value,
            patch: None,
            id: None,
            kind: None,
            retry_ms: None,
            private: false,
            stamp: None,
            is_foreign: false,
        }
    }

    #[test]
    fn replies_are_lines_of_json() {
        let json = update(3, Value::Json(b"{\"x\":1}"[..].into()));
        let text = update(6, Value::Text(b"a\"b"[..].into()));
        let bytes = update(7, Value::Binary(b"\xff"[..].into()));
        let version = Version { epoch: Epoch(0xe), number: 9 };
        let replies = [
            (
                connected(1, "c", 25, None),
                r#"{"id":1,"connect":{"client":"c","version":"staunch","ping":25,"pong":true}}"#,
            ),
            (
                connected(1, "c", 25, Some(60)),
                concat!(
                    r#"{"id":1,"connect":{"client":"c","version":"staunch","ping":25,"pong":true,"#,
                    r#""expires":true,"ttl":60}}"#
                ),
            ),
            (
                refreshed(1, "c", Some(60)),
                r#"{"id":1,"refresh":{"client":"c","version":"staunch","expires":true,"ttl":60}}"#,
            ),
            (
                subscribed(2, version, None),
                r#"{"id":2,"subscribe":{"recoverable":true,"epoch":"e","offset":9}}"#,
            ),
            (
                subscribed(2, version, Some(true)),
                concat!(
                    r#"{"id":2,"subscribe":{"recoverable":true,"epoch":"e","offset":9,"#,
                    r#""was_recovering":true,"recovered":true}}"#
                ),
            ),
            (history(3, version, &[]), r#"{"id":3,"history":{"epoch":"e","offset":9,"publications":[]}}"#),
            (
                history(3, version, &[&json, &text, &bytes]),
                concat!(
                    r#"{"id":3,"history":{"epoch":"e","offset":9,"publications":["#,
                    r#"{"data":{"x":1},"offset":3},{"data":"a\"b","offset":6},"#,
                    r#"{"data":"/w==","offset":7,"tags":{"base64":"1"}}]}}"#
                ),
            ),
            (
                refused(4, ClientError::NOT_AVAILABLE),
                r#"{"id":4,"error":{"code":108,"message":"not available"}}"#,
            ),
            (
                refused(5, ClientError::TOO_MANY_REQUESTS),
                r#"{"id":5,"error":{"code":111,"message":"too many requests","temporary":true}}"#,
            ),
            (
                welcome(version, 1234),
                r#"{"push":{"connect":{"version":"staunch","epoch":"e","offset":9,"retry":1234}}}"#,
            ),
        ];
        for (reply, expected) in replies {
            assert_eq!(reply, expected);
            assert!(serde_json::from_str::<serde_json::Value>(&reply).is_ok());
        }
        assert_eq!(done(6, &Ask::Unsubscribe("a".into())).as_deref(), Some(r#"{"id":6,"unsubscribe":{}}"#));
        assert_eq!(done(6, &Ask::Pong), None);
    }
}
