//! `docs/openapi.json` beside the server: each operation that it names is asked for, and what comes is what
//! it says.
//!
//! It must never take an answer that the document does not have.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::socket::{handshake, upgrade_lines};
use crate::world::{TOKEN, World};

const DOCUMENT: &str = include_str!("../../docs/openapi.json");
const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";
const JSON: &str = "Content-Type: application/json\r\n";

/// Method, path as the document names it, path as it is asked for, further field lines, body, status.
type Request<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str, u16);

const REQUESTS: &[Request<'_>] = &[
    ("post", "/publish", "/publish", JSON, r#"{"topic":"a","data":{"n":1}}"#, 200),
    ("post", "/publish", "/publish", JSON, r#"{"topic":"held","data":1}"#, 200),
    ("post", "/publish", "/publish", JSON, r#"{"topic":"held","data":2}"#, 202),
    ("post", "/publish", "/publish", FORM, "topic=b&data=1&private=on", 200),
    ("post", "/publish", "/publish", JSON, r#"{"data":1}"#, 400),
    ("post", "/publish", "/publish", JSON, r#"{"topic":"a","other":1}"#, 400),
    ("post", "/publish", "/publish", "Content-Type: text/csv\r\n", "a", 415),
    ("post", "/publish", "/publish", "Authorization: Bearer wrong\r\n", "", 401),
    ("put", "/topics/{name}", "/topics/a", JSON, r#"{"n":2}"#, 200),
    ("put", "/topics/{name}", "/topics/a", "If-None-Match: *\r\n", "2", 412),
    ("put", "/topics/{name}", "/topics/%24a", "", "2", 400),
    ("put", "/topics/{name}", "/topics/a", "Authorization: Bearer wrong\r\n", "2", 401),
    (
        "patch",
        "/topics/{name}",
        "/topics/a",
        "Content-Type: application/merge-patch+json\r\n",
        r#"{"n":3}"#,
        200,
    ),
    ("patch", "/topics/{name}", "/topics/a", "Content-Type: text/plain\r\n", "3", 415),
    ("get", "/live/{name}", "/live/a", "", "", 200),
    ("get", "/live/{name}", "/live/none", "", "", 404),
    ("get", "/live/{name}", "/live/a?after=1-1&wait=x", "", "", 400),
    ("get", "/live/{name}", "/live/secret", "", "", 401),
    ("delete", "/topics/{name}", "/topics/a", "", "", 200),
    ("get", "/list={symbols}", "/list=x,y", "", "", 200),
    ("get", "/quotes", "/quotes?symbols=x,y", "", "", 200),
    ("get", "/quotes", "/quotes", "", "", 400),
    ("get", "/events", "/events", "", "", 400),
    ("get", "/events", "/events?topic=secret", "", "", 401),
    ("get", "/.well-known/mercure", "/.well-known/mercure", "", "", 400),
    ("post", "/.well-known/mercure", "/.well-known/mercure", FORM, "topic=https://a.example/1&data=1", 200),
    ("post", "/.well-known/mercure", "/.well-known/mercure", JSON, "{}", 415),
    ("get", "/ws", "/ws", "", "", 426),
    ("get", "/ws", "/ws?format=xml", UPGRADE, "", 400),
    ("get", "/connection/websocket", "/connection/websocket", "", "", 426),
    ("get", "/ws/echo", "/ws/echo", "", "", 404),
    ("get", "/live.js", "/live.js", "", "", 200),
];
/// Stands for the field lines of a handshake.
const UPGRADE: &str = "upgrade";

fn document() -> Value {
    serde_json::from_str(DOCUMENT).expect("JSON")
}

/// What the document says of an answer, references followed.
fn expected(document: &Value, method: &str, path: &str, status: u16) -> Value {
    let said = &document["paths"][path][method]["responses"][status.to_string()];
    assert!(said.is_object(), "{method} {path}: no answer {status} in the document");
    match said["$ref"].as_str() {
        Some(place) => document.pointer(place.trim_start_matches('#')).expect("a reference").clone(),
        None => said.clone(),
    }
}

/// Whether the head of an answer has the fields and one of the types that the document names.
fn judge(said: &Value, field: impl Fn(&str) -> Option<String>, name: &str) {
    for wanted in said["headers"].as_object().into_iter().flatten() {
        assert!(field(wanted.0).is_some(), "{name}: no {}", wanted.0);
    }
    let known: Vec<&String> =
        said["content"].as_object().into_iter().flat_map(|types| types.keys()).collect();
    let came = field("content-type");
    let came = came.as_deref().and_then(|came| came.split(';').next());
    assert_eq!(came.is_some(), !known.is_empty(), "{name}: {came:?} of {known:?}");
    assert!(
        came.is_none_or(|came| known.iter().any(|known| *known == came)),
        "{name}: {came:?} of {known:?}"
    );
}

#[test]
fn each_operation_answers_as_the_document_says() {
    let settings =
        "live_topic = [{ match = \"held\", every = \"1h\" }, { match = \"secret\", private = true }]";
    let world = World::with_settings("epoll", &[], settings);
    let document = document();
    let publisher = format!("Authorization: Bearer {TOKEN}\r\n");
    for (method, path, asked, lines, body, status) in REQUESTS {
        let lines = match *lines {
            UPGRADE => upgrade_lines(),
            lines if *method == "get" || lines.contains("Authorization") => lines.to_owned(),
            lines => format!("{publisher}{lines}"),
        };
        let answer = world.ask(&method.to_uppercase(), asked, &lines, body.as_bytes());
        let name = format!("{method} {asked}");
        assert_eq!(answer.status, *status, "{name}: {}", answer.text());
        let said = expected(&document, method, path, *status);
        judge(&said, |field| answer.field(field).map(str::to_owned), &name);
        if said["content"]["application/json"]["schema"]["$ref"] == "#/components/schemas/Outcome" {
            let outcome: Value = serde_json::from_slice(&answer.body).expect("JSON");
            let known = document.pointer("/components/schemas/Outcome/properties").expect("properties");
            assert!(outcome.as_object().expect("an object").keys().all(|name| known.get(name).is_some()));
        }
    }
    for path in ["/events?topic=a", "/.well-known/mercure?topic=*"] {
        let named = path.split('?').next().expect("a path");
        let answer = world.ask("HEAD", path, "", b"");
        let said = expected(&document, "get", named, answer.status);
        judge(&said, |field| answer.field(field).map(str::to_owned), path);
    }
    for path in ["/ws", "/connection/websocket"] {
        let (_, head, _) = handshake(world.address(), &format!("GET {path} HTTP/1.1"), &upgrade_lines());
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        expected(&document, "get", path, 101);
    }
}

#[test]
fn the_document_has_every_method_and_each_is_asked() {
    let world = World::new("epoll", &[]);
    let document = document();
    for (path, item) in document["paths"].as_object().expect("paths") {
        let asked = path.replace("{name}", "a").replace("{symbols}", "a");
        let answer = world.ask("OPTIONS", &asked, "", b"");
        let allowed =
            answer.field("allow").unwrap_or_else(|| panic!("{path}: {}", answer.status)).to_lowercase();
        let allowed: BTreeSet<&str> =
            allowed.split(", ").filter(|method| !["head", "options"].contains(method)).collect();
        let methods: BTreeSet<&str> = item
            .as_object()
            .expect("an item")
            .keys()
            .map(String::as_str)
            .filter(|key| *key != "parameters")
            .collect();
        assert_eq!(methods, allowed, "{path}");
        for method in methods {
            let is_asked = REQUESTS.iter().any(|request| (request.0, request.1) == (method, &path[..]));
            assert!(is_asked, "{method} {path} is asked by no test");
        }
    }
}

/// `/live.js` has no types of its own: what its file of types names is there, and what can be set is named.
#[test]
fn types_of_the_client_name_what_it_has() {
    let (client, types) =
        (include_str!("../../packages/live/live.js"), include_str!("../../packages/live/live.d.ts"));
    let between = |text: &'static str, begin: &str, end: &str| {
        let (_, rest) = text.split_once(begin).unwrap_or_else(|| panic!("no {begin}"));
        rest.split_once(end).expect("an end").0
    };
    let names = |text: &str, colon: &str| -> BTreeSet<String> {
        let words = text.split([',', ';', '\n', '{', '}']).map(str::trim);
        let named = words.filter(|word| !word.starts_with(['/', '*']));
        named.filter_map(|word| word.split_once(colon)).map(|(name, _)| name.to_owned()).collect()
    };
    let mut settable = names(between(client, "this.options = {", "...given"), ": ");
    settable.extend(between(client, "constructor({ ", ", ...given })").split(", ").map(str::to_owned));
    let lines = between(types, "export interface Options {", "\n}").lines().map(str::trim);
    let options: BTreeSet<String> =
        lines.filter_map(|line| line.split_once("?: ")).map(|(name, _)| name.to_owned()).collect();
    assert_eq!(options, settable);
    let status = names(between(client, "this.status = { state: \"idle\", transport: this", "};"), ": ");
    let lines = between(types, "export interface Status {", "\n}").lines().map(str::trim);
    let named: BTreeSet<String> =
        lines.filter_map(|line| line.split_once(": ")).map(|(name, _)| name.to_owned()).collect();
    assert!(status.iter().all(|name| named.contains(name)), "{status:?} {named:?}");
    for name in ["live", "matches"] {
        assert!(client.contains(&format!("export function {name}(")));
        assert!(types.contains(&format!("export function {name}(")));
    }
    for name in ["onstatus", "ongap", "onfault"] {
        assert!(
            client.contains(&format!("this.{name}?.(")) && types.contains(&format!("{name}?: (")),
            "{name}"
        );
    }
}
