//! The story: a server is offered more than it can do, then flooded, first without the gate and then with it.
//!
//! It owns the order of the story and what is said on the way. It must never go on when a server fails: half
//! a story is not shown.
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use staunch_loadgen::report::Document;

use super::record::{Multiple, Point, Record, Sides, Syn};
use crate::account::Account;
use crate::gate::bed::Reception;
use crate::gate::clients::Crowd;
use crate::gate::daemon::{self, GateProcess};
use crate::gate::stage::{Flooded, Stage};
use crate::gate::subject::Name;
use crate::machine;

/// What is offered, as multiples of the server's peak.
const MULTIPLES: [f64; 5] = [0.5, 0.9, 1.5, 3.0, 10.0];
/// Forged SYN segments a second; the first for the first server only, so that all of it takes five minutes.
const FLOODS: [u32; 3] = [50_000, 200_000, 1_000_000];
/// The queue of connections every server is given.
const BACKLOG: u32 = 4096;

/// All of it takes no longer: a server is begun with only if there is time for as long as the longest took so
/// far.
const LIMIT: Duration = Duration::from_secs(285);

/// What is shown.
#[derive(Debug)]
pub(super) struct DemoPlan {
    servers: Vec<Name>,
    left_out: Vec<Name>,
    seconds: f64,
    staunch: PathBuf,
    scratch: PathBuf,
    /// Why there is no gate.
    absence: Option<String>,
}

impl DemoPlan {
    /// These servers, or all that are here.
    pub(super) fn new(servers: &[Name], seconds: f64, staunch: PathBuf, scratch: PathBuf) -> Self {
        let wanted = if servers.is_empty() { &Name::ALL[..] } else { servers };
        let (servers, left_out) = wanted.iter().partition(|name| name.is_installed());
        let absence = daemon::absence(&staunch);
        Self { servers, left_out, seconds: seconds.max(1.0), staunch, scratch, absence }
    }

    /// What a reader must know.
    pub(super) fn notes(&self) -> Vec<String> {
        let left_out =
            self.left_out.iter().map(|name| format!("{} is not installed, so left out", name.text()));
        let (cpus, _) = Reception::OwnCore.client_processors();
        let place = format!("server, gate and reception on CPU 0, clients on CPU {cpus}, flood on CPU 1");
        [place].into_iter().chain(left_out).chain(self.absence.clone()).collect()
    }

    fn gates(&self) -> &'static [bool] {
        if self.absence.is_some() { &[false] } else { &[false, true] }
    }

    fn floods(&self, name: Name) -> &'static [u32] {
        if self.servers.first() == Some(&name) { &FLOODS } else { &FLOODS[1..] }
    }

    fn step_count(&self) -> usize {
        let floods: usize = self.servers.iter().map(|name| self.floods(*name).len()).sum();
        self.servers.len() + self.gates().len() * (self.servers.len() * MULTIPLES.len() + floods)
    }
}

/// Measures everything.
///
/// # Errors
/// No privilege, no server, or one that fails.
pub(super) fn run(plan: &DemoPlan, root: &Path) -> Result<Record, String> {
    if plan.servers.is_empty() {
        return Err("no server is installed; run: cargo xtask install --for bench".to_owned());
    }
    let style = ProgressStyle::with_template("{bar:32} {pos:>3}/{len} {elapsed:>4}, {eta} left  {wide_msg}");
    let style = style.map_err(|error| error.to_string())?;
    let bar = ProgressBar::new(plan.step_count() as u64).with_style(style);
    let mut record = Record {
        machine: machine::describe().into_iter().collect(),
        versions: plan
            .servers
            .iter()
            .chain([&Name::Staunch])
            .map(|name| (name.text().to_owned(), name.version(&plan.staunch)))
            .collect(),
        commit: machine::commit(root),
        ..Record::default()
    };
    let (began, mut longest) = (Instant::now(), Duration::ZERO);
    for name in &plan.servers {
        if began.elapsed() + longest > LIMIT {
            let used = began.elapsed().as_secs();
            record.left_out.push(format!("{} is left out: {used} s were used of 285", name.text()));
            continue;
        }
        let begins = Instant::now();
        let (server, floods) =
            show(*name, plan, &bar).map_err(|error| format!("{}: {error}", name.text()))?;
        longest = longest.max(begins.elapsed());
        record.servers.push(server);
        record.floods.push(floods);
    }
    bar.finish_and_clear();
    Ok(record)
}

fn show(name: Name, plan: &DemoPlan, bar: &ProgressBar) -> Result<(Sides<Multiple>, Sides<Syn>), String> {
    let (mut server, mut floods) = (Sides::new(name.text()), Sides::new(name.text()));
    bar.set_message(format!("{}: its peak", name.text()));
    let stage = Stage::set(name, Reception::OwnCore, BACKLOG, &plan.staunch, &plan.scratch)?;
    let peak = stage.peak(plan.seconds)?;
    say(bar, &format!("{:<8} answers {peak:.0} requests a second at most", name.text()));
    for gate in plan.gates() {
        let daemon = if *gate { Some(stage.gate(&[])?) } else { None };
        let title = format!("{:<8} gate {:<3}", name.text(), if *gate { "on" } else { "off" });
        for multiple in MULTIPLES {
            bar.set_message(format!("{title} {multiple} times the peak"));
            let answers = stage.steady(multiple * peak, plan.seconds)?;
            say(bar, &format!("{title} {multiple:>4} x {}", words(&answers, peak)));
            server.side(*gate).push(Point::new(Multiple { offered_multiple: multiple }, &answers));
        }
        for syn_per_s in plan.floods(name).iter().copied() {
            bar.set_message(format!("{title} under {syn_per_s} forged SYN a second"));
            let crowd = Crowd::regulars(peak, plan.seconds);
            let Flooded { answers, came_per_s, .. } =
                stage.flooded(syn_per_s, &crowd, peak, daemon.as_ref())?;
            let syn_per_s = as_came(syn_per_s, came_per_s);
            say(bar, &format!("{title} {:>4} k SYN/s {}", syn_per_s / 1000, words(&answers, peak)));
            floods.side(*gate).push(Point::new(Syn { syn_per_s }, &answers));
        }
        let said = daemon.as_ref().map(GateProcess::said).unwrap_or_default();
        bar.suspend(|| said.iter().for_each(|(_, line)| println!("         {line}")));
        drop(daemon);
    }
    Ok((server, floods))
}

/// What was meant if about that came (clients' packets count too), else what came: a flood may be more than a
/// processor can send.
fn as_came(meant: u32, came: f64) -> u32 {
    if came >= 0.9 * f64::from(meant) { meant } else { came.round() as u32 }
}

fn words(answers: &Document, peak: f64) -> String {
    let (offered, goodput) = (answers.offered_per_s(), answers.goodput_per_s());
    let time = answers.main.latency_ms.p99.map_or_else(|| "-".to_owned(), |p99| format!("{p99:.0} ms"));
    format!(
        "offered {offered:>6.0}/s, in time {goodput:>6.0}/s ({:>3.0} %), p99 {time}",
        100.0 * goodput / peak
    )
}

/// Says it above the bar, or plainly where there is none.
fn say(bar: &ProgressBar, line: &str) {
    bar.inc(1);
    bar.suspend(|| println!("{line}"));
}
