//! Values as differences to values before: whatever was published, whatever a client has, it gets the value.

use proptest::prelude::*;
use staunch_dictionary::{Hash, apply};

use super::*;
use crate::limits::{
    DIFFERENCE_VALUE_BYTES_MAX, DIFFERENCE_VALUE_BYTES_MIN, DIFFERENCES_PER_UPDATE_MAX,
    DIFFERENCES_WORK_BYTES_MAX,
};
use crate::view::View;

fn differing(ring_entries: usize) -> TopicRules {
    let ring_bytes = 64 * 1024 * 1024;
    TopicRules { dictionary: true, ring_entries, ring_bytes, ..TopicRules::default() }
}

/// A hub whose topic `a` is told as differences.
fn hub_of(rules: TopicRules, live_memory_bytes: usize) -> Hub {
    let value_bytes_max = 2 * DIFFERENCE_VALUE_BYTES_MAX;
    let mut settings = HubSettings { live_memory_bytes, value_bytes_max, ..HubSettings::default() };
    settings.add_rules("a", rules).unwrap();
    Hub::new(settings, Epoch(1))
}

/// A report with so many lines.
fn report(lines: u32) -> String {
    let line =
        |minute: u32| format!("{minute}: {} keep the ball.\n", ["Rovers", "United"][minute as usize % 2]);
    (0..lines).rev().map(line).collect()
}

/// Publishes reports of ever more lines, and gives the number of the last.
fn publish_reports(hub: &mut Hub, lines: std::ops::Range<u32>) -> u64 {
    lines.fold(0, |_, lines| published(hub, text("a", &report(lines))).unwrap())
}

#[test]
fn a_difference_is_made_once_and_gone_with_its_value() {
    let mut hub = hub_of(differing(8), usize::MAX);
    let last = publish_reports(&mut hub, 30..34);
    let before_bytes = hub.memory_bytes();
    let made = hub.difference(&name("a"), last, last - 2);
    let body = made.body.unwrap();
    assert_eq!(apply(report(31).as_bytes(), &body, 10_000).unwrap(), report(33).as_bytes());
    assert!(body.len() < 150, "{} bytes", body.len());
    assert!(hub.memory_bytes() >= before_bytes + body.len(), "it is in the account");
    let again = hub.difference(&name("a"), last, last - 2);
    assert_eq!((again.of_bytes, again.body), (0, Some(body)), "nothing is made again");
    let mut unasked = hub_of(differing(8), usize::MAX);
    publish_reports(&mut hub, 34..35);
    publish_reports(&mut unasked, 30..35);
    assert_eq!(hub.memory_bytes(), unasked.memory_bytes(), "nothing of it is left");
    assert_eq!(hub.difference(&name("a"), last, last - 2), DifferenceMade::default(), "it is outdated");
}

#[test]
fn what_no_difference_is_told_of() {
    let long = "x".repeat(DIFFERENCE_VALUE_BYTES_MAX + 1);
    let short = "x".repeat(DIFFERENCE_VALUE_BYTES_MIN - 1);
    let fits = report(30);
    let secret = |value: &str| Publication { private: true, ..text("a", value) };
    let gone = Publication { content: Content::Gone, ..text("a", "") };
    for (before, now) in [
        (text("a", &long), text("a", &fits)),
        (text("a", &fits), text("a", &long)),
        (text("a", &short), text("a", &fits)),
        (text("a", &fits), text("a", &short)),
        (secret(&fits), text("a", &fits)),
        (text("a", &fits), secret(&fits)),
        (text("a", &fits), gone),
    ] {
        let mut hub = hub_of(differing(8), usize::MAX);
        published(&mut hub, before.clone()).unwrap();
        let number = published(&mut hub, now).unwrap();
        let made = hub.difference(&name("a"), number, number - 1);
        assert_eq!(made, DifferenceMade::default(), "{before:?}");
    }
    let mut hub = hub_of(TopicRules::default(), usize::MAX);
    let last = publish_reports(&mut hub, 30..32);
    assert_eq!(hub.difference(&name("a"), last, last - 1), DifferenceMade::default(), "no rule");
    for (topic, number, from) in [("b", 2, 1), ("a", 2, 0), ("a", 2, 3), ("a", 1, 1), ("a", 3, 2)] {
        let mut hub = hub_of(differing(8), usize::MAX);
        publish_reports(&mut hub, 30..32);
        let made = hub.difference(&name(topic), number, from);
        assert_eq!(made, DifferenceMade::default(), "{topic} {number} {from}");
    }
}

