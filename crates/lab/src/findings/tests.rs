//! Each finding with results made up to confirm it, to refute it, to leave it open, and to lack its rows.

use super::*;
use crate::made_up::{measured, results, spoken};
use crate::paper;
use crate::results::Protocol;

/// A question and pool, with a cost in microseconds.
type Asked = ((usize, u64, usize, usize), f64);

/// Rows of a model, each of three rounds that differ by so much of the cost.
fn rows(model: &str, asked: &[Asked], spread: f64) -> Vec<Measured> {
    let rounds = |us: f64| [us * (1.0 - spread), us, us * (1.0 + spread)];
    asked.iter().map(|(asked, us)| measured(model, *asked, &rounds(*us))).collect()
}

fn part(rows: Vec<Measured>, model: &str, claim: &str) -> Part {
    let all = findings(&results(rows));
    let finding = all.into_iter().find(|finding| finding.model == model).expect("a finding");
    let says = finding.parts.into_iter().find(|part| part.claim.contains(claim));
    says.unwrap_or_else(|| panic!("{model}: {claim}"))
}

/// Rows that must give a verdict, and the same with a spread that hides it.
fn decides(model: &str, claim: &str, build: impl Fn(f64, f64) -> Vec<Measured>, ratios: (f64, f64)) {
    let (confirming, refuting) = ratios;
    for (ratio, spread, verdict) in [
        (confirming, 0.01, ClaimVerdict::Confirmed),
        (refuting, 0.01, ClaimVerdict::Refuted),
        (confirming, 0.8, ClaimVerdict::NotSeparable),
    ] {
        let part = part(build(ratio, spread), model, claim);
        assert_eq!(part.verdict, verdict, "{model}: {claim}: {ratio} {spread}: {:?}", part.evidence);
        assert!(!part.evidence.is_empty());
    }
    assert_eq!(part(Vec::new(), model, claim).verdict, ClaimVerdict::NotMeasured, "{model}: {claim}");
}

/// Two rows of one model, the second so many times the first.
fn two(
    model: &'static str,
    first: (usize, u64, usize, usize),
    second: (usize, u64, usize, usize),
) -> impl Fn(f64, f64) -> Vec<Measured> {
    move |ratio, spread| rows(model, &[(first, 100.0), (second, 100.0 * ratio)], spread)
}

/// A question to two models.
fn beside(model: &'static str, other: &'static str) -> impl Fn(f64, f64) -> Vec<Measured> {
    move |ratio, spread| {
        let question = (10, 500, 4000, 0);
        let mut both = rows(other, &[(question, 100.0)], spread);
        both.extend(rows(model, &[(question, 100.0 * ratio)], spread));
        both
    }
}

#[test]
fn every_claim_is_confirmed_refuted_left_open_or_not_measured() {
    let (one, ten) = ((1, 5000, 4000, 0), (10, 500, 4000, 0));
    decides("iterative", "30 to 40 %", two("iterative", one, ten), (0.65, 0.75));
    decides("iterative", "small part", two("iterative", (1, 50, 4, 0), (1, 50, 10_000, 0)), (1.1, 1.6));
    decides("fork", "same number", two("fork", one, ten), (0.75, 1.2));
    decides("thread", "same number", two("thread", one, ten), (1.2, 0.9));
    decides("thread", "process for each", beside("thread", "fork"), (0.5, 1.1));
    let (few, many) = ((1, 500, 4000, 5), (10, 500, 4000, 5));
    decides("prefork", "same pool", two("prefork", few, many), (1.1, 0.9));
    decides("prefork", "fewer processes", two("prefork", (1, 5, 4000, 2), (1, 5, 4000, 20)), (1.2, 0.8));
    decides("prefork", "half to a third", beside("prefork", "fork"), (0.4, 0.2));
    decides("prethread", "fewer threads", two("prethread", (1, 5, 4000, 2), (1, 5, 4000, 20)), (1.2, 0.8));
    decides("prethread", "same number", two("prethread", (1, 5000, 40, 9), (9, 555, 40, 9)), (1.1, 0.9));
    decides("prethread", "thread for each", beside("prethread", "thread"), (0.9, 1.1));
    decides("prethread-handover", "as many", two("prethread-handover", few, many), (1.2, 0.9));
    let (one, ten) = ((1, 5000, 4000, 10), (10, 500, 4000, 10));
    decides("prethread-handover", "same number", two("prethread-handover", one, ten), (1.2, 0.9));
    decides("prethread-handover", "slightly dearer", beside("prethread-handover", "prethread"), (1.1, 0.9));
}

