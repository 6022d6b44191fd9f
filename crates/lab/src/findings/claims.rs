//! What this project claims of itself, tested like the paper's findings.
//!
//! It must never compare what was asked differently: Staunch's engine speaks HTTP only, so it stands beside
//! the other models in HTTP.
use std::ops::Range;

use staunch_figures::statistics::median;

use super::Part;
use crate::evidence::{ClaimVerdict, Evidence, Figures, asked, compare};
use crate::ranking::{Question, cost, spoken};
use crate::results::{Measured, Protocol, Results, Round, Row};

/// What a connection may cost in place of the best plain model.
const BAR_CONNECTION: Range<f64> = 0.0..1.05;
/// With keep-alive it is to be the best of all.
const BAR_KEEP_ALIVE: Range<f64> = 0.0..1.0;

/// A client busier than this is a bottleneck, unless the server is busier still.
const CLIENT_SHARE_MAX: f64 = 0.95;
/// A shorter round tells nothing of shares: starting the client weighs too much in it.
const WALL_S_MIN: f64 = 0.05;
/// Rows that are shown of the many in which the client is judged: the busiest.
const CLIENT_ROWS_SHOWN: usize = 5;

const LOOPBACK: &str = "\
    On loopback whoever sends a segment also does the kernel's work of receiving it. With a connection for \
    each answer more of that falls to the client, whatever client it is: wrk is as busy there. What a \
    connection costs the server does not hang on it; the time that passes does.";

/// The engine's models, and all of them begin like this.
const ENGINE: &str = "staunch-";

/// All claims: of each engine with a connection each, and with keep-alive; and of the client.
pub fn claims(results: &Results) -> Vec<Part> {
    let mut claims = Vec::new();
    for (model, name) in [("staunch-epoll", "epoll"), ("staunch-uring", "io_uring")] {
        let claim = format!(
            "Staunch's engine on {name}: at most 1.05 of the best plain model, with a connection for each \
             request"
        );
        claims.push(against_best(results, model, Protocol::Http, &BAR_CONNECTION, &claim));
    }
    for (model, name) in [("staunch-epoll", "epoll"), ("staunch-uring", "io_uring")] {
        let claim = format!("Staunch's engine on {name}: less than every plain model, with keep-alive");
        claims.push(against_best(results, model, Protocol::KeepAlive, &BAR_KEEP_ALIVE, &claim));
    }
    claims.push(client(results));
    claims
}

/// A model in place of the cheapest that is not the engine's, question by question.
fn against_best(results: &Results, model: &str, protocol: Protocol, times: &Range<f64>, claim: &str) -> Part {
    let rows = spoken(results, protocol);
    let case = |ours: &&&Measured| {
        let question = Question::of(&ours.row);
        let is_plain =
            |one: &&Measured| Question::of(&one.row) == question && !one.row.model.starts_with(ENGINE);
        let costs = rows.iter().copied().filter(is_plain).filter_map(|one| Some((one, cost(&[one])?.median)));
        let (best, _) = costs.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let asked = asked(&Row { pool: 0, ..ours.row.clone() });
        let what = format!("{asked}: {model} instead of {}", best.row.model);
        compare(what, &[best], &[ours], times)
    };
    let evidence = rows.iter().filter(|one| one.row.model == model).filter_map(|ours| case(&ours)).collect();
    Part::of(claim, evidence, "")
}

/// Whether the client could have asked for more: it had time left, or the server had less.
///
/// Of the costs of a connection nothing hangs on it: they are the server's processor time. The time that
/// passed does.
fn client(results: &Results) -> Part {
    let mut evidence: Vec<Evidence> = results.rows.iter().filter_map(|one| shares(results, one)).collect();
    let busy = |case: &Evidence| match case.figures {
        Figures::Shares(client, _) => client,
        _ => 0.0,
    };
    evidence.sort_by(|a, b| busy(b).total_cmp(&busy(a)));
    let claim = "The client is not the bottleneck: it is busy for less than 95 % of its processors' time, or \
                 the server is busier";
    let mut part = Part::of(claim, evidence, LOOPBACK);
    let is_fault = |case: &Evidence| case.verdict == ClaimVerdict::Refuted;
    let (mut shown, rest): (Vec<_>, Vec<_>) = part.evidence.into_iter().partition(is_fault);
    shown.extend(rest);
    shown.truncate(CLIENT_ROWS_SHOWN);
    part.evidence = shown;
    part
}

/// How busy both were in a row. On one processor nothing can be said.
fn shares(results: &Results, one: &Measured) -> Option<Evidence> {
    let machine = &results.machine;
    let share = |of: &dyn Fn(&Round) -> f64, cpus: usize| {
        let long = one.rounds.iter().filter(|round| round.client.wall_s >= WALL_S_MIN);
        median(&long.map(|round| of(round) / round.client.wall_s / cpus as f64).collect::<Vec<f64>>())
    };
    let client = share(
        &|round| round.client.usage.user_s + round.client.usage.system_s,
        machine.client_cpus.len().max(1),
    )?;
    let server =
        share(&|round| round.server.user_s + round.server.system_s, machine.server_cpus.len().max(1))?;
    let verdict = if machine.client_cpus.iter().any(|cpu| machine.server_cpus.contains(cpu)) {
        ClaimVerdict::NotSeparable
    } else if client < CLIENT_SHARE_MAX || server > client {
        ClaimVerdict::Confirmed
    } else {
        ClaimVerdict::Refuted
    };
    let what = format!("{}, {}", one.row.model, asked(&one.row));
    Some(Evidence { what, figures: Figures::Shares(client, server), verdict })
}
