//! `staunch model size`: how many requests and how many forged SYN a second a host survives.
//!
//! It asks the model at many loads. It must never extrapolate: beyond what it asks it says "more than".
use clap::Args;
use serde::Serialize;
use staunch_figures::table::{Align, lines};
use staunch_figures::words;
use staunch_loadgen::report::layout;
use staunch_program::output::print as say;
use staunch_queueing::{Host, OfferedLoad};

use super::expected::{expect, whole};
use super::fitted::HostDocument;
use super::host::{HostArguments, USUAL, behind, gate_sentence, sentence, share};
use super::measured::Over;
use super::predict::capacity;
use crate::units;

/// No host is offered more: a link of 100 Gbit/s carries 149 million of the smallest frames per second.
const ASKED_PER_S_MAX: f64 = 150e6;
/// From one load that is asked for to the next, as a factor; the place between two is then found by halving.
const STEP: f64 = 1.1;
/// Halvings between two loads: to a thousandth of their difference.
const HALVINGS: u32 = 10;
/// How much of the capacity is offered beside a flood when nothing is said.
const BUSY: f64 = 0.9;

/// What the command line says.
#[derive(Args)]
#[command(after_help = USUAL)]
pub(crate) struct Arguments {
    /// How much must be left of the answers in time
    #[arg(long, value_name = "PERCENT,...", value_delimiter = ',', value_parser = share,
        default_value = "95%,50%,5%")]
    keep: Vec<f64>,

    /// Requests a second beside a flood [default: 90 % of the capacity]
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    offered: Option<f64>,

    /// Print JSON for programs
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    host: HostArguments,
}

/// All that is said.
#[derive(Serialize)]
struct Document {
    host: HostDocument,
    gate_cost_us: f64,
    /// Requests a second beside the flood.
    beside_per_s: f64,
    without_gate: Survival,
    with_gate: Survival,
}

/// What one host survives.
#[derive(Serialize)]
struct Survival {
    /// The most that is answered in time, requests a second.
    peak_per_s: f64,
    /// For each share that must be left.
    kept: Vec<Kept>,
}

/// Loads up to which so much is left; `None`: more than was asked for.
#[derive(Serialize)]
struct Kept {
    share: f64,
    requests_per_s: Option<f64>,
    syn_per_s: Option<f64>,
}

/// Says it.
///
/// # Errors
/// Numbers no host can have.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let (host, gate) = (arguments.host.host()?, arguments.host.gate());
    let beside_per_s = match arguments.offered {
        Some(offered) => offered,
        None => BUSY * capacity(&host, 0.0)?,
    };
    let document = Document {
        host: HostDocument::of(&host),
        gate_cost_us: gate.residual_s * 1e6,
        beside_per_s,
        without_gate: survival(&host, beside_per_s, &arguments.keep)?,
        with_gate: survival(&behind(&host, gate), beside_per_s, &arguments.keep)?,
    };
    say(&match arguments.json {
        true => layout::write(&document),
        false => format!("{}\ngate: {}\n\n{}", sentence(&host), gate_sentence(&gate), text(&document)),
    });
    Ok(())
}

fn survival(host: &Host, beside_per_s: f64, keep: &[f64]) -> Result<Survival, String> {
    let goodput = |load: &OfferedLoad| Ok(expect(host, load, None)?.goodput_per_s);
    let beside = OfferedLoad::requests(beside_per_s);
    let at_ease = goodput(&beside)?;
    let (summit, peak_per_s) = peak(&goodput)?;
    let kept = |share: &f64| {
        let requests = last(summit, share * peak_per_s, Over::Requests, &beside, &goodput)?;
        let syn = last(1.0, share * at_ease, Over::Flood, &beside, &goodput)?;
        Ok(Kept { share: *share, requests_per_s: requests, syn_per_s: syn })
    };
    Ok(Survival { peak_per_s, kept: keep.iter().map(kept).collect::<Result<Vec<Kept>, String>>()? })
}

/// The load at which most is answered in time, and how much that is. Goodput rises up to there.
fn peak(goodput: &impl Fn(&OfferedLoad) -> Result<f64, String>) -> Result<(f64, f64), String> {
    // A tenth of a percent apart, near a summit that a deterministic server has as sharp as a tooth.
    const FINE_STEP: f64 = 1.001;
    let climb = |from: f64, step: f64| {
        let mut best = (from, goodput(&OfferedLoad::requests(from))?);
        loop {
            let next = best.0 * step;
            let value = goodput(&OfferedLoad::requests(next))?;
            if value <= best.1 || next > ASKED_PER_S_MAX {
                return Ok::<(f64, f64), String>(best);
            }
            best = (next, value);
        }
    };
    let (coarse, _) = climb(0.01, STEP)?;
    climb(coarse / STEP, FINE_STEP)
}

/// The largest load along `over` up to which at least `wanted` is answered in time.
fn last(
    from: f64,
    wanted: f64,
    over: Over,
    beside: &OfferedLoad,
    goodput: &impl Fn(&OfferedLoad) -> Result<f64, String>,
) -> Result<Option<f64>, String> {
    let holds = |place: f64| Ok::<bool, String>(goodput(&over.at(beside, place))? >= wanted);
    let (mut low, mut high) = (from, from * STEP);
    while holds(high)? {
        (low, high) = (high, high * STEP);
        if high > ASKED_PER_S_MAX {
            return Ok(None);
        }
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if holds(middle)? { low = middle } else { high = middle }
    }
    Ok(Some(low))
}

fn text(document: &Document) -> String {
    let (off, on) = (&document.without_gate, &document.with_gate);
    let row = |words: String, off: String, on: String| vec![words, off, on];
    let named = |name: &str| row(name.to_owned(), "without gate".into(), "with gate".into());
    let up_to = |rate: Option<f64>| rate.map_or_else(|| "more than 150M".to_owned(), rounded);
    let mut rows = vec![named("Requests a second")];
    rows.push(row("answered in time at most".into(), whole(off.peak_per_s), whole(on.peak_per_s)));
    let kept = || off.kept.iter().zip(&on.kept);
    rows.extend(kept().map(|(off, on)| {
        let words = format!("{} of that when offered up to", words::percent(off.share));
        row(words, up_to(off.requests_per_s), up_to(on.requests_per_s))
    }));
    rows.push(Vec::new());
    let beside = words::number(document.beside_per_s);
    rows.push(named(&format!("Forged SYN a second, beside {beside} requests/s")));
    rows.extend(kept().map(|(off, on)| {
        let words = format!("{} of the answers left up to", words::percent(off.share));
        row(words, up_to(off.syn_per_s), up_to(on.syn_per_s))
    }));
    lines(&rows, &[Align::Left, Align::Right, Align::Right]).join("\n") + "\n"
}

/// Three digits that matter: more would pretend that the model is so exact.
fn rounded(value: f64) -> String {
    let unit = 10f64.powf((value.max(1.0).log10().floor() - 2.0).max(0.0));
    whole((value / unit).round() * unit)
}
