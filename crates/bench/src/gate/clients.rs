//! Clients of the bed: how many ask, from where, for how long they wait, and what came of it.
//!
//! It owns the runs of `staunch load` in the clients' namespace. It must never judge, and never let clients
//! run on the server's processor.
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use staunch_loadgen::report::Document;

use super::bed::{Bed, WITH_PARENT};
use super::subject::PageKind;
use crate::account::{self, Account};

/// Patient clients that find a peak: enough that a server of one processor never waits.
const PATIENT_CLIENTS: &str = "32";
/// Regulars come from so many networks of 256 addresses...
const NETWORKS: u32 = 256;
/// ... from so many addresses of each.
const NETWORK_CLIENTS: u32 = 8;
/// Clients that come again and again.
pub(crate) const REGULARS: u32 = NETWORKS * NETWORK_CLIENTS;
/// The first address of strangers, 10.2.0.0, and how many the clients own from there.
const STRANGER_FIRST: u32 = 0x0a02_0000;
const STRANGERS: u32 = 1 << 17;
/// A crowd whose rate changes by steps stays for no longer than this, in seconds.
const STEPS_LIMIT_S: f64 = 660.0;
/// Any crowd has so many seconds more than it is meant to take: who does not end then is made to.
const LIMIT_MORE_S: f64 = 30.0;
/// Where clients come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// Always from one set of 2048 addresses.
    Regulars,
    /// A new address for each request, from this one of theirs on.
    Strangers(u32),
}

/// A crowd that comes by the clock, each with a connection of its own.
#[derive(Debug, Clone)]
pub(crate) struct Crowd {
    /// As `staunch load --rate` takes it.
    pub(crate) rate: String,
    /// How many come in all, about.
    pub(crate) count: f64,
    /// For how long, in seconds; rates of several steps have their own length.
    pub(crate) seconds: Option<f64>,
    /// How long each waits, in seconds.
    pub(crate) patience_s: u32,
    /// From where.
    pub(crate) who: Who,
    /// By chance, as people do (Poisson), or one as long after the other as the next.
    pub(crate) by_chance: bool,
}

impl Crowd {
    /// Regulars at a steady rate who wait a second.
    pub(crate) fn regulars(per_second: f64, seconds: f64) -> Self {
        let rate = format!("{per_second:.0}/s");
        let count = per_second * seconds;
        Self { rate, count, seconds: Some(seconds), patience_s: 1, who: Who::Regulars, by_chance: true }
    }

    /// This crowd for another time: other strangers, as many per second.
    fn before(&self, time: Duration) -> Self {
        let who = match self.who {
            Who::Regulars => Who::Regulars,
            Who::Strangers(first) => Who::Strangers(first + STRANGERS / 2),
        };
        Self { seconds: Some(time.as_secs_f64()), who, ..self.clone() }
    }

    /// Regulars whose rate changes by steps: requests a second, and for how long.
    pub(crate) fn steps(steps: &[(f64, u32)]) -> Self {
        let words: Vec<String> =
            steps.iter().map(|(rate, seconds)| format!("{rate:.0}/s for {seconds}s")).collect();
        let count = steps.iter().map(|(rate, seconds)| rate * f64::from(*seconds)).sum();
        Self {
            rate: words.join(", "),
            count,
            seconds: None,
            patience_s: 1,
            who: Who::Regulars,
            by_chance: true,
        }
    }
}

/// The namespace clients run in, the program they run, and what they ask for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clients<'a> {
    pub(crate) bed: &'a Bed,
    pub(crate) staunch: &'a Path,
    pub(crate) content: PageKind,
}