#[test]
fn the_ring_of_a_value_keeps_what_clients_may_have() {
    let mut hub = hub_of(differing(3), usize::MAX);
    let last = publish_reports(&mut hub, 30..36);
    let has = |hub: &mut Hub, from| hub.difference(&name("a"), last, from).body.is_some();
    assert!(has(&mut hub, last - 2) && !has(&mut hub, last - 3));
}

/// A client that asks for all that can be asked for costs the writer no more than is allowed.
#[test]
fn making_differences_of_one_value_has_a_bound() {
    for (lines, count) in [(60, 100), (20_000, 10)] {
        let mut hub = hub_of(differing(200), usize::MAX);
        let last = publish_reports(&mut hub, lines..lines + count);
        let all = (1..=last).map(|from| hub.difference(&name("a"), last, from));
        let made: Vec<usize> = all.map(|made| made.of_bytes).filter(|bytes| *bytes > 0).collect();
        assert!((1..=DIFFERENCES_PER_UPDATE_MAX).contains(&made.len()), "{} were made", made.len());
        assert!(made.iter().sum::<usize>() <= DIFFERENCES_WORK_BYTES_MAX);
    }
}

#[test]
fn no_difference_is_made_where_memory_is_full() {
    let mut hub = hub_of(differing(8), usize::MAX);
    let last = publish_reports(&mut hub, 30..32);
    hub.memory = Memory::new(1);
    hub.memory.add(2);
    assert_eq!(hub.difference(&name("a"), last, last - 1), DifferenceMade::default());
}

/// A step of the publisher of topic `a`.
#[derive(Debug, Clone)]
enum Step {
    Insert(prop::sample::Index, String),
    Cut(prop::sample::Index, usize),
    Secret,
    Delete,
    Other,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (any::<prop::sample::Index>(), "[a-z ]{1,40}").prop_map(|(at, text)| Step::Insert(at, text)),
        2 => (any::<prop::sample::Index>(), 1_usize..200).prop_map(|(at, bytes)| Step::Cut(at, bytes)),
        1 => Just(Step::Secret),
        1 => Just(Step::Delete),
        1 => Just(Step::Other),
    ];
    prop::collection::vec(step, 1..40)
}

/// The next publication, and the text so far.
fn publication(step: &Step, now: &mut String) -> Publication {
    match step {
        Step::Insert(at, more) => now.insert_str(at.index(now.len()), more),
        Step::Cut(at, bytes) => {
            let from = at.index(now.len());
            now.drain(from..(from + bytes).min(now.len() - 1).max(from));
        }
        Step::Secret => return Publication { private: true, ..text("a", &format!("{now} secret")) },
        Step::Delete => return Publication { content: Content::Gone, ..text("a", "") },
        Step::Other => return text("b", "1"),
    }
    text("a", now)
}

proptest! {
    /// Any history of versions, and any of them that a client has: by its hash the worker finds it, if it is
    /// public and in the ring, and what the client decodes is the value.
    #[test]
    fn any_history_and_any_version_decode_to_the_value(
        steps in steps(),
        ring_entries in 1_usize..12,
        kind in 0_usize..2,
        kept in any::<u64>(),
    ) {
        let rules = TopicRules { kind: [Kind::Value, Kind::Log][kind], ..differing(ring_entries) };
        let (mut hub, mut view) = (hub_of(rules, 60_000), View::new(Epoch(1), 10));
        let (mut now, mut held, mut seen) = (report(40), Vec::<Vec<u8>>::new(), 0);
        for step in steps {
            published(&mut hub, publication(&step, &mut now)).unwrap();
            view.read(&hub.take_letter().unwrap());
            let Some(update) = view.last(&name("a")).cloned() else { continue };
            if update.private || update.value == Value::Gone {
                prop_assert!(update.hash.is_none());
                continue;
            }
            let value = update.value.bytes();
            for version in &held {
                let Some(from) = view.number_of_hash(&name("a"), &Hash::of(version)) else { continue };
                let made = hub.difference(&name("a"), update.number, from);
                let again = hub.difference(&name("a"), update.number, from);
                prop_assert_eq!((again.of_bytes, &again.body), (0, &made.body));
                if let Some(body) = made.body {
                    let decoded = apply(version, &body, value.len());
                    prop_assert_eq!(decoded.as_deref(), Some(value));
                }
            }
            prop_assert_eq!(view.number_of_hash(&name("a"), &Hash::of(b"never published")), None);
            // Any subset of what was seen.
            seen += 1;
            if kept >> (seen % 64) & 1 == 1 {
                held.push(value.to_vec());
            }
        }
    }
}