#[test]
fn a_line_is_straight_or_it_is_not() {
    let with = |costs: [f64; 4]| {
        let asked = [1, 2, 4, 10].into_iter().zip(costs);
        let asked: Vec<Asked> = asked.map(|(children, us)| ((children, 5000, 4000, 0), us)).collect();
        part(rows("iterative", &asked, 0.01), "iterative", "straight line").verdict
    };
    assert_eq!(with([100.0, 99.0, 101.0, 100.0]), ClaimVerdict::Confirmed);
    assert_eq!(with([100.0, 200.0, 30.0, 90.0]), ClaimVerdict::Refuted);
    let two: Vec<Asked> = vec![((1, 5, 40, 0), 1.0), ((2, 5, 40, 0), 9.0)];
    assert_eq!(part(rows("iterative", &two, 0.01), "iterative", "line").verdict, ClaimVerdict::NotMeasured);
}

#[test]
fn the_papers_rows_say_of_its_findings_what_its_remarks_say() {
    let all = findings(&paper::as_results());
    let verdicts: Vec<(&str, Vec<ClaimVerdict>)> = all
        .iter()
        .map(|finding| (finding.model, finding.parts.iter().map(|part| part.verdict).collect()))
        .collect();
    use ClaimVerdict::{Confirmed, Refuted};
    assert_eq!(
        verdicts,
        [
            ("iterative", vec![Confirmed, Refuted, Confirmed]),
            ("fork", vec![Confirmed]),
            ("prefork", vec![Refuted, Confirmed, Confirmed]),
            ("thread", vec![Confirmed, Confirmed]),
            ("prethread", vec![Confirmed, Confirmed, Confirmed]),
            ("prethread-handover", vec![Confirmed, Confirmed, Confirmed]),
        ]
    );
}

#[test]
fn the_engine_is_measured_against_the_best_plain_model() {
    let http = |protocol, model, us: f64| {
        spoken(protocol, measured(model, (10, 500, 4000, 0), &[us, us * 1.01, us * 1.02]))
    };
    for (engine, connection, keep_alive) in [
        (90.0, ClaimVerdict::Confirmed, ClaimVerdict::Confirmed),
        (102.0, ClaimVerdict::Confirmed, ClaimVerdict::NotSeparable),
        (104.0, ClaimVerdict::NotSeparable, ClaimVerdict::Refuted),
        (120.0, ClaimVerdict::Refuted, ClaimVerdict::Refuted),
    ] {
        let mut rows = Vec::new();
        for protocol in [Protocol::Http, Protocol::KeepAlive] {
            rows.push(http(protocol, "epoll-edge", 100.0));
            rows.push(http(protocol, "fork", 300.0));
            rows.push(http(protocol, "staunch-epoll", engine));
            // The other engine is no plain model, be it ever so cheap.
            rows.push(http(protocol, "staunch-uring", 1.0));
        }
        let claims = claims(&results(rows));
        assert_eq!(claims[0].verdict, connection, "{engine}: {:?}", claims[0].evidence);
        assert_eq!(claims[2].verdict, keep_alive, "{engine}: {:?}", claims[2].evidence);
        assert!(claims[0].evidence[0].what.ends_with("staunch-epoll instead of epoll-edge"));
    }
    let verdicts: Vec<ClaimVerdict> =
        claims(&results(Vec::new())).iter().map(|claim| claim.verdict).collect();
    assert_eq!(verdicts, [ClaimVerdict::NotMeasured; 5]);
}

#[test]
fn a_busy_client_is_the_bottleneck_unless_the_server_is_busier() {
    let with = |client: f64, server: f64, wall_s: f64| {
        let mut row = measured("fork", (10, 500, 4000, 0), &[100.0; 3]);
        for round in &mut row.rounds {
            round.client.wall_s = wall_s;
            round.client.usage.system_s = client * wall_s;
            round.server.system_s = server * wall_s;
        }
        results(vec![row])
    };
    let verdict = |results: &Results| client(results).verdict;
    assert_eq!(verdict(&with(0.5, 0.6, 1.0)), ClaimVerdict::Confirmed);
    assert_eq!(verdict(&with(0.97, 0.99, 1.0)), ClaimVerdict::Confirmed);
    assert_eq!(verdict(&with(0.97, 0.6, 1.0)), ClaimVerdict::Refuted);
    assert_eq!(verdict(&with(0.97, 0.6, 0.001)), ClaimVerdict::NotMeasured);
    let mut shared = with(0.5, 0.6, 1.0);
    shared.machine.client_cpus = vec![0];
    assert_eq!(verdict(&shared), ClaimVerdict::NotSeparable);
}

fn client(results: &Results) -> Part {
    claims(results).pop().expect("the client's claim")
}
