//! A publisher that is killed at random moments (SIGKILL): what was acknowledged is there afterwards. It must
//! never wait for a time: the child tells what it has kept, and is killed in the midst of that.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use staunch_live::{
    Epoch, Hub, HubSettings, Kind, Publication, StateStore, Sync, TopicName, TopicRules, Value,
};

/// The folder of the child; the variable makes a test a child.
const FOLDER: &str = "STAUNCH_LIVE_FOLDER";
const ROUNDS: usize = 12;
const TOPICS: [&str; 3] = ["v.a", "v.b", "l.a"];

fn open(folder: &Path) -> (StateStore, Hub) {
    let mut settings = HubSettings::default();
    let log = TopicRules { kind: Kind::Log, ring_entries: 5, ..TopicRules::default() };
    settings.add_rules("l.*", log).unwrap();
    let (mut state, kept) = StateStore::open(&folder.join("live.redb"), None, Sync::Always).unwrap();
    assert_eq!(kept.set_aside, None, "a crash damages nothing");
    let hub = Hub::restore(settings, kept, Epoch(7), 0);
    state.agree(&hub.introduction()).unwrap();
    (state, hub)
}

/// Publishes until it is killed. Each value is its own number.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let (mut state, mut hub) = open(Path::new(&folder));
    loop {
        for topic in TOPICS {
            let number = hub.version().number + 1;
            let value = Value::of_bytes(format!("{number} {}", "x".repeat(number as usize % 700)).as_bytes());
            hub.publish(Publication::new(TopicName::new(topic).unwrap(), value), 0).unwrap();
        }
        state.keep(&hub.take_letter().unwrap()).unwrap();
        println!("kept {}", hub.version().number);
    }
}

/// Starts a child and kills it when it has told so many times what it has kept; the last number it told.
fn acknowledged(folder: &Path, tellings: usize) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--test-threads", "1"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut told = lines.filter_map(|line| line.rsplit_once("kept ").map(|(_, number)| number.to_owned()));
    let mut number = told.by_ref().take(tellings).last().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    // What it told between the last look and its end counts as well.
    number = told.last().unwrap_or(number);
    number.parse().unwrap()
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let seed = 27;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let folder = std::env::temp_dir().join(format!("staunch-live-killed-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut last = 0;
    for round in 0..ROUNDS {
        let number = acknowledged(&folder, random.random_range(1..60));
        let (state, hub) = open(&folder);
        let version = hub.version();
        assert!(version.number >= number, "round {round}: told {number}, kept {version}");
        assert!(
            version.number > last && version.number % 3 == 0,
            "round {round}: a batch is whole: {version}"
        );
        assert_eq!(version.epoch, Epoch(7));
        for (place, topic) in TOPICS.iter().enumerate() {
            let (of, update) = hub.value(&TopicName::new(topic).unwrap()).unwrap();
            assert_eq!(of.number, version.number - 2 + place as u64);
            assert!(update.value.bytes().starts_with(format!("{} ", of.number).as_bytes()));
        }
        last = version.number;
        drop(state);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
