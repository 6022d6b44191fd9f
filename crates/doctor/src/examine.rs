//! The examination: every check on one host.
//!
//! It owns how a check becomes findings. It must never add an opinion of its own.

use serde::Serialize;

use crate::check::{Check, Judge, Verdict, Wanted};
use crate::checks::GROUPS;
use crate::finding::{Finding, State};
use crate::host::{Host, sysctl_path};

/// How many findings there are of each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Summary {
    /// They cost requests or connections.
    pub matters: usize,
    /// They would be better otherwise.
    pub advice: usize,
    /// They are right.
    pub ok: usize,
    /// They cannot be read or understood.
    pub unknown: usize,
    /// The host has no such thing.
    pub not_here: usize,
    /// So many `--apply` would set.
    pub settable: usize,
}

impl Summary {
    /// Counts findings.
    pub fn of(findings: &[Finding]) -> Self {
        let count = |state| findings.iter().filter(|finding| finding.state == state).count();
        Self {
            matters: count(State::Matters),
            advice: count(State::Advice),
            ok: count(State::Ok),
            unknown: count(State::Unknown),
            not_here: count(State::NotHere),
            settable: findings.iter().filter(|finding| finding.sysctl.is_some()).count(),
        }
    }
}

/// Judges a host by every check, in the order of the report.
pub fn examine(host: &Host) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (group, checks) in GROUPS {
        for check in *checks {
            run(host, group, check, &mut findings);
        }
    }
    findings
}

fn run(host: &Host, group: &'static str, check: &Check, findings: &mut Vec<Finding>) {
    match check.judge {
        Judge::Host(judge) => {
            let verdict = Verdict { sysctl: None, ..judge(host) };
            findings.push(finding(group, check, check.name.to_owned(), verdict));
        }
        Judge::Sysctl(judge) => {
            findings.push(finding(group, check, check.name.to_owned(), judge(host)));
        }
        Judge::Number(wanted) => {
            let verdict = judge_number(host, check.name, &wanted(host));
            findings.push(finding(group, check, check.name.to_owned(), verdict));
        }
        Judge::Interface(judge) => {
            let cards = host.interfaces();
            for card in &cards {
                let name = format!("{} {}", check.name, card.name);
                findings.push(finding(group, check, name, judge(host, card)));
            }
            if cards.is_empty() {
                findings.push(finding(group, check, check.name.to_owned(), Verdict::not_here()));
            }
        }
    }
}

fn judge_number(host: &Host, name: &str, wanted: &Wanted) -> Verdict {
    let Some(text) = host.sysctl(name) else {
        let unreadable = host.exists(&sysctl_path(name));
        return if unreadable { Verdict::unknown("cannot be read") } else { Verdict::not_here() };
    };
    // Some have -1 for "no limit", and fs.file-max goes beyond 63 bits on some kernels.
    let value = match text.parse::<i128>() {
        Ok(number) => u64::try_from(number).unwrap_or(u64::MAX),
        Err(_) => return Verdict::unknown(text),
    };
    if (wanted.least..=wanted.most).contains(&value) {
        return Verdict::ok(text);
    }
    let verdict = Verdict::advise(text, value.clamp(wanted.least, wanted.most)).settable();
    Verdict { state: Some(wanted.otherwise), ..verdict }
}

fn finding(group: &'static str, check: &Check, name: String, verdict: Verdict) -> Finding {
    Finding {
        name,
        group,
        state: verdict.state.unwrap_or(State::Unknown),
        value: verdict.value,
        advice: verdict.advice,
        reason: verdict.note.unwrap_or_else(|| check.reason.to_owned()),
        source: check.source,
        sysctl: verdict.sysctl,
    }
}
