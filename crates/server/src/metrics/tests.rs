//! The exposition as a strict reader sees it, and figures that must agree.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Instant;

use staunch_engine::Stats;

use super::{
    ContentFigures, FabricFigures, FabricLoad, FabricNodeFigures, Readiness, SiteFigures, Snapshot, Sources,
    text,
};
use crate::live::LiveFigures;
use crate::log::{AccessLog, ErrorLog};
use crate::status::About;

/// With workers that accept.
fn sources(walked: bool, workers: usize) -> Sources {
    let sources = silent_sources(walked, workers, false);
    sources.serve();
    sources
}

fn silent_sources(walked: bool, workers: usize, takes_over: bool) -> Sources {
    let stats = (0..workers).map(|_| Arc::new(Stats::default())).collect();
    let about = About { version: "1.2.3", io: "epoll", stats };
    let site = SiteFigures { name: "a \"site\"\\\n".to_owned(), files: 3, walked, ..SiteFigures::default() };
    let log = AccessLog::new(Arc::new(|_| {}));
    Sources::new(
        about,
        1000,
        Instant::now(),
        Box::new(move || ContentFigures { sites: vec![site.clone()], ..ContentFigures::default() }),
        (log, ErrorLog::new().expect("a descriptor")),
        takes_over,
    )
}

/// What a strict reader of the text form must find: every family has help and type before its samples, stands
/// once, is named after its type; every sample has a number and stands once.
fn check(text: &str) -> Result<BTreeSet<String>, String> {
    let (mut families, mut samples) = (BTreeMap::new(), BTreeSet::new());
    let mut helped = String::new();
    let mut current = (String::new(), String::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').ok_or(format!("no help: {line}"))?;
            helped = name.to_owned();
            if !help.ends_with('.') || help.len() < 5 {
                return Err(format!("no sentence: {line}"));
            }
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').ok_or(format!("no type: {line}"))?;
            let named_as_counter = name.ends_with("_total");
            if name != helped || named_as_counter != (kind == "counter") {
                return Err(format!("wrong name or type: {line}"));
            }
            if families.insert(name.to_owned(), kind.to_owned()).is_some() {
                return Err(format!("twice: {line}"));
            }
            current = (name.to_owned(), kind.to_owned());
        } else {
            let (sample, value) = line.rsplit_once(' ').ok_or(format!("no value: {line}"))?;
            value.parse::<f64>().map_err(|_| format!("no number: {line}"))?;
            let name = sample.split('{').next().unwrap_or_default();
            let belongs = match current.1.as_str() {
                "histogram" => {
                    ["_bucket", "_sum", "_count"].iter().any(|end| name == current.0.clone() + end)
                }
                _ => name == current.0,
            };
            if !belongs || !samples.insert(sample.to_owned()) {
                return Err(format!("not of this family, or twice: {line}"));
            }
        }
    }
    Ok(families.into_keys().collect())
}

#[test]
fn the_checker_checks() {
    let good = "# HELP a_total All of it.\n# TYPE a_total counter\na_total{x=\"y\"} 1\n";
    assert!(check(good).is_ok());
    let faults =
        ["# TYPE a_total counter\na_total 1\n", "a 1\n", "# HELP a All of it.\n# TYPE a counter\na 1\n"];
    for fault in faults {
        assert!(check(fault).is_err(), "{fault}");
    }
    assert!(check(&format!("{good}a_total{{x=\"y\"}} 2\n")).is_err());
    assert!(check(&format!("{good}{good}")).is_err());
}

#[test]
fn the_exposition_is_well_formed() {
    let text = text(&sources(true, 2).snapshot());
    let families = check(&text).unwrap_or_else(|fault| panic!("{fault}\n{text}"));
    assert!(families.contains("staunch_request_duration_seconds"), "{text}");
    assert!(text.contains("staunch_build_info{version=\"1.2.3\",io=\"epoll\"} 1\n"), "{text}");
    assert!(text.contains("staunch_content_files{site=\"a \\\"site\\\"\\\\\\n\"} 3\n"), "{text}");
    assert!(
        text.contains("staunch_ready 1\n") && text.contains("staunch_worker_connections{worker=\"1\"} 0\n")
    );
}

