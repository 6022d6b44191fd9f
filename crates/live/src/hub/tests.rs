//! What the hub takes, refuses, numbers and tells.

use super::*;
use crate::form::{Coding, Form, Shape, Transport};
use crate::limits::VALUE_BYTES_DEFAULT;
use crate::pattern::Pattern;
use crate::topic::TopicRules;
use crate::update::Value;

mod differing;
mod forms;

fn name(text: &str) -> TopicName {
    TopicName::new(text).unwrap()
}

fn text(topic: &str, value: &str) -> Publication {
    Publication::new(name(topic), Value::of_bytes(value.as_bytes()))
}

fn hub(rules: &[(&str, TopicRules)]) -> Hub {
    let mut settings = HubSettings::default();
    for (fits, rules) in rules {
        settings.add_rules(fits, rules.clone()).unwrap();
    }
    Hub::new(settings, Epoch(1))
}

fn of_kind(kind: Kind) -> TopicRules {
    TopicRules { kind, ..TopicRules::default() }
}

fn published(hub: &mut Hub, publication: Publication) -> Result<u64, PublishFault> {
    hub.publish(publication, 0).map(|accepted| accepted.version.map_or(0, |version| version.number))
}

#[test]
fn numbers_grow_over_all_topics() {
    let mut hub = hub(&[]);
    assert_eq!(published(&mut hub, text("a", "1")), Ok(1));
    assert_eq!(published(&mut hub, text("b", "1")), Ok(2));
    assert_eq!(published(&mut hub, text("a", "2")), Ok(3));
    let (version, update) = hub.value(&name("a")).unwrap();
    assert_eq!((version.to_string(), update.value.bytes()), ("1-3".to_owned(), &b"2"[..]));
    assert!(hub.value(&name("c")).is_none());
}

#[test]
fn what_is_wrong_with_a_publication() {
    let json = ("j", of_kind(Kind::Json));
    let mut hub = hub(&[json]);
    let patch = |topic| Publication { content: Content::Patch(serde_json::json!({})), ..text(topic, "") };
    let table = [
        (Publication { topics: Vec::new(), ..text("a", "") }, PublishFault::NoTopic, 400),
        (Publication { id: Some("#1".into()), ..text("a", "") }, PublishFault::Id, 400),
        (Publication { id: Some("".into()), ..text("a", "") }, PublishFault::Id, 400),
        (Publication { id: Some("a\nb".into()), ..text("a", "") }, PublishFault::Id, 400),
        (Publication { id: Some("a".repeat(257).into()), ..text("a", "") }, PublishFault::Id, 400),
        (Publication { kind: Some("a\rb".into()), ..text("a", "") }, PublishFault::Kind, 400),
        (text("a", &"x".repeat(VALUE_BYTES_DEFAULT + 1)), PublishFault::TooLong(VALUE_BYTES_DEFAULT), 413),
        (text("j", "no json"), PublishFault::NotJson, 400),
        (patch("j"), PublishFault::NothingToPatch, 409),
        (Publication { expected: Expected::Something, ..text("a", "") }, PublishFault::NotAsExpected, 412),
    ];
    for (publication, fault, status) in table {
        assert_eq!(published(&mut hub, publication), Err(fault.clone()));
        assert_eq!(fault.status(), status);
    }
    assert!(hub.take_letter().is_none(), "nothing was changed");
    published(&mut hub, text("a", "no json")).unwrap();
    assert_eq!(published(&mut hub, patch("a")), Err(PublishFault::NothingToPatch));
}

#[test]
fn conditions() {
    let mut hub = hub(&[]);
    let with = |expected| Publication { expected, ..text("a", "x") };
    let version = |number| Version { epoch: Epoch(1), number };
    assert_eq!(published(&mut hub, with(Expected::Nothing)), Ok(1));
    assert_eq!(published(&mut hub, with(Expected::Nothing)), Err(PublishFault::NotAsExpected));
    assert_eq!(published(&mut hub, with(Expected::OneOf(vec![version(1)]))), Ok(2));
    assert_eq!(
        published(&mut hub, with(Expected::OneOf(vec![version(1)]))),
        Err(PublishFault::NotAsExpected)
    );
    assert_eq!(
        published(&mut hub, with(Expected::NoneOf(vec![version(2)]))),
        Err(PublishFault::NotAsExpected)
    );
    assert_eq!(published(&mut hub, with(Expected::NoneOf(vec![version(1)]))), Ok(3));
    assert_eq!(published(&mut hub, Publication { content: Content::Gone, ..text("a", "") }), Ok(4));
    assert_eq!(published(&mut hub, with(Expected::Something)), Err(PublishFault::NotAsExpected));
}

