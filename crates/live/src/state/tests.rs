//! What survives: a close, a crash, a damaged file.

mod damaged;
mod left;

use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::hub::{Content, Hub, HubSettings, Publication};
use crate::letter::News;
use crate::name::TopicName;
use crate::topic::{Kind, TopicRules};
use crate::update::Value;
use crate::version::Epoch;

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("staunch-live-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("live.redb")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn settings() -> HubSettings {
    let mut settings = HubSettings::default();
    let rules = TopicRules { kind: Kind::Log, ring_entries: 3, ..TopicRules::default() };
    settings.add_rules("l.*", rules).unwrap();
    settings.add_rules("k.*", TopicRules { keep_ms: 50, ..TopicRules::default() }).unwrap();
    let rules = TopicRules { kind: Kind::Log, ring_entries: 3, keep_ms: 50, ..TopicRules::default() };
    settings.add_rules("f.*", rules).unwrap();
    settings
}

fn publish(hub: &mut Hub, topic: &str, value: &str) {
    let topic = TopicName::new(topic).unwrap();
    hub.publish(Publication::new(topic, Value::of_bytes(value.as_bytes())), 0).unwrap();
}

fn value(hub: &Hub, topic: &str) -> Option<(u64, String)> {
    let (version, update) = hub.value(&TopicName::new(topic).unwrap())?;
    Some((version.number, String::from_utf8_lossy(update.value.bytes()).into_owned()))
}

fn keep(hub: &mut Hub, state: &mut StateStore) {
    state.keep(&hub.take_letter().unwrap()).unwrap();
}

fn reopen(folder: &Folder, sync: Sync) -> (StateStore, Hub) {
    let (mut state, kept) = StateStore::open(&folder.file(), None, sync).unwrap();
    assert_eq!(kept.set_aside, None);
    let hub = Hub::restore(settings(), kept, Epoch(99), 0);
    state.agree(&hub.introduction()).unwrap();
    (state, hub)
}

#[test]
fn values_rings_and_the_numbering_survive() {
    let folder = Folder::new("survive");
    let (mut state, mut hub) = reopen(&folder, Sync::Always);
    assert_eq!(hub.version().epoch, Epoch(99));
    for number in 0..5 {
        publish(&mut hub, "l.a", &number.to_string());
    }
    publish(&mut hub, "v", "x");
    let several = Publication {
        topics: ["v", "l.b"].map(|name| TopicName::new(name).unwrap()).into(),
        ..Publication::new(TopicName::new("v").unwrap(), Value::Json(b"{}"[..].into()))
    };
    hub.publish(several, 0).unwrap();
    keep(&mut hub, &mut state);
    let gone =
        Publication { content: Content::Gone, ..Publication::new(TopicName::new("w").unwrap(), Value::Gone) };
    hub.publish(gone, 0).unwrap();
    keep(&mut hub, &mut state);
    drop(state);
    let (mut state, restored) = reopen(&folder, Sync::Always);
    assert_eq!(restored.version(), hub.version());
    assert_eq!(value(&restored, "l.a"), Some((5, "4".to_owned())));
    assert_eq!(value(&restored, "v"), Some((7, "{}".to_owned())));
    assert_eq!(value(&restored, "l.b"), Some((7, "{}".to_owned())));
    let updates = |hub: &Hub| {
        let letter = hub.introduction();
        letter.news.iter().filter(|news| matches!(news, News::Update(..))).count()
    };
    assert_eq!(updates(&restored), updates(&hub), "rings are as long as they were");
    state.release().unwrap();
}

#[test]
fn a_topic_that_is_forgotten_after_a_restart_stays_so() {
    let folder = Folder::new("forgotten");
    let (mut state, mut hub) = reopen(&folder, Sync::Always);
    publish(&mut hub, "k.a", "1");
    publish(&mut hub, "v", "1");
    keep(&mut hub, &mut state);
    drop(state);
    let (mut state, mut hub) = reopen(&folder, Sync::Always);
    hub.tick(1000);
    assert_eq!(value(&hub, "k.a"), None);
    keep(&mut hub, &mut state);
    drop(state);
    let (_state, hub) = reopen(&folder, Sync::Always);
    assert_eq!((value(&hub, "k.a"), value(&hub, "v")), (None, Some((2, "1".to_owned()))));
}

#[test]
fn a_topic_that_is_begun_anew_gets_nothing_back_from_before() {
    let folder = Folder::new("anew");
    let (mut state, mut hub) = reopen(&folder, Sync::Always);
    let both = Publication {
        topics: ["f.a", "l.a"].map(|name| TopicName::new(name).unwrap()).into(),
        ..Publication::new(TopicName::new("f.a").unwrap(), Value::of_bytes(b"old"))
    };
    hub.publish(both, 0).unwrap();
    keep(&mut hub, &mut state);
    hub.tick(1000);
    assert_eq!(value(&hub, "f.a"), None);
    publish(&mut hub, "f.a", "new");
    keep(&mut hub, &mut state);
    drop(state);
    drop(reopen(&folder, Sync::Always));
    let (_, kept) = StateStore::open(&folder.file(), None, Sync::Always).unwrap();
    let counts: Vec<_> = kept.topics.iter().map(|topic| (topic.name.as_str(), topic.updates.len())).collect();
    assert_eq!(counts, [("f.a", 1), ("l.a", 1)]);
}

