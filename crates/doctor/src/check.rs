//! A check: what a setting is, what is right, where that is written, and how a host is judged by it.
//!
//! It owns the shape of a check. It must never hold one: those stand in `checks`, one file a part of the
//! host.

use crate::finding::State;
use crate::host::{Host, Interface};

pub(crate) struct Check {
    /// The setting, as the kernel names it where it does.
    pub(crate) name: &'static str,
    /// What is right, in a few words.
    pub(crate) rule: &'static str,
    /// What it does, and whether it is still right today.
    pub(crate) reason: &'static str,
    /// Where that is written.
    pub(crate) source: &'static str,
    /// How a host is judged.
    pub(crate) judge: Judge,
}

/// How a host is judged.
pub(crate) enum Judge {
    /// Once.
    Host(fn(&Host) -> Verdict),
    /// Once, and `--apply` may write what the verdict calls settable to the sysctl of this name.
    Sysctl(fn(&Host) -> Verdict),
    /// For each real network interface.
    Interface(fn(&Host, &Interface) -> Verdict),
    /// A sysctl of this name that is a number, by what is wanted of it; `--apply` may write it.
    Number(fn(&Host) -> Wanted),
}

/// What is wanted of a number. Outside of it the number to write is the nearest inside.
pub(crate) struct Wanted {
    /// Least right value.
    pub(crate) least: u64,
    /// Greatest right value.
    pub(crate) most: u64,
    /// How bad another value is.
    pub(crate) otherwise: State,
}

impl Wanted {
    /// At least so much, else it would be better.
    pub(crate) fn at_least(least: u64) -> Self {
        Self { least, most: u64::MAX, otherwise: State::Advice }
    }

    /// Right within these, else it would be better.
    pub(crate) fn within(least: u64, most: u64) -> Self {
        Self { least, most, otherwise: State::Advice }
    }

    /// Another value does harm.
    pub(crate) fn or_it_matters(self) -> Self {
        Self { otherwise: State::Matters, ..self }
    }
}

/// What came of it.
#[derive(Default)]
pub(crate) struct Verdict {
    pub(crate) state: Option<State>,
    pub(crate) value: String,
    pub(crate) advice: String,
    /// Instead of the check's own reason, what is particular here.
    pub(crate) note: Option<String>,
    pub(crate) sysctl: Option<String>,
}

impl Verdict {
    /// The value is right.
    pub(crate) fn ok(value: impl ToString) -> Self {
        Self { state: Some(State::Ok), value: value.to_string(), ..Self::default() }
    }

    /// This host has no such thing.
    pub(crate) fn not_here() -> Self {
        Self { state: Some(State::NotHere), ..Self::default() }
    }

    /// The value is there and cannot be read.
    pub(crate) fn unknown(value: impl ToString) -> Self {
        Self { state: Some(State::Unknown), value: value.to_string(), ..Self::default() }
    }

    /// The value would be better otherwise.
    pub(crate) fn advise(value: impl ToString, advice: impl ToString) -> Self {
        let (value, advice) = (value.to_string(), advice.to_string());
        Self { state: Some(State::Advice), value, advice, ..Self::default() }
    }

    /// The value costs requests or connections.
    pub(crate) fn matters(value: impl ToString, advice: impl ToString) -> Self {
        Self { state: Some(State::Matters), ..Self::advise(value, advice) }
    }

    /// Gives a reason that is particular to this host.
    pub(crate) fn because(self, note: impl ToString) -> Self {
        Self { note: Some(note.to_string()), ..self }
    }

    /// `--apply` may write the advice as it stands, if the judge is one of a sysctl.
    pub(crate) fn settable(self) -> Self {
        Self { sysctl: Some(self.advice.clone()), ..self }
    }

    /// A number that came true or not, so often since the host was started.
    pub(crate) fn happened(count: Option<u64>, advice: &str) -> Self {
        match count {
            None => Self::not_here(),
            Some(0) => Self::ok("never"),
            Some(count) => Self::advise(format!("{count} times since start"), advice),
        }
    }
}