#[test]
fn documents_and_their_differences() {
    let mut hub = hub(&[("j", of_kind(Kind::Json))]);
    let put = |value: &str| text("j", value);
    let last = |hub: &Hub| {
        let (_, update) = hub.value(&name("j")).unwrap();
        let patch = update.patch.as_ref().map(|patch| String::from_utf8(patch.to_vec()).unwrap());
        (String::from_utf8(update.value.bytes().to_vec()).unwrap(), patch)
    };
    published(&mut hub, put("{\"a\":1,\"b\":\"long enough\"}")).unwrap();
    assert_eq!(last(&hub).1, None);
    published(&mut hub, put("{\"a\":2,\"b\":\"long enough\"}")).unwrap();
    assert_eq!(last(&hub).1.as_deref(), Some("{\"a\":2}"));
    let patch = Content::Patch(serde_json::json!({"a":null,"c":3}));
    published(&mut hub, Publication { content: patch, ..put("") }).unwrap();
    assert_eq!(last(&hub).0, "{\"b\":\"long enough\",\"c\":3}");
    assert!(last(&hub).1.is_some());
    published(&mut hub, Publication { private: true, ..put("{\"c\":3}") }).unwrap();
    published(&mut hub, put("{\"c\":4,\"d\":\"long enough\"}")).unwrap();
    assert_eq!(last(&hub).1, None, "who may not read the one before has nothing to patch");
}

#[test]
fn too_many_topics() {
    let settings = HubSettings { topics_max: 2, ..HubSettings::default() };
    let mut hub = Hub::new(settings, Epoch(1));
    published(&mut hub, text("a", "1")).unwrap();
    let several = Publication { topics: vec![name("b"), name("c")], ..text("b", "1") };
    assert_eq!(published(&mut hub, several), Err(PublishFault::Topics(2)));
    published(&mut hub, text("b", "1")).unwrap();
    assert_eq!(published(&mut hub, text("c", "1")), Err(PublishFault::Topics(2)));
    assert_eq!(published(&mut hub, text("a", "2")), Ok(3));
}

/// The first topic's value may be as long as the new one while those of the others are not.
#[test]
fn memory_is_bounded_whichever_topic_grows() {
    let settings = HubSettings { live_memory_bytes: 40_000, ..HubSettings::default() };
    let mut hub = Hub::new(settings, Epoch(1));
    let long = "x".repeat(2000);
    published(&mut hub, text("first", &long)).unwrap();
    let others: Vec<_> = (0..20).map(|number| name(&format!("t{number}"))).collect();
    for other in &others {
        published(&mut hub, text(other.as_str(), "1")).unwrap();
    }
    let several = |topics: &[TopicName]| Publication {
        topics: [&[name("first")], topics].concat(),
        ..text("first", &long)
    };
    assert_eq!(published(&mut hub, several(&others)), Err(PublishFault::Memory));
    assert_eq!(last(&hub, "t0"), "1", "nothing was changed");
    published(&mut hub, several(&others[..2])).unwrap();
    published(&mut hub, several(&others[..2])).expect("what is replaced by as much needs no room");
    assert!(hub.memory_bytes() <= 40_000, "{}", hub.memory_bytes());
}

#[test]
fn memory_is_bounded_and_rings_give_way_first() {
    let mut settings = HubSettings { live_memory_bytes: 20_000, ..HubSettings::default() };
    settings.add_rules("l", of_kind(Kind::Log)).unwrap();
    let mut hub = Hub::new(settings, Epoch(1));
    for _ in 0..100 {
        published(&mut hub, text("l", &"x".repeat(1000))).unwrap();
        assert!(hub.memory_bytes() <= 20_000);
    }
    let mut topics = 0;
    let fault = loop {
        match published(&mut hub, text(&format!("v{topics}"), &"x".repeat(1000))) {
            Ok(_) => topics += 1,
            Err(fault) => break fault,
        }
    };
    assert_eq!(fault, PublishFault::Memory);
    assert!((5..20).contains(&topics), "{topics}");
    assert!(hub.memory_bytes() <= 20_000);
    published(&mut hub, text("v0", "shorter")).unwrap();
    assert!(hub.value(&name("l")).is_some(), "a value never gives way");
}

#[test]
fn a_topic_with_a_rate_gets_the_latest() {
    let rules = TopicRules { every_ms: 100, ..TopicRules::default() };
    let mut hub = hub(&[("a", rules)]);
    assert!(hub.publish(text("a", "1"), 1000).unwrap().version.is_some());
    assert_eq!(hub.publish(text("a", "2"), 1010).unwrap().version, None);
    assert_eq!(hub.publish(text("a", "3"), 1020).unwrap().version, None);
    assert_eq!(hub.tick(1099), Some(1100));
    assert_eq!(hub.value(&name("a")).unwrap().1.value.bytes(), b"1");
    hub.tick(1100);
    assert_eq!(hub.value(&name("a")).unwrap().1.value.bytes(), b"3");
    assert_eq!(hub.version().number, 2);
}