/// Without a sync for each batch nobody knows, after a crash, which numbers were given out.
#[test]
fn a_numbering_that_may_have_gone_on_is_not_continued() {
    for (sync, is_closed, continues) in [
        (Sync::Always, false, true),
        (Sync::Interval, false, false),
        (Sync::Interval, true, true),
        (Sync::Off, false, false),
        (Sync::Off, true, true),
    ] {
        let folder = Folder::new(&format!("numbering-{sync:?}-{is_closed}"));
        let (mut state, mut hub) = reopen(&folder, sync);
        publish(&mut hub, "v", "1");
        keep(&mut hub, &mut state);
        state.sync().unwrap();
        publish(&mut hub, "v", "2");
        keep(&mut hub, &mut state);
        match is_closed {
            true => state.release().unwrap(),
            false => drop(state),
        }
        let (_, kept) = StateStore::open(&folder.file(), None, sync).unwrap();
        assert_eq!(kept.epoch.is_some(), continues, "{sync:?} closed: {is_closed}");
        let hub = Hub::restore(settings(), kept, Epoch(100), 0);
        assert!(value(&hub, "v").is_some() || (sync == Sync::Off && !is_closed));
        assert_eq!(hub.version().epoch, Epoch(if continues { 99 } else { 100 }));
    }
}

#[test]
fn a_store_that_is_open_is_locked() {
    let folder = Folder::new("locked");
    let (_state, _) = StateStore::open(&folder.file(), None, Sync::Off).unwrap();
    let fault = StateStore::open(&folder.file(), None, Sync::Off).err().unwrap();
    assert!(matches!(fault.kind, StateFaultKind::Locked), "{fault}");
    assert!(fault.to_string().contains("live.redb: another process has it open"), "{fault}");
}

#[test]
fn a_newer_store_is_left_alone() {
    let folder = Folder::new("newer");
    let (mut state, _) = StateStore::open(&folder.file(), None, Sync::Off).unwrap();
    state.write(Durability::Immediate, |tables| Ok(tables.facts.insert("format", 9).map(drop)?)).unwrap();
    drop(state);
    let fault = StateStore::open(&folder.file(), None, Sync::Off).err().unwrap();
    assert!(matches!(fault.kind, StateFaultKind::Newer(9)), "{fault}");
    assert!(StateStore::open(&folder.file(), None, Sync::Off).is_err(), "it is as it was");
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let fault = StateStore::open(Path::new("/nonexistent/staunch/live.redb"), None, Sync::Off).err().unwrap();
    assert!(matches!(fault.kind, StateFaultKind::Io(_)), "{fault}");
    assert!(fault.to_string().contains("/nonexistent/staunch/live.redb"), "{fault}");
}

/// After a restart the hub still knows what left a ring, and which topics are logs.
#[test]
fn what_left_a_ring_and_kinds_survive() {
    let folder = Folder::new("left");
    let (mut state, mut hub) = reopen(&folder, Sync::Always);
    let begun = |value: &str| {
        let name = TopicName::new("begun").unwrap();
        Publication { begins_log: true, ..Publication::new(name, Value::of_bytes(value.as_bytes())) }
    };
    for number in 0..5 {
        publish(&mut hub, "l.a", &number.to_string());
        hub.publish(begun(&number.to_string()), 0).unwrap();
        keep(&mut hub, &mut state);
    }
    drop(state);
    let (state, hub) = reopen(&folder, Sync::Always);
    assert_eq!(hub.kind(&TopicName::new("begun").unwrap()), Some(Kind::Log));
    let dropped = |hub: &Hub| -> Vec<u64> {
        let letter = hub.introduction();
        let dropped = letter.news.iter().filter_map(|news| match news {
            News::Dropped(place) => Some(place.number),
            _ => None,
        });
        dropped.collect()
    };
    assert_eq!(dropped(&hub), [3], "a ring of 3 has let 1 and 3 go");
    let mut view = crate::view::View::new(hub.version().epoch, 9);
    view.read(&hub.introduction());
    assert_eq!((view.dropped_to("l.a"), view.dropped_to("begun")), (3, 0));
    // A shorter ring in the settings shortens what the store holds.
    drop(state);
    let mut shorter = settings();
    shorter.rules[0].1.ring_entries = 1;
    let (mut state, kept) = StateStore::open(&folder.file(), None, Sync::Always).unwrap();
    let hub = Hub::restore(shorter, kept, Epoch(1), 0);
    state.agree(&hub.introduction()).unwrap();
    drop(state);
    let (_, kept) = StateStore::open(&folder.file(), None, Sync::Always).unwrap();
    let lengths: Vec<_> = kept.topics.iter().map(|topic| (topic.updates.len(), topic.dropped_to)).collect();
    assert_eq!(lengths, [(5, 0), (1, 7)]);
}