impl Clients<'_> {
    /// Right answers a second to clients that ask again and again without a pause, at most.
    ///
    /// # Errors
    /// A generator that fails, or no answer.
    pub(crate) fn peak(&self, seconds: f64) -> Result<f64, String> {
        let duration = format!("{:.0}ms", 1000.0 * seconds);
        let words = ["-c", PATIENT_CLIENTS, "-d", &duration, "--no-keep-alive", "--close", "rst"];
        let answers = finish(self.begin(&words, 1, seconds)?)?;
        let peak = answers.goodput_per_s();
        if peak < 1.0 { Err("nobody was answered".to_owned()) } else { Ok(peak) }
    }

    /// Lets a crowd come.
    ///
    /// # Errors
    /// A generator that fails, or does not end.
    pub(crate) fn offer(&self, crowd: &Crowd) -> Result<Document, String> {
        finish(self.come(crowd)?)
    }

    /// Lets a crowd come that has been there for a while: as many come before, and the last of them when the
    /// first of these do. Both generators take the same time to begin.
    ///
    /// # Errors
    /// A generator that fails, or does not end.
    pub(crate) fn offer_after(&self, crowd: &Crowd, time: Duration) -> Result<Document, String> {
        let before = self.come(&crowd.before(time))?;
        sleep(time);
        let measured = self.come(crowd)?;
        finish(before)?;
        finish(measured)
    }

    fn come(&self, crowd: &Crowd) -> Result<Child, String> {
        let patience = format!("{}s", crowd.patience_s);
        let duration = crowd.seconds.map(|seconds| format!("{:.0}ms", 1000.0 * seconds));
        let sources = sources(crowd);
        let arrivals = if crowd.by_chance { "poisson" } else { "constant" };
        let mut words = vec!["--rate", &crowd.rate, "--arrivals", arrivals, "--no-keep-alive"];
        words.extend(["--patience", &patience]);
        words.extend(duration.as_deref().map(|duration| ["-d", duration]).into_iter().flatten());
        words.extend(sources.iter().flat_map(|part| ["--source", part]));
        let seconds = crowd.seconds.unwrap_or(STEPS_LIMIT_S) + f64::from(crowd.patience_s);
        self.begin(&words, self.bed.reception.client_processors().1, seconds)
    }

    fn begin(&self, words: &[&str], threads: u32, seconds: f64) -> Result<Child, String> {
        let limit = format!("{:.0}s", seconds + LIMIT_MORE_S);
        let (cpus, threads) = (self.bed.reception.client_processors().0, threads.to_string());
        self.bed
            .at_client(cpus)
            .args(["timeout", "--foreground", "--kill-after", "5s", &limit])
            .args(WITH_PARENT)
            .arg(self.staunch)
            .arg("load")
            .args(self.content.asked())
            .args(["--quiet", "--json", "-"])
            .args(["-t", &threads, "--cpus", cpus])
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("staunch load: {error}"))
    }
}

fn finish(child: Child) -> Result<Document, String> {
    let output = child.wait_with_output().map_err(|error| format!("staunch load: {error}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    // Under load a server may refuse everybody: that is a finding, and stands in the report.
    let refuses_all = output.status.code() == Some(1) && errors.contains("not one answer was right");
    if !output.status.success() && !refuses_all {
        return Err(format!("staunch load: {}: {}", output.status, errors.trim()));
    }
    account::read(&String::from_utf8_lossy(&output.stdout))
}

/// The addresses of a crowd, in words of some thousand each: the system takes no longer ones.
fn sources(crowd: &Crowd) -> Vec<String> {
    let numbers: Vec<u32> = match crowd.who {
        Who::Regulars => (1..=NETWORK_CLIENTS)
            .flat_map(|client| (0..NETWORKS).map(move |network| 0x0a01_0000 + (network << 8) + client))
            .collect(),
        Who::Strangers(first) => {
            // Arrivals by chance are some more than meant.
            let count = (crowd.count * 1.1) as u32 + 100;
            (0..count).map(|number| STRANGER_FIRST + (first + number) % STRANGERS).collect()
        }
    };
    let text = |number: &u32| std::net::Ipv4Addr::from(*number).to_string();
    numbers.chunks(4000).map(|part| part.iter().map(text).collect::<Vec<_>>().join(",")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_come_once() {
        let crowd = Crowd { who: Who::Strangers(7), ..Crowd::regulars(3000.0, 4.0) };
        let words = sources(&crowd);
        let all: Vec<&str> = words.iter().flat_map(|part| part.split(',')).collect();
        let distinct: std::collections::BTreeSet<&&str> = all.iter().collect();
        assert!(all.len() > 12_000 && distinct.len() == all.len());
        assert_eq!(all[0], "10.2.0.7");
        // The kernel takes 128 KiB in one argument.
        assert!(words.iter().all(|part| part.len() < 128 << 10));
    }

    #[test]
    fn regulars_come_from_many_networks() {
        let words = sources(&Crowd::regulars(1.0, 1.0));
        assert_eq!(words.len(), 1);
        assert!(words[0].starts_with("10.1.0.1,10.1.1.1,") && words[0].ends_with("10.1.255.8"));
    }

    #[test]
    fn crowds_of_steps_are_rates_with_lengths() {
        assert_eq!(Crowd::steps(&[(10.0, 2), (20.0, 3)]).rate, "10/s for 2s, 20/s for 3s");
    }
}