/// A hub with topics `s.*` that have a rate, of which `s.a` and `s.b` have a value since 0 ms.
fn hub_with_rate() -> Hub {
    let rate = TopicRules { every_ms: 100, ..TopicRules::default() };
    let mut hub = hub(&[("s.*", rate), ("l", of_kind(Kind::Log))]);
    for topic in ["s.a", "s.b"] {
        published(&mut hub, text(topic, "{\"old\":1}")).unwrap();
    }
    hub
}

fn last(hub: &Hub, topic: &str) -> String {
    let (_, update) = hub.value(&name(topic)).expect("a value");
    String::from_utf8(update.value.bytes().to_vec()).unwrap()
}

#[test]
fn what_was_held_back_never_follows_a_newer_value() {
    let mut hub = hub_with_rate();
    assert_eq!(published(&mut hub, text("s.a", "held")), Ok(0));
    // Its time has come, but the next value came before anybody looked at the clock.
    assert!(hub.publish(text("s.a", "newer"), 100).unwrap().version.is_some());
    hub.tick(100);
    hub.tick(1000);
    assert_eq!(last(&hub, "s.a"), "newer");
}

#[test]
fn each_topic_gets_the_latest_that_was_held_back_for_it() {
    let mut hub = hub_with_rate();
    let several = |topics: &[&str], value| Publication {
        topics: topics.iter().map(|topic| name(topic)).collect(),
        ..text("s.a", value)
    };
    published(&mut hub, several(&["s.a", "s.b", "l"], "all")).unwrap();
    published(&mut hub, several(&["s.a", "l"], "two")).unwrap();
    hub.tick(100);
    assert_eq!((last(&hub, "s.a"), last(&hub, "s.b")), ("two".to_owned(), "all".to_owned()));
    let log = hub.shelf.find(&name("l")).unwrap().1;
    assert_eq!(log.ring.len(), 2, "a log loses none");
}

#[test]
fn patches_that_are_held_back_add_up() {
    let mut hub = hub_with_rate();
    let patch = |value| Publication { content: Content::Patch(value), ..text("s.a", "") };
    published(&mut hub, patch(serde_json::json!({"a":1}))).unwrap();
    published(&mut hub, patch(serde_json::json!({"b":2}))).unwrap();
    hub.tick(100);
    assert_eq!(last(&hub, "s.a"), "{\"a\":1,\"b\":2,\"old\":1}");
    published(&mut hub, Publication { content: Content::Gone, ..text("s.b", "") }).unwrap();
    let on_none = Publication { topics: vec![name("s.b")], ..patch(serde_json::json!({})) };
    assert_eq!(published(&mut hub, on_none), Err(PublishFault::NothingToPatch));
}

#[test]
fn what_is_held_back_is_in_the_account() {
    let mut hub = hub_with_rate();
    let before = hub.memory_bytes();
    let with_new = |count| Publication {
        topics: vec![name(&format!("new.{count}")), name("s.a")],
        ..text("s.a", &"x".repeat(1000))
    };
    assert!((0..10).all(|count| published(&mut hub, with_new(count)) == Ok(0)));
    assert!(hub.memory_bytes() > before + 10_000);
    hub.publish_held_back(10);
    assert_eq!((hub.topics(), last(&hub, "s.a").len()), (12, 1000));
    let held: Vec<TopicName> = (0..10).map(|count| name(&format!("new.{count}"))).collect();
    assert!(held.iter().all(|topic| hub.value(topic).is_some()));
    assert!(hub.held_back.is_empty());
}

#[test]
fn a_topic_without_updates_and_readers_is_forgotten() {
    let rules = TopicRules { keep_ms: 50, ..TopicRules::default() };
    let mut hub = hub(&[("a", rules)]);
    hub.publish(text("a", "1"), 0).unwrap();
    hub.request(0, Request::Readers(name("a"), 1));
    hub.tick(100);
    assert!(hub.value(&name("a")).is_some());
    hub.request(0, Request::Readers(name("a"), -1));
    hub.tick(100);
    assert!(hub.value(&name("a")).is_none());
    assert_eq!(hub.memory_bytes(), 0);
}

#[test]
fn readers_are_counted_by_name_and_pattern() {
    let mut hub = hub(&[]);
    hub.request(0, Request::Readers(name("b.a"), 3));
    hub.request(0, Request::PatternReaders(Pattern::new("b.*").unwrap(), 2));
    assert_eq!(hub.publish(text("b.a", "1"), 0).unwrap().readers, 5);
    hub.request(0, Request::PatternReaders(Pattern::new("b.*").unwrap(), -2));
    assert_eq!(hub.publish(text("b.a", "1"), 0).unwrap().readers, 3);
}

