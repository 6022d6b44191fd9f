//! Forms as bytes: the same frame for every reader, and what readers decode from it.

use std::sync::Arc;

use super::*;
use crate::form::{Coding, Transport};
use crate::name::TopicName;
use crate::topic::TopicId;

const EPOCH: Epoch = Epoch(0xab);

fn update(value: Value) -> Update {
    let topics = [(TopicId(0), TopicName::new("a \"b\"").unwrap())].into();
    Update {
        number: 7,
        topics,
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

fn made(update: &Update, shape: Shape, transport: Transport) -> String {
    let mut forms = FormSet::default();
    let form = Form::new(shape, transport, Coding::Identity);
    forms.insert(form);
    let made = Encoder::default().make(EPOCH, update, forms);
    assert_eq!(made.len(), 1);
    assert_eq!(made[0].0, form);
    String::from_utf8_lossy(&made[0].1).into_owned()
}

fn bytes(text: &str) -> Arc<[u8]> {
    text.as_bytes().into()
}

#[test]
fn what_readers_get() {
    use Shape::{Bare, Enveloped};
    use Transport::{Chunked, Plain, Socket};
    let json = Value::Json(bytes("{\"x\":1}"));
    let table = [
        (json.clone(), Bare, Plain, "id: #ab-7\ndata: {\"x\":1}\n\n"),
        (json.clone(), Bare, Chunked, "19\r\nid: #ab-7\ndata: {\"x\":1}\n\n\r\n"),
        (
            json.clone(),
            Enveloped,
            Plain,
            "id: #ab-7\ndata: {\"topic\":\"a \\\"b\\\"\",\"data\":{\"x\":1}}\n\n",
        ),
        (
            json,
            Enveloped,
            Socket,
            "\u{81}@{\"push\":{\"channel\":\"a \\\"b\\\"\",\"pub\":{\"data\":{\"x\":1},\"offset\":7}}}",
        ),
        (Value::Text(bytes("a\nb")), Bare, Plain, "id: #ab-7\ndata: a\ndata: b\n\n"),
        (
            Value::Text(bytes("a\nb")),
            Enveloped,
            Plain,
            "id: #ab-7\ndata: {\"topic\":\"a \\\"b\\\"\",\"data\":\"a\\nb\"}\n\n",
        ),
        (Value::Binary([0xff][..].into()), Bare, Plain, "id: #ab-7\ndata: /w==\n\n"),
        (
            Value::Binary([0xff][..].into()),
            Enveloped,
            Plain,
            "id: #ab-7\ndata: {\"topic\":\"a \\\"b\\\"\",\"data\":\"/w==\",\"base64\":true}\n\n",
        ),
        (Value::Gone, Bare, Plain, "event: deleted\nid: #ab-7\ndata: \n\n"),
        (
            Value::Gone,
            Enveloped,
            Plain,
            "id: #ab-7\ndata: {\"topic\":\"a \\\"b\\\"\",\"data\":null,\"deleted\":true}\n\n",
        ),
    ];
    for (value, shape, transport, expected) in table {
        let text = made(&update(value), shape, transport);
        let text = text.replace('\u{fffd}', "\u{81}");
        assert_eq!(text, expected);
    }
    let named = Update {
        id: Some("urn:1".into()),
        kind: Some("goal".into()),
        retry_ms: Some(9),
        ..update(Value::Text(bytes("1")))
    };
    assert_eq!(made(&named, Bare, Plain), "event: goal\nid: urn:1\nretry: 9\ndata: 1\n\n");
}

#[test]
fn a_patch_is_its_own_form() {
    let patched =
        Update { patch: Some(bytes("{\"x\":2}")), ..update(Value::Json(bytes("{\"x\":2,\"y\":1}"))) };
    let text = made(&patched, Shape::Patch, Transport::Plain);
    assert_eq!(text, "id: #ab-7\ndata: {\"topic\":\"a \\\"b\\\"\",\"patch\":{\"x\":2}}\n\n");
    let text = made(&patched, Shape::Patch, Transport::Socket);
    assert!(
        text.ends_with("\"pub\":{\"data\":{\"x\":2},\"offset\":7,\"tags\":{\"patch\":\"1\"}}}}"),
        "{text}"
    );
    let mut forms = FormSet::default();
    Form::all().for_each(|form| forms.insert(form));
    let all = Encoder::default().make(EPOCH, &patched, forms);
    assert_eq!(all.len(), Form::COUNT);
    let whole = Encoder::default().make(EPOCH, &update(Value::Text(bytes("1"))), forms);
    assert_eq!(whole.len(), Form::COUNT / 3 * 2, "without a patch there is no form of it");
}

/// Each held form costs one compression at most, forms that differ in framing alone share it, and nothing is
/// compressed that nobody holds.
#[test]
fn compressions_are_counted() {
    let long = update(Value::Text(bytes(&"a value that is long ".repeat(20))));
    let mut encoder = Encoder::default();
    encoder.make(EPOCH, &long, FormSet::default());
    assert_eq!(encoder.compressions(), 0);
    let mut forms = FormSet::default();
    for transport in [Transport::Chunked, Transport::Plain] {
        for coding in [Coding::Identity, Coding::Gzip, Coding::Deflate, Coding::Zstd] {
            forms.insert(Form::new(Shape::Enveloped, transport, coding));
        }
    }
    let made = encoder.make(EPOCH, &long, forms);
    assert_eq!((made.len(), encoder.compressions()), (6, 2), "one for gzip and deflate, one for zstd");
    assert!(made.iter().filter(|(_, bytes)| bytes.len() < 150).count() == 4);
    encoder.make(EPOCH, &update(Value::Text(bytes("short"))), forms);
    assert_eq!(encoder.compressions(), 2, "what is short is stored");
}
