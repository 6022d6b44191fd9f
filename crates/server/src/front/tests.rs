//! The front tells its parts of events that no handler answered.

use std::time::Duration;

use staunch_engine::{Context, Ended, Outgoing, Stats, StreamRef};
use staunch_protocol::http1::{Event, Session};

use super::*;
use crate::SiteConfig;
use crate::content::testing::Folder;
use crate::live::LiveConfig;
use crate::log::{Format, LogCondition, LogSettings, Target};

const ADDRESS: Address = Address { worker: 0, slot: 5, generation: 1, stream: StreamRef::ONLY };
const DATE: &[u8; 29] = b"Fri, 20 Nov 2026 10:00:00 GMT";
/// Longer than any disk takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// A front of a site with live data, and what it shares with others.
fn front(folder: &Folder) -> (Front, FrontParts) {
    let site = SiteConfig { root: folder.path().to_path_buf(), ..SiteConfig::default() };
    let sites = SitesShared::open(vec![site]).unwrap();
    let config = LiveConfig {
        site: String::new(),
        is_default: true,
        topics_max: 10,
        value_bytes_max: 100,
        memory_bytes: 1000,
        readers_max: 10,
        origins: Vec::new(),
        issuers: Vec::new(),
        quotes_prefix: String::new(),
        cookie: "t".into(),
        echo: false,
        publish_token: None,
        topics: Vec::new(),
        state: None,
        node: None,
    };
    let live = LiveSites::open(vec![config], 1, None, &(Arc::new(|_: &str| ()) as _)).unwrap();
    let parts = FrontParts { live: Some(live), ..FrontParts::of_sites(&sites) };
    (Front::new(&parts, 0), parts)
}

/// Gives the front a request.
fn ask(front: &mut Front, head: &str) -> Answered {
    let (mut session, mut outgoing, stats) = (Session::new(0), Outgoing::default(), Stats::default());
    let mut input = head.as_bytes();
    let event = session.poll_event(&mut input, 0, DATE, outgoing.bytes());
    let Event::Request(request) = event else { panic!("{event:?}") };
    let outbox = Outbox::default();
    let context = Context::new(&stats, DATE, 0, &outbox, ADDRESS);
    front.handle(&request, Answer::new(&mut session, &mut outgoing, &context))
}

/// A poll that waits for the next update of a topic.
fn poll(parts: &FrontParts) -> String {
    let epoch = parts.live.iter().flat_map(|live| live.iter()).map(|live| live.epoch).next().unwrap();
    format!("GET /live/a?after={epoch}-0&wait=20 HTTP/1.1\r\nHost: a\r\n\r\n")
}

fn readers(parts: &FrontParts) -> u64 {
    parts.live.as_ref().map_or(0, |live| live.readers())
}

#[test]
fn a_refused_exchange_is_told_to_the_log_and_to_its_owner() {
    let folder = Folder::new();
    let (mut front, parts) = front(&folder);
    assert!(ask(&mut front, &poll(&parts)).is_later());
    assert_eq!(readers(&parts), 1);
    let target = Target::File(folder.path().join(".log"));
    parts
        .log
        .set(Some(LogSettings {
            target,
            format: Format::Combined,
            size_bytes_max: None,
            keep: 0,
            condition: LogCondition::default(),
        }))
        .unwrap();
    let refused = |owner| Refused {
        address: ADDRESS,
        owner,
        status: Status::SERVICE_UNAVAILABLE,
        body_bytes: 63,
        unix_ms: 0,
        request: None,
        peer: None,
        identity: None,
    };
    front.refused(&refused(None));
    front.refused(&refused(Some(OwnerPart::Sites.into())));
    assert_eq!(readers(&parts), 1, "neither was the poll");
    front.refused(&refused(Some(OwnerPart::Live(0).into())));
    assert_eq!(readers(&parts), 0);
    assert!(parts.log.finish(PATIENCE));
    assert_eq!(std::fs::read_to_string(folder.path().join(".log")).unwrap().lines().count(), 3);
}

#[test]
fn what_happens_to_an_exchange_comes_to_its_owner_alone() {
    let folder = Folder::new();
    let (mut front, parts) = front(&folder);
    let _ = ask(&mut front, &poll(&parts));
    for owner in [OwnerPart::Sites, OwnerPart::Live(1)] {
        front.left(owner.into(), ADDRESS, Departure::Gone, &Outbox::default());
        assert_eq!(readers(&parts), 1, "{owner:?}");
    }
    front.left(OwnerPart::Live(0).into(), ADDRESS, Departure::Gone, &Outbox::default());
    assert_eq!(readers(&parts), 0);
    let events = "GET /events?topic=a HTTP/1.1\r\nHost: a\r\n\r\n";
    assert!(!ask(&mut front, events).is_complete());
    let finished = |owner: OwnerPart, address| Finished {
        address,
        owner: owner.into(),
        request: None,
        status: Status::OK,
        body_bytes: 0,
        unix_ms: 0,
        peer: None,
        identity: None,
        why: Ended::Gone,
    };
    front.finished(&finished(OwnerPart::Sites, ADDRESS));
    front.finished(&finished(OwnerPart::Live(0), Address { generation: 2, ..ADDRESS }));
    assert_eq!(readers(&parts), 1);
    front.finished(&finished(OwnerPart::Live(0), ADDRESS));
    assert_eq!(readers(&parts), 0);
}

#[test]
fn a_request_that_no_part_reads_is_answered_and_told_to_the_log() {
    let folder = Folder::new();
    let (mut front, parts) = front(&folder);
    let target = Target::File(folder.path().join(".log"));
    let settings = LogSettings {
        target,
        format: Format::Combined,
        size_bytes_max: None,
        keep: 0,
        condition: LogCondition::default(),
    };
    parts.log.set(Some(settings)).unwrap();
    let (mut session, mut outgoing, stats) = (Session::new(0), Outgoing::default(), Stats::default());
    let mut input = &b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"[..];
    let event = session.poll_event(&mut input, 0, DATE, outgoing.bytes());
    let Event::Request(request) = event else { panic!("{event:?}") };
    session.read_body(&request, outgoing.bytes());
    let outbox = Outbox::default();
    let context = Context::new(&stats, DATE, 0, &outbox, ADDRESS);
    let reading = Reading::new(Answer::new(&mut session, &mut outgoing, &context), 2);
    let answered = front.reading(Some(Body::Piece(b"hi")), &request, reading);
    assert!(answered.is_complete() && answered.status() == Status::INTERNAL_SERVER_ERROR);
    assert!(parts.log.finish(PATIENCE));
    assert!(std::fs::read_to_string(folder.path().join(".log")).unwrap().contains("POST /a"));
}