/// The counts that are promised: one letter for a batch, one compression for each form that somebody holds.
#[test]
fn a_batch_is_one_letter_and_a_form_one_compression() {
    let mut hub = hub(&[]);
    let long = "a value that is long enough ".repeat(10);
    for _ in 0..1000 {
        published(&mut hub, text("a", &long)).unwrap();
    }
    let letter = hub.take_letter().unwrap();
    assert_eq!(letter.number, 1000);
    assert!(hub.take_letter().is_none());
    assert_eq!(hub.compressions(), 0, "nobody reads");
    let form = Form::new(Shape::Enveloped, Transport::Chunked, Coding::Gzip);
    hub.request(0, Request::Hold(form));
    for _ in 0..10 {
        published(&mut hub, text("a", &long)).unwrap();
    }
    assert_eq!(hub.compressions(), 10);
    hub.request(0, Request::Release(form));
    published(&mut hub, text("a", &long)).unwrap();
    assert_eq!(hub.compressions(), 10);
}

#[test]
fn a_worker_that_is_behind_holds_the_hub_back() {
    let mut hub = hub(&[]);
    for _ in 0..WORKER_BEHIND_MAX {
        assert!(!hub.is_held_back());
        published(&mut hub, text("a", "1")).unwrap();
    }
    assert!(hub.is_held_back());
    hub.request(0, Request::Read(1));
    assert!(!hub.is_held_back());
}

/// Another node is not asked to name a topic once.
#[test]
fn a_topic_that_is_named_twice_keeps_its_value() {
    let mut hub = hub(&[]);
    let twice = Publication { topics: ["a", "b", "a"].map(name).to_vec(), ..text("a", "1") };
    published(&mut hub, twice).unwrap();
    assert_eq!((last(&hub, "a"), last(&hub, "b")), ("1".to_owned(), "1".to_owned()));
    let (_, update) = hub.value(&name("a")).unwrap();
    assert_eq!(update.topics().count(), 2);
}

#[test]
fn ids_and_types_that_cannot_be() {
    let mut hub = hub(&[]);
    for text_of in ["a\u{1}b", "a\u{7f}", "a\u{85}", "\u{1b}[2J", "a\nb"] {
        let id = Publication { id: Some(text_of.into()), ..text("a", "") };
        assert_eq!(published(&mut hub, id), Err(PublishFault::Id), "{text_of:?}");
        let kind = Publication { kind: Some(text_of.into()), ..text("a", "") };
        assert_eq!(published(&mut hub, kind), Err(PublishFault::Kind), "{text_of:?}");
    }
    let earliest = Publication { id: Some("earliest".into()), ..text("a", "") };
    assert_eq!(published(&mut hub, earliest), Err(PublishFault::Id));
    let mercure = Publication { kind: Some("mercure".into()), ..text("a", "") };
    assert_eq!(published(&mut hub, mercure), Err(PublishFault::Kind));
}

#[test]
fn what_changes_or_ends_a_private_value_is_private() {
    let mut hub = hub_with_rate();
    let private = |topic| Publication { private: true, ..text(topic, "{\"secret\":1}") };
    let patch =
        |topic| Publication { content: Content::Patch(serde_json::json!({"b":2})), ..text(topic, "") };
    let gone = |topic| Publication { content: Content::Gone, ..text(topic, "") };
    let is_private = |hub: &Hub, topic| hub.value(&name(topic)).unwrap().1.private;
    published(&mut hub, private("a")).unwrap();
    published(&mut hub, patch("a")).unwrap();
    assert!(is_private(&hub, "a") && last(&hub, "a").contains("secret"));
    published(&mut hub, gone("a")).unwrap();
    assert!(is_private(&hub, "a"));
    published(&mut hub, text("a", "open")).unwrap();
    assert!(!is_private(&hub, "a"));
    // What is held back counts as what it stands for.
    published(&mut hub, private("s.a")).unwrap();
    published(&mut hub, patch("s.a")).unwrap();
    hub.tick(100);
    assert!(is_private(&hub, "s.a") && last(&hub, "s.a").contains("secret"));
    published(&mut hub, patch("s.a")).unwrap();
    published(&mut hub, gone("s.a")).unwrap();
    hub.tick(200);
    assert!(is_private(&hub, "s.a"));
}

#[test]
fn a_document_is_kept_without_the_space_around_it() {
    let mut hub = hub(&[("j", of_kind(Kind::Json))]);
    for topic in ["a", "j"] {
        let json = Value::Json(b" {\"a\": 1}\r\n".to_vec().into());
        published(&mut hub, Publication::new(name(topic), json)).unwrap();
        assert_eq!(last(&hub, topic), "{\"a\": 1}", "{topic}");
    }
    published(&mut hub, text("a", "2:1\n")).unwrap();
    assert_eq!(last(&hub, "a"), "2:1\n", "text stays as it is");
}
