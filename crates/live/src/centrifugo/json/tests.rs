//! Lines of JSON as clients send them, and as they are told.

use super::super::Language;
use super::*;
use crate::name::TopicName;
use crate::topic::TopicId;
use crate::update::Value;
use crate::version::Epoch;

fn read(message: &str) -> Vec<(u32, Ask)> {
    read_commands(message.as_bytes()).unwrap().into_iter().map(|command| (command.id, command.ask)).collect()
}

#[test]
fn commands_of_the_client_for_browsers() {
    let subscribe =
        |recover, has_token| Ask::Subscribe(Subscription { channel: "a".into(), has_token, recover });
    let history =
        |limit, since, reverse| Ask::History(History { channel: "a".into(), limit, since, reverse });
    let since = || Some(("e".to_owned(), 7));
    let table = [
        (r#"{"id":1,"connect":{"token":"","name":"js"}}"#, vec![(1, Ask::Connect(None))]),
        (r#"{"id":1,"connect":{"token":"t"}}"#, vec![(1, Ask::Connect(Some("t".into())))]),
        (r#"{"id":2,"subscribe":{"channel":"a"}}"#, vec![(2, subscribe(None, false))]),
        (r#"{"id":2,"subscribe":{"channel":"a","token":"t"}}"#, vec![(2, subscribe(None, true))]),
        (
            r#"{"id":2,"subscribe":{"channel":"a","recover":true,"epoch":"e","offset":9}}"#,
            vec![(2, subscribe(Some(("e".into(), 9)), false))],
        ),
        (r#"{"id":3,"unsubscribe":{"channel":"a"}}"#, vec![(3, Ask::Unsubscribe("a".into()))]),
        (
            r#"{"id":4,"publish":{"channel":"a","data":{ "x":1.0 }}}"#,
            vec![(4, Ask::Publish("a".into(), Published::Json(b"{ \"x\":1.0 }".to_vec())))],
        ),
        (
            r#"{"id":5,"history":{"channel":"a","limit":3,"since":{"offset":7,"epoch":"e"}}}"#,
            vec![(5, history(Some(3), since(), false))],
        ),
        (r#"{"id":5,"history":{"channel":"a"}}"#, vec![(5, history(Some(0), None, false))]),
        (
            r#"{"id":5,"history":{"channel":"a","limit":-1,"reverse":true}}"#,
            vec![(5, history(None, None, true))],
        ),
        (r#"{"id":6,"refresh":{"token":"t"}}"#, vec![(6, Ask::Refresh("t".into()))]),
        (r#"{"id":7,"presence":{"channel":"a"}}"#, vec![(7, Ask::Other)]),
        (r#"{"id":8,"ping":{}}"#, vec![(8, Ask::Ping)]),
        ("{}", vec![(0, Ask::Pong)]),
        ("{\"id\":8,\"rpc\":{}}\n{}\n", vec![(8, Ask::Other), (0, Ask::Pong)]),
    ];
    for (message, expected) in table {
        assert_eq!(read(message), expected, "{message}");
    }
}

#[test]
fn what_is_no_command() {
    let many = "{}\n".repeat(COMMANDS_PER_MESSAGE_MAX + 1);
    for message in ["[]", "x", "{", r#"{"id":-1}"#, r#"{"id":1,"subscribe":{}}"#, &many] {
        assert_eq!(read_commands(message.as_bytes()), Err(ClientError::BAD_REQUEST), "{message}");
    }
}

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
        hash: None,
    }
}

/// Each reply is said so, and is JSON.
fn assert_said(replies: &[(u32, Reply<'_>, &str)]) {
    let mut message = Vec::new();
    for (id, reply, expected) in replies {
        message.clear();
        append_reply(*id, reply, &mut message);
        assert_eq!(String::from_utf8_lossy(&message), *expected);
        assert!(serde_json::from_slice::<serde_json::Value>(&message).is_ok());
    }
    append_reply(9, &Reply::Ping, &mut message);
    assert_eq!(message.iter().filter(|byte| **byte == b'\n').count(), 1, "several replies are lines");
}

#[test]
fn replies_are_lines_of_json() {
    let version = Version { epoch: Epoch(0xe), number: 9 };
    let connected = |expires_in_s| Reply::Connected { client: "c", ping_s: 25, expires_in_s };
    let subscribed = |recovered| Reply::Subscribed { from: version, recovered };
    assert_said(&[
        (
            1,
            connected(None),
            r#"{"id":1,"connect":{"client":"c","version":"staunch","ping":25,"pong":true}}"#,
        ),
        (
            1,
            connected(Some(60)),
            concat!(
                r#"{"id":1,"connect":{"client":"c","version":"staunch","ping":25,"pong":true,"#,
                r#""expires":true,"ttl":60}}"#
            ),
        ),
        (
            1,
            Reply::Refreshed { client: "c", expires_in_s: Some(60) },
            r#"{"id":1,"refresh":{"client":"c","version":"staunch","expires":true,"ttl":60}}"#,
        ),
        (2, subscribed(None), r#"{"id":2,"subscribe":{"recoverable":true,"epoch":"e","offset":9}}"#),
        (
            2,
            subscribed(Some(true)),
            concat!(
                r#"{"id":2,"subscribe":{"recoverable":true,"epoch":"e","offset":9,"#,
                r#""was_recovering":true,"recovered":true}}"#
            ),
        ),
        (
            4,
            Reply::Refused(ClientError::NOT_AVAILABLE),
            r#"{"id":4,"error":{"code":108,"message":"not available"}}"#,
        ),
        (
            5,
            Reply::Refused(ClientError::TOO_MANY_REQUESTS),
            r#"{"id":5,"error":{"code":111,"message":"too many requests","temporary":true}}"#,
        ),
        (6, Reply::Unsubscribed, r#"{"id":6,"unsubscribe":{}}"#),
        (7, Reply::Published, r#"{"id":7,"publish":{}}"#),
        (8, Reply::Ping, r#"{"id":8,"ping":{}}"#),
    ]);
    assert_eq!(
        String::from_utf8_lossy(&Language::Json.welcome(version, 1234)),
        r#"{"push":{"connect":{"version":"staunch","epoch":"e","offset":9,"retry":1234}}}"#
    );
}

#[test]
fn a_history_is_a_line_of_json() {
    let json = update(3, Value::Json(b"{\"x\":1}"[..].into()));
    let text = update(6, Value::Text(b"a\"b"[..].into()));
    let bytes = update(7, Value::Binary(b"\xff"[..].into()));
    let version = Version { epoch: Epoch(0xe), number: 9 };
    let publications = [&json, &text, &bytes];
    assert_said(&[
        (
            3,
            Reply::History { version, publications: &[] },
            r#"{"id":3,"history":{"epoch":"e","offset":9,"publications":[]}}"#,
        ),
        (
            3,
            Reply::History { version, publications: &publications },
            concat!(
                r#"{"id":3,"history":{"epoch":"e","offset":9,"publications":["#,
                r#"{"data":{"x":1},"offset":3},{"data":"a\"b","offset":6},"#,
                r#"{"data":"/w==","offset":7,"tags":{"base64":"1"}}]}}"#
            ),
        ),
    ]);
}
