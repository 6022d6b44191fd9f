//! Tests of the store: truth, room and order of eviction.

use super::*;
use crate::content::entry::{Common, Content, Kind};
use crate::content::freshness::Freshness;
use crate::content::negotiate::Encoding;
use crate::content::{mime, prepare};
use staunch_engine::FileStamp;

const STAMP: FileStamp = FileStamp { device: 1, inode: 2, size_bytes: 3, modified_ns: 4, changed_ns: 5 };

fn entry(key: &str, body_bytes: usize) -> Arc<Entry> {
    let common = Common { media: &mime::HTML, modified_unix_s: None, vary: None, offer: None, ruling: None };
    let content = Content::of_identity(&common, prepare::held(&common, None, &vec![b'x'; body_bytes]));
    Arc::new(Entry::new(key.as_bytes().into(), Kind::Content(content), STAMP, Freshness::new(true, 0)))
}

fn insert(store: &Store, key: &str, body_bytes: usize, room: Room) -> bool {
    store.insert(store.ticket(key.as_bytes()), &entry(key, body_bytes), room)
}

fn holds(store: &Store, key: &str) -> bool {
    store.find(key.as_bytes()).is_some()
}

#[test]
fn many_keys_find_their_entries() {
    let store = Store::new(1 << 30);
    for number in 0..20_000 {
        assert!(insert(&store, &format!("/{number}"), 1, Room::Made));
    }
    for number in 0..20_000 {
        let key = format!("/{number}");
        assert_eq!(*store.get(key.as_bytes()).unwrap().key, *key.as_bytes());
    }
    assert!(!holds(&store, "/20000"));
    assert_eq!(store.entries(), 20_000);
    for number in 0..20_000 {
        assert!(store.remove(format!("/{number}").as_bytes()).is_some());
    }
    assert_eq!((store.entries(), store.held_bytes()), (0, 0));
}

#[test]
fn the_budget_holds_and_the_used_stay() {
    let cost = entry("/000", 1000).cost_bytes();
    let store = Store::new(10 * cost);
    for number in 0..10 {
        assert!(insert(&store, &format!("/{number:03}"), 1000, Room::Made));
    }
    for round in 101..120 {
        store.find(b"/003").unwrap().mark_used();
        store.find(b"/007").unwrap().mark_used();
        assert!(insert(&store, &format!("/{round}"), 1000, Room::Made));
        assert!(store.held_bytes() <= 10 * cost);
        assert_eq!(store.entries(), 10);
    }
    assert!(holds(&store, "/003") && holds(&store, "/007"));
    assert!(!holds(&store, "/101"), "never used");
    assert!(!insert(&store, "/huge", 10_000, Room::Made), "more than half of all");
}

/// An entry whose identity is an open file, and which holds an encoding.
fn encoded_file(key: &str, encoded_bytes: usize) -> Arc<Entry> {
    let common = Common { media: &mime::HTML, modified_unix_s: None, vary: None, offer: None, ruling: None };
    let file = Arc::new(std::fs::File::open("/dev/null").unwrap().into());
    let mut content = Content::of_identity(&common, prepare::in_file(&common, None, file, STAMP));
    if encoded_bytes > 0 {
        let encoded = prepare::held(&common, Some(Encoding::Gzip), &vec![b'x'; encoded_bytes]);
        content.representations[Encoding::Gzip.place()] = Some(encoded);
    }
    Arc::new(Entry::new(key.as_bytes().into(), Kind::Content(content), STAMP, Freshness::new(true, 0)))
}

#[test]
fn what_is_held_beside_a_file_is_weighed_and_the_file_counted() {
    let store = Store::new(100_000);
    let put = |entry: &Arc<Entry>| store.insert(store.ticket(&entry.key), entry, Room::Made);
    for number in 0..40 {
        assert!(put(&encoded_file(&format!("/{number}"), 10_000)));
        assert!(store.held_bytes() <= 100_000);
    }
    assert!((5..10).contains(&store.entries()), "bytes bound them: {}", store.entries());
    for number in 0..OPEN_FILES_MAX + 50 {
        assert!(put(&encoded_file(&format!("/f{number}"), 0)));
    }
    assert_eq!(store.entries(), OPEN_FILES_MAX, "files bound them");
    let plain = encoded_file("/f0", 0);
    assert!(put(&plain) && store.replace(&plain, &encoded_file("/f0", 1000), Room::Made));
    store.remove_where(|_| true);
    assert_eq!((store.entries(), store.held_bytes()), (0, 0));
}

#[test]
fn what_nobody_asked_for_pushes_nobody_out() {
    let cost = entry("/00", 1000).cost_bytes();
    let store = Store::new(16 * cost);
    let taken = (10..30).filter(|number| insert(&store, &format!("/{number}"), 1000, Room::Found)).count();
    assert_eq!(taken, 12, "twelve of sixteen parts");
    assert!(holds(&store, "/10"));
    assert!(insert(&store, "/99", 1000, Room::Made));
    assert_eq!(store.entries(), 13);
}

#[test]
fn what_was_read_before_a_change_is_not_taken_in() {
    let store = Store::new(1 << 20);
    let ticket = store.ticket(b"/a");
    assert!(store.remove(b"/a").is_none());
    assert!(!store.insert(ticket, &entry("/a", 1), Room::Made));
    let ticket = store.ticket(b"/a");
    store.remove_where(|_| false);
    assert!(!store.insert(ticket, &entry("/a", 1), Room::Made));
    assert!(insert(&store, "/a", 1, Room::Made));
}

#[test]
fn only_the_current_entry_is_replaced() {
    let store = Store::new(1 << 20);
    assert!(insert(&store, "/a", 1, Room::Made));
    let old = store.get(b"/a").unwrap();
    let new = entry("/a", 100);
    assert!(store.replace(&old, &new, Room::Made));
    assert!(!store.replace(&old, &entry("/a", 5), Room::Made));
    assert!(Arc::ptr_eq(&store.get(b"/a").unwrap(), &new));
    assert_eq!((store.entries(), store.held_bytes()), (1, new.cost_bytes()));
}

#[test]
fn trees_are_removed() {
    let store = Store::new(1 << 20);
    for key in ["/a/x", "/a/b/y", "/ab", "/a"] {
        insert(&store, key, 1, Room::Made);
    }
    store.remove_where(|key| key.starts_with(b"/a/"));
    assert!(!holds(&store, "/a/x") && !holds(&store, "/a/b/y"));
    assert!(holds(&store, "/ab") && holds(&store, "/a"));
}
