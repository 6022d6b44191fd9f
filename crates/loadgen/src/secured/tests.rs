//! Whole runs by TLS, against a server of rustls in threads of the test.
//!
//! What a run may believe, resume and lose is judged by its counts; nothing is judged by a time.

mod server;

use std::path::PathBuf;
use std::sync::Arc;

use rustls::version::{TLS12, TLS13};
use staunch_netio::Address;

use crate::check::{BodyCheck, Check};
use crate::mix::{Choice, MixEntry, MixPlan};
use crate::outcome::RunOutcome;
use crate::plan::{IoChoice, LaneKind, LanePlan, Plan, TlsPlan, TlsTrust};
use crate::request::RequestPlan;
use crate::worker::RunControl;
use server::{BIG_BYTES, Manner, TestServer};

const WAYS: [IoChoice; 2] = [IoChoice::Auto, IoChoice::Epoll];

/// A closed loop of so many requests for a path.
fn closed(connections: u32, requests: u64, a_connection: Option<u32>, path: &str) -> LanePlan {
    let kind = LaneKind::Closed {
        connections,
        pipeline: 1,
        requests_per_connection: a_connection,
        requests: Some(requests),
    };
    lane(kind, MixEntry::get(path))
}

fn lane(kind: LaneKind, entry: MixEntry) -> LanePlan {
    LanePlan {
        name: "main".to_owned(),
        kind,
        mix: MixPlan {
            authority: "localhost".to_owned(),
            entries: vec![entry],
            choice: Choice::InOrder,
            keep_alive: true,
        },
        patience: None,
        late_after: None,
        reset_on_close: false,
    }
}

fn plan(server: &TestServer, lane: LanePlan, io: IoChoice) -> Plan {
    Plan {
        command: String::new(),
        target: String::new(),
        address: Address::Internet(server.address),
        tls: Some(TlsPlan {
            server: "localhost".to_owned(),
            trust: TlsTrust::File(server.authority.clone()),
            resumes: true,
        }),
        sources: Vec::new(),
        lanes: vec![lane],
        duration: None,
        threads: vec![None],
        io,
        seed: 1,
        probe: None,
    }
}

fn run(plan: &Plan) -> RunOutcome {
    let control = Arc::new(RunControl::default());
    let outcome = crate::run(plan, &control, &mut |_| {}).expect("a run");
    let counts = outcome.counts();
    assert_eq!(counts.settled(), counts.offered, "{counts:?}");
    outcome
}

/// The reasons for which connections were lost.
fn reasons(outcome: &RunOutcome) -> Vec<&str> {
    outcome.lanes[0].tls.faults.keys().map(String::as_str).collect()
}

#[test]
fn both_versions_are_spoken_on_both_ways() {
    for (version, name) in [(&TLS13, "TLS 1.3 TLS_"), (&TLS12, "TLS 1.2 TLS_ECDHE_")] {
        let server = TestServer::start(Manner::Answers, &[version]);
        for io in WAYS {
            let outcome = run(&plan(&server, closed(3, 30, None, "/ok"), io));
            let counts = outcome.counts();
            assert_eq!((counts.in_time, counts.handshakes), (30, 3), "{counts:?}");
            assert_eq!(outcome.times().handshake.count(), 3);
            let suites = &outcome.lanes[0].tls.suites;
            assert!(suites.keys().all(|suite| suite.starts_with(name)), "{suites:?}");
            assert_eq!(suites.values().sum::<u64>(), 3);
            assert!(outcome.warnings.iter().all(|warning| !warning.contains("TLS failed")));
        }
    }
}

#[test]
fn new_connections_resume_unless_they_are_not_to() {
    for version in [&TLS13, &TLS12] {
        let server = TestServer::start(Manner::Answers, &[version]);
        for (resumes, resumed) in [(true, 11), (false, 0)] {
            let mut plan = plan(&server, closed(1, 12, Some(1), "/ok"), IoChoice::Auto);
            plan.tls.as_mut().expect("TLS").resumes = resumes;
            let counts = run(&plan).counts();
            assert_eq!((counts.in_time, counts.handshakes), (12, 12), "{counts:?}");
            assert_eq!(counts.handshakes_resumed, resumed, "{version:?}");
        }
    }
}

#[test]
fn long_bodies_go_both_ways_and_pipelines_too() {
    let server = TestServer::start(Manner::Answers, &[&TLS13]);
    for io in WAYS {
        let body = vec![b'x'; 300_000];
        let request = RequestPlan { method: "POST".to_owned(), body, ..RequestPlan::get("/echo") };
        let check = Check { body: BodyCheck::Length(300_000), ..Check::default() };
        let kind = LaneKind::Closed {
            connections: 2,
            pipeline: 3,
            requests_per_connection: None,
            requests: Some(12),
        };
        let counts = run(&plan(&server, lane(kind, MixEntry { weight: 1.0, request, check }), io)).counts();
        assert_eq!(counts.in_time, 12, "{counts:?}");
        assert!(counts.sent_bytes > 12 * 300_000, "records are longer than what they hold: {counts:?}");

        let mut big = closed(2, 6, None, "/big");
        big.mix.entries[0].check.body = BodyCheck::Length(BIG_BYTES as u64);
        assert_eq!(run(&plan(&server, big, io)).counts().in_time, 6);
    }
}

/// A body that lasts until the connection ends is whole where the server says so; anybody can cut one off.
#[test]
fn an_end_counts_where_the_server_has_said_it() {
    let server = TestServer::start(Manner::Answers, &[&TLS13]);
    for io in WAYS {
        assert_eq!(run(&plan(&server, closed(1, 3, Some(1), "/ended"), io)).counts().in_time, 3);
        assert_eq!(run(&plan(&server, closed(1, 3, Some(1), "/cut"), io)).counts().reset, 3);
    }
}