fn fabric() -> FabricFigures {
    let load =
        |requests_per_second| FabricLoad { requests_per_second, connections: 3, ..FabricLoad::default() };
    let node = |last, load, silent| FabricNodeFigures {
        address: Ipv4Addr::new(10, 0, 0, last),
        load,
        topics: 2,
        silent_ms: 9_500,
        silent,
        behind: !silent,
    };
    FabricFigures {
        address: Ipv4Addr::new(10, 0, 0, 1),
        interface: "eth1".into(),
        protection: "mac".into(),
        trouble: String::new(),
        load: load(7),
        topics: 5,
        marks: 1,
        nodes: vec![node(2, Some(load(20)), false), node(3, Some(load(1)), true), node(4, None, true)],
        counts: [("asked".to_owned(), 6), ("updates_taken".to_owned(), 4)].into(),
    }
}

#[test]
fn the_other_servers_of_the_lan_are_exposed() {
    let snapshot = Snapshot { fabric: Some(fabric()), ..sources(true, 1).snapshot() };
    let text = text(&snapshot);
    check(&text).unwrap_or_else(|fault| panic!("{fault}\n{text}"));
    for line in [
        "staunch_fabric_nodes{state=\"heard\"} 1\n",
        "staunch_fabric_nodes{state=\"silent\"} 2\n",
        "staunch_fabric_behind 1\n",
        "staunch_fabric_others_requests_per_second 21\n",
        "staunch_fabric_events_total{event=\"asked\"} 6\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let json = serde_json::to_string(&snapshot).unwrap();
    assert_eq!(serde_json::from_str::<Snapshot>(&json).unwrap().fabric, snapshot.fabric);
}

#[test]
fn the_page_of_the_fabric_has_a_line_for_each_server() {
    let page = fabric().page();
    let lines: Vec<&str> = page.lines().collect();
    assert_eq!(lines.len(), 7, "{page}");
    assert!(lines[0].starts_with("10.0.0.1 on eth1, keys mac, 5 topics"), "{page}");
    for (line, end) in
        [(3, "here, "), (4, "is being asked, "), (5, "silent for 9 s, "), (6, "silent for 9 s")]
    {
        assert!(lines[line].trim_end().ends_with(end.trim_end()), "{page}");
    }
}

/// A reader of a graph finds every name in the exposition, and every metric has its graph.
#[test]
fn the_dashboard_and_the_exposition_know_the_same_names() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/grafana/staunch.json");
    let dashboard = std::fs::read_to_string(path).unwrap();
    let _: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    let words = dashboard.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    let is_name = |word: &&str| word.starts_with("staunch_") || word.starts_with("process_");
    let drawn: BTreeSet<&str> = words
        .filter(is_name)
        .map(|word| {
            ["_bucket", "_sum", "_count"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word)
        })
        .collect();
    let live = Some(LiveFigures::default());
    let text = text(&Snapshot { fabric: Some(fabric()), live, ..sources(true, 1).snapshot() });
    let families = check(&text).unwrap();
    // Metrics that the program adds to the server's own.
    let certificates =
        ["staunch_acme_attempts_total", "staunch_acme_failures", "staunch_certificate_expiry_seconds"];
    let known: BTreeSet<&str> = families.iter().map(String::as_str).chain(certificates).collect();
    assert_eq!(drawn, known);
}

#[test]
fn readiness_is_kept_until_draining() {
    assert_eq!(sources(false, 1).readiness(), Readiness::Preparing, "folders are walked");
    assert_eq!(silent_sources(true, 1, false).readiness(), Readiness::Preparing, "nobody accepts yet");
    assert_eq!(silent_sources(false, 1, true).readiness(), Readiness::Ready, "another one accepts still");
    // No site of these figures is done: encodings are not waited for.
    let ready = sources(true, 1);
    assert!(ready.snapshot().sites.iter().all(|site| !site.done));
    assert_eq!(ready.readiness(), Readiness::Ready);
    ready.drain();
    assert_eq!(ready.readiness(), Readiness::Draining);
    assert!(text(&ready.snapshot()).contains("staunch_ready 0\n"));
}

#[test]
fn a_snapshot_is_read_as_it_was_written() {
    let mut snapshot = sources(false, 3).snapshot();
    // Times need not survive to the last digit.
    (snapshot.uptime_seconds, snapshot.process.cpu_seconds) = (1.5, 0.25);
    snapshot.process.start_unix_seconds = 1e9;
    let text = serde_json::to_string(&snapshot).unwrap();
    assert_eq!(serde_json::from_str::<Snapshot>(&text).unwrap(), snapshot);
}
