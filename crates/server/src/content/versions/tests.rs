//! Tests of versions: whatever the history, a difference leads to what is current.

use proptest::prelude::*;
use staunch_dictionary::apply;
use staunch_engine::FileStamp;

use super::*;
use crate::config::Dictionary;
use crate::content::entry::Common;
use crate::content::mime;
use crate::rules::Ruling;

const STAMP: FileStamp = FileStamp { device: 1, inode: 2, size_bytes: 3, modified_ns: 4, changed_ns: 5 };

fn ruling(dictionary: Dictionary) -> Arc<Ruling> {
    let rule = DictionaryRule::new(&dictionary).unwrap();
    Arc::new(Ruling { dictionary: Some(Arc::new(rule)), ..Ruling::default() })
}

/// A text of some kilobytes that others share most of.
fn text(number: u8) -> Vec<u8> {
    let lines = (0..150_u32).map(|line| format!("{} of {line}\n", line.wrapping_mul(2_654_435_761)));
    lines.chain([format!("version {number}\n")]).collect::<String>().into_bytes()
}

fn entry(ruling: &Arc<Ruling>, path: &str, body: &[u8]) -> Arc<Entry> {
    let offer: Box<str> = "match=\"/\"".into();
    let common = Common {
        media: &mime::HTML,
        modified_unix_s: None,
        vary: None,
        offer: Some(&offer),
        ruling: Some(ruling),
    };
    let mut content = Content::of_identity(&common, prepare::held(&common, None, body));
    content.told = Some(Arc::new(OfferedDictionary { hash: Hash::of(body), offer: offer.clone() }));
    let entry = Entry::new(path.as_bytes().into(), Kind::Content(content), STAMP, Freshness::new(true, 0));
    Arc::new(entry.under(Some(Arc::clone(ruling))))
}

/// A path's content becomes another.
fn change(versions: &Versions, store: &Store, next: &Arc<Entry>) {
    let before = store.get(&next.key);
    assert!(store.insert(store.ticket(&next.key), next, Room::Made));
    versions.note(store, next);
    let hash = |entry: &Entry| entry.content().and_then(|content| Some(content.told.as_ref()?.hash));
    if let Some(before) = before.filter(|before| hash(before) != hash(next)) {
        versions.keep_former(store, &before);
    }
}

/// The difference that was made between two texts, if any was.
fn made(store: &Store, path: &str, dictionary: &[u8], body: &[u8]) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    write_difference_key(&mut key, path.as_bytes(), &Hash::of(dictionary), &Hash::of(body));
    let entry = store.get(&key)?;
    Some(entry.content()?.identity()?.body().to_vec())
}

fn check(versions: &Versions, store: &Store, path: &str, held: &[u8], current: &[u8]) -> bool {
    versions.make(store, path.as_bytes(), &Hash::of(held));
    let Some(difference) = made(store, path, held, current) else { return false };
    assert_eq!(apply(held, &difference, current.len()).as_deref(), Some(current));
    true
}

proptest! {
    #[test]
    fn any_history_and_any_version_held_lead_to_what_is_current(
        history in prop::collection::vec(0_u8..9, 1..20),
        held in prop::collection::vec(0_u8..9, 1..6),
    ) {
        let (store, versions) = (Store::new(1 << 24), Versions::default());
        let ruling = ruling(Dictionary::Own);
        for (step, &number) in history.iter().enumerate() {
            change(&versions, &store, &entry(&ruling, "/a", &text(number)));
            // A version that was seen several times counts from the last.
            let mut known: Vec<u8> = Vec::new();
            for &number in history[..=step].iter().rev() {
                if !known.contains(&number) && known.len() < VERSIONS_OF_PATH_MAX {
                    known.push(number);
                }
            }
            for &client in &held {
                let is_told = check(&versions, &store, "/a", &text(client), &text(number));
                prop_assert_eq!(is_told, known.contains(&client), "{} of {:?}", client, &history[..=step]);
            }
        }
    }

    #[test]
    fn however_little_room_there_is(
        history in prop::collection::vec((0_u8..4, 0_u8..9), 1..40),
        held in prop::collection::vec(0_u8..9, 1..6),
        kilobytes in 20_u64..200,
    ) {
        let (store, versions) = (Store::new(kilobytes << 10), Versions::default());
        let ruling = ruling(Dictionary::Pattern("/*".to_owned()));
        for &(file, number) in &history {
            let path = format!("/{file}");
            let next = entry(&ruling, &path, &text(number));
            if next.cost_bytes() > (kilobytes << 10) / 2 {
                continue;
            }
            change(&versions, &store, &next);
            for &client in &held {
                check(&versions, &store, &path, &text(client), &text(number));
            }
            prop_assert!(store.held_bytes() <= kilobytes << 10);
            prop_assert!(store.get(path.as_bytes()).is_some());
        }
    }
}