#[test]
fn what_is_not_believed_is_told_by_reason() {
    let server = TestServer::start(Manner::Answers, &[&TLS13]);
    let other = TestServer::start(Manner::Answers, &[&TLS13]);
    let trusts = |trust: &PathBuf, name: &str| TlsPlan {
        server: name.to_owned(),
        trust: TlsTrust::File(trust.clone()),
        resumes: true,
    };
    for (tls, reason) in [
        (trusts(&other.authority, "localhost"), "the certificate is of no trusted authority"),
        (trusts(&server.authority, "127.0.0.1"), "the certificate is for another name"),
        (trusts(&server.authority, "elsewhere.test"), "the certificate is for another name"),
    ] {
        let mut plan = plan(&server, closed(2, 4, None, "/ok"), IoChoice::Auto);
        plan.tls = Some(tls);
        let outcome = run(&plan);
        let counts = outcome.counts();
        assert_eq!((counts.failed, counts.handshakes_failed, counts.handshakes), (4, 4, 0), "{counts:?}");
        assert!(reasons(&outcome)[0].starts_with(reason), "{:?}", reasons(&outcome));
        assert!(outcome.warnings[0].starts_with("TLS failed on 4 connections: "), "{:?}", outcome.warnings);
    }
    let expired = TestServer::start(Manner::Expired, &[&TLS13]);
    let outcome = run(&plan(&expired, closed(2, 4, None, "/ok"), IoChoice::Auto));
    assert_eq!(outcome.counts().failed, 4);
    assert_eq!(reasons(&outcome), ["the certificate has expired"]);
    let mut anything = plan(&server, closed(2, 4, None, "/ok"), IoChoice::Auto);
    anything.tls.as_mut().expect("TLS").trust = TlsTrust::Anything;
    anything.tls.as_mut().expect("TLS").server = "elsewhere.test".to_owned();
    assert_eq!(run(&anything).counts().in_time, 4);
}

#[test]
fn a_server_that_does_not_speak_it_is_told_by_reason() {
    for (manner, reason) in [
        (Manner::Plain, "what came is not TLS"),
        (Manner::Closes, "the connection was closed during the handshake"),
    ] {
        let server = TestServer::start(manner, &[&TLS13]);
        for io in WAYS {
            let outcome = run(&plan(&server, closed(1, 3, None, "/ok"), io));
            let counts = outcome.counts();
            assert_eq!((counts.failed + counts.reset, counts.handshakes_failed), (3, 3), "{counts:?}");
            assert_eq!(reasons(&outcome), [reason], "{manner:?}");
        }
    }
}

#[test]
fn a_handshake_that_hangs_ends_with_patience_and_is_told() {
    let server = TestServer::start(Manner::Silent, &[&TLS13]);
    for io in WAYS {
        let mut lane = closed(2, 4, None, "/ok");
        lane.patience = Some(std::time::Duration::from_millis(20));
        let outcome = run(&plan(&server, lane, io));
        let counts = outcome.counts();
        assert_eq!((counts.timed_out, counts.handshakes_failed), (4, 4), "{counts:?}");
        assert_eq!(reasons(&outcome), ["patience was over before the handshake was"]);
    }
}

/// Drips and held connections send nothing through the usual way of a request.
#[test]
fn slow_and_held_connections_are_secured_as_well() {
    let server = TestServer::start(Manner::Answers, &[&TLS13]);
    for io in WAYS {
        let interval = std::time::Duration::from_micros(1);
        let slow = LaneKind::SlowBody { connections: 2, interval, length_bytes: 50 };
        let reader = LaneKind::SlowReader { connections: 2, interval };
        for (kind, path) in [(slow, "/echo"), (reader, "/big")] {
            let control = Arc::new(RunControl::default());
            let plan = plan(&server, lane(kind, MixEntry::get(path)), io);
            let mut answered = 0;
            let outcome = crate::run(&plan, &control, &mut |moment| {
                answered += moment.counts.in_time;
                if answered >= 4 {
                    control.stop();
                }
            });
            let counts = outcome.expect("a run").counts();
            assert_eq!((counts.wrong_answer, counts.failed), (0, 0), "{counts:?}");
            assert!(counts.handshakes >= 2, "{counts:?}");
        }
        let control = Arc::new(RunControl::default());
        let kind = LaneKind::Hold { connections: 20, open_per_s: None, request_first: false };
        let plan = plan(&server, lane(kind, MixEntry::get("/ok")), io);
        let outcome = crate::run(&plan, &control, &mut |moment| {
            if moment.held == 20 {
                control.stop();
            }
        })
        .expect("a run");
        assert_eq!((outcome.lanes[0].held, outcome.counts().handshakes), (Some(20), 20));
    }
}

#[test]
fn authorities_that_cannot_be_read_are_a_fault_of_the_plan() {
    let server = TestServer::start(Manner::Plain, &[&TLS13]);
    for (path, words) in [("/no/such/file", "No such file"), ("/dev/null", "no certificate")] {
        let mut plan = plan(&server, closed(1, 1, None, "/ok"), IoChoice::Auto);
        plan.tls.as_mut().expect("TLS").trust = TlsTrust::File(path.into());
        let fault = crate::run(&plan, &Arc::default(), &mut |_| {}).expect_err(path).to_string();
        assert!(fault.contains(path) && fault.contains(words), "{fault}");
    }
}
