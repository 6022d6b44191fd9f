//! Whatever readers ask, publishers are told what they would be told without them, and as much is kept.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;

const FORMS: [(Shape, Transport, Coding); 6] = [
    (Shape::Bare, Transport::Plain, Coding::Identity),
    (Shape::Enveloped, Transport::Chunked, Coding::Identity),
    (Shape::Enveloped, Transport::Chunked, Coding::Zstd),
    (Shape::Patch, Transport::Plain, Coding::Gzip),
    (Shape::Enveloped, Transport::Socket, Coding::Deflate),
    (Shape::Bare, Transport::Socket, Coding::Identity),
];
const MEMORY_BYTES: usize = 30_000;

fn small_hub() -> Hub {
    let mut settings = HubSettings { live_memory_bytes: MEMORY_BYTES, ..HubSettings::default() };
    settings.topics_max = 12;
    settings.add_rules("l.*", TopicRules { ring_entries: 6, ..of_kind(Kind::Log) }).unwrap();
    settings.add_rules("j.*", of_kind(Kind::Json)).unwrap();
    settings.add_rules("s.*", TopicRules { every_ms: 20, ..TopicRules::default() }).unwrap();
    Hub::new(settings, Epoch(1))
}

/// What a hub keeps, as a view would be told that begins now.
fn kept(hub: &Hub) -> Vec<String> {
    let told = |news: &News| match news {
        News::Topic(facts) => format!("topic {}", facts.name),
        News::Update(update, _) => format!("update {} of {}", update.number, update.topic()),
        News::Dropped(key) | News::Forgotten(key) => format!("{:?} to {}", key.topic, key.number),
        News::Form(..) | News::FormsDropped(_) => "a form".to_owned(),
    };
    hub.introduction().news.iter().map(told).collect()
}

fn drawn_publication(random: &mut Xoshiro256PlusPlus) -> Publication {
    let topic = ["v.a", "v.b", "v.c", "l.a", "l.b", "j.a", "j.b", "s.a"][random.random_range(0..8)];
    let topic =
        if random.random_bool(0.1) { format!("new.{}", random.random_range(0..9)) } else { topic.into() };
    let value = format!("{{\"a\":{:?}}}", "x".repeat(random.random_range(0..4000)));
    let mut publication = text(&topic, &value);
    if random.random_bool(0.2) {
        publication.topics.push(name("l.b"));
    }
    if random.random_bool(0.1) {
        publication.content = Content::Gone;
    }
    publication
}

/// Something that readers make workers ask.
fn ask(hub: &mut Hub, keys: &[UpdateKey], random: &mut Xoshiro256PlusPlus) {
    let (shape, transport, coding) = FORMS[random.random_range(0..FORMS.len())];
    let form = Form::new(shape, transport, coding);
    match random.random_range(0..8) {
        0 => hub.request(0, Request::Hold(form)),
        1 => hub.request(0, Request::Release(form)),
        2 => hub.request(0, Request::Readers(name("l.a"), random.random_range(-1..3))),
        3 => hub.let_forms_go(),
        _ => {
            let start = random.random_range(0..=keys.len());
            let count = random.random_range(0..20);
            let wanted = keys[start..].iter().take(count).map(|key| (*key, form)).collect();
            hub.request(0, Request::Make(wanted));
        }
    }
}

/// Plays a seed with and without readers.
fn play(seed: u64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (mut asked, mut unasked) = (small_hub(), small_hub());
    let mut keys = Vec::new();
    for now_ms in 0..random.random_range(50..300) {
        let publication = drawn_publication(&mut random);
        let [with, without] = [&mut asked, &mut unasked].map(|hub| hub.publish(publication.clone(), now_ms));
        let version = |accepted: Accepted| accepted.version;
        assert_eq!(with.map(version), without.map(version), "STAUNCH_SEED={seed}: {publication:?}");
        for _ in 0..random.random_range(0..3) {
            ask(&mut asked, &keys, &mut random);
        }
        if random.random_bool(0.2) {
            for hub in [&mut asked, &mut unasked] {
                hub.tick(now_ms);
            }
        }
        if random.random_bool(0.4) {
            unasked.take_letter();
            let letter = asked.take_letter();
            let news = letter.iter().flat_map(|letter| letter.news.iter());
            keys.extend(news.flat_map(|news| match news {
                News::Update(update, _) => {
                    let key = |(topic, _): &(TopicId, TopicName)| UpdateKey {
                        topic: *topic,
                        number: update.number,
                    };
                    update.topics.iter().map(key).collect()
                }
                _ => Vec::new(),
            }));
            asked.let_forms_go();
            let most = MEMORY_BYTES.max(unasked.memory_bytes());
            assert!(asked.memory_bytes() <= most, "STAUNCH_SEED={seed}: {}", asked.memory_bytes());
        }
        assert_eq!(kept(&asked), kept(&unasked), "STAUNCH_SEED={seed}");
    }
}

#[test]
fn what_readers_ask_never_refuses_a_publication_nor_pushes_out_what_is_kept() {
    let only = std::env::var("STAUNCH_SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    match only {
        Some(seed) => play(seed),
        None => (0..200).for_each(play),
    }
}

#[test]
fn forms_without_room_are_made_for_one_letter() {
    let settings = HubSettings { live_memory_bytes: 10_000, ..HubSettings::default() };
    let mut hub = Hub::new(settings, Epoch(1));
    published(&mut hub, text("a", &"x".repeat(3000))).unwrap();
    hub.take_letter();
    let key = UpdateKey { topic: hub.shelf.find(&name("a")).unwrap().0, number: 1 };
    let form = |shape, transport| (key, Form::new(shape, transport, Coding::Identity));
    let wanted = vec![
        form(Shape::Bare, Transport::Plain),
        form(Shape::Enveloped, Transport::Plain),
        form(Shape::Enveloped, Transport::Chunked),
    ];
    for _ in 0..3 {
        hub.request(0, Request::Make(wanted.clone()));
        let letter = hub.take_letter().unwrap();
        let told = letter.news.iter().map(|news| match news {
            News::Form(key, form, _) => (*key, *form),
            other => panic!("{other:?}"),
        });
        assert_eq!(told.collect::<Vec<_>>(), wanted);
        hub.let_forms_go();
        let letter = hub.take_letter().unwrap();
        assert!(matches!(&letter.news[..], [News::FormsDropped(own)] if *own == key));
        assert!(!letter.changes() && hub.memory_bytes() <= 10_000);
    }
    hub.request(0, Request::Make(wanted));
    assert_eq!(published(&mut hub, text("a", &"y".repeat(3100))), Ok(2), "forms take no room");
}