/// The file does not grow with the number of publications, only with what rings hold.
#[test]
fn the_file_does_not_grow_with_what_was_published() {
    for sync in [Sync::Always, Sync::Interval, Sync::Off] {
        let folder = Folder::new(&format!("growth-{sync:?}"));
        let (mut state, mut hub) = reopen(&folder, sync);
        let mut sizes = Vec::new();
        for number in 0..900 {
            publish(&mut hub, "v", &number.to_string().repeat(500));
            publish(&mut hub, "l.a", &number.to_string().repeat(100));
            keep(&mut hub, &mut state);
            if number % 100 == 0 && sync == Sync::Interval {
                state.sync().unwrap();
            }
            sizes.push(std::fs::metadata(folder.file()).unwrap().len());
        }
        let (early, last) = (sizes[300], sizes[899]);
        assert!(last <= early, "{sync:?}: {early} bytes after 300 batches, {last} after 900");
        assert!(last < 4 << 20, "{sync:?}: {last}");
    }
}

#[test]
fn a_store_that_another_one_wrote_to_is_not_written_over() {
    let folder = Folder::new("foreign");
    let (mut state, mut hub) = reopen(&folder, Sync::Always);
    publish(&mut hub, "v", "1");
    keep(&mut hub, &mut state);
    state.release().unwrap();
    assert!(state.keep(&hub.introduction()).is_err(), "it is closed");
    // Another process has opened the file, and has not written to it.
    let (other, _) = reopen(&folder, Sync::Always);
    assert!(matches!(state.agree(&hub.introduction()).unwrap_err().kind, StateFaultKind::Locked));
    drop(other);
    state.agree(&hub.introduction()).unwrap();
    publish(&mut hub, "v", "2");
    keep(&mut hub, &mut state);
    state.release().unwrap();
    let (mut other, mut others) = reopen(&folder, Sync::Always);
    assert_eq!(others.version(), hub.version());
    publish(&mut others, "v", "3");
    keep(&mut others, &mut other);
    drop(other);
    let fault = state.agree(&hub.introduction()).unwrap_err().to_string();
    assert!(fault.contains("another server has written to it"), "{fault}");
}

#[test]
fn a_store_that_was_removed_while_it_was_closed_is_written_anew() {
    let folder = Folder::new("removed");
    let (mut state, mut hub) = reopen(&folder, Sync::Always);
    publish(&mut hub, "v", "1");
    keep(&mut hub, &mut state);
    state.release().unwrap();
    std::fs::remove_file(folder.file()).unwrap();
    state.agree(&hub.introduction()).unwrap();
    drop(state);
    let (_state, restored) = reopen(&folder, Sync::Always);
    assert_eq!((restored.version(), value(&restored, "v")), (hub.version(), Some((1, "1".to_owned()))));
}

/// The file holds private updates, so no other user may read it.
#[test]
fn nobody_but_its_owner_reads_the_file() {
    let folder = Folder::new("mode");
    let (_state, _) = StateStore::open(&folder.file(), None, Sync::Off).unwrap();
    let mode = std::fs::metadata(folder.file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// A file under a former name is taken where there is none of the present one, and gets it if it is to.
#[test]
fn a_file_of_a_former_name_is_taken_over() {
    let folder = Folder::new("former");
    let (mut state, mut hub) = reopen(&folder, Sync::Always);
    publish(&mut hub, "v", "x");
    keep(&mut hub, &mut state);
    state.release().unwrap();
    let path = folder.0.join("live-a.redb");
    for is_renamed in [false, true] {
        let former = Former { path: folder.file(), is_renamed, owner: 7 };
        let (mut state, kept) = StateStore::open(&path, Some(&former), Sync::Always).unwrap();
        let hub = Hub::restore(settings(), kept, Epoch(1), 0);
        assert_eq!(value(&hub, "v"), Some((1, "x".to_owned())), "{is_renamed}");
        state.agree(&hub.introduction()).unwrap();
        state.release().unwrap();
        assert_eq!((path.exists(), folder.file().exists()), (is_renamed, !is_renamed));
        // While it keeps its name it is nobody else's.
        let other = Former { owner: 8, ..former };
        let beside = folder.0.join("live-b.redb");
        let (_state, kept) = StateStore::open(&beside, Some(&other), Sync::Always).unwrap();
        assert!(kept.topics.is_empty() && beside.exists());
        std::fs::remove_file(&beside).unwrap();
    }
    // From now on it is another site's.
    std::fs::write(folder.file(), b"").unwrap();
    let former = Former { path: folder.file(), is_renamed: true, owner: 7 };
    let (_state, kept) = StateStore::open(&path, Some(&former), Sync::Always).unwrap();
    assert_eq!(kept.topics.len(), 1);
    assert!(folder.file().exists());
}
