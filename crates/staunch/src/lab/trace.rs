//! `staunch lab trace`: where the time of a request goes, and what creating a process or a thread costs.
//!
//! It owns the arguments and what is drawn. It must never measure.

use std::env;
use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use staunch_lab::creation::{self, Creation};
use staunch_lab::trace::{self, Call, Order, Trace};
use staunch_lab::{MODELS, Model};

/// Most requests: strace writes about 600 bytes for each, and they are kept.
const REQUESTS_MAX: i64 = 20_000;
/// Most bytes of an answer: what a model gives at most.
const BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Creations of each kind where nobody says how many.
const CREATION_COUNT: u32 = 1000;
/// A call that came less than once in so many requests belongs to none of them.
const RARE: u64 = 100;
/// Letters of the longest bar.
const BAR_WIDTH: u64 = 50;
/// Calls of a request by which something was created for each: nearly one.
const PER_REQUEST: f64 = 0.9;

/// What the command line says.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Which model, see `staunch lab list`
    #[arg(value_name = "MODEL", value_parser = super::serve::names(), hide_possible_values = true)]
    #[arg(required_unless_present = "creation")]
    model: Option<String>,

    /// How many processes or threads a pool has
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=500))]
    #[arg(default_value_t = 4)]
    pool: u16,

    /// Requests, one after the other
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=REQUESTS_MAX))]
    #[arg(default_value_t = 1000)]
    requests: u32,

    /// Bytes of each answer
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=BYTES_MAX))]
    #[arg(default_value_t = 4000)]
    bytes: u64,

    /// Ask everything on one connection
    #[arg(long)]
    keep_alive: bool,

    /// Measure what creating a process or a thread costs, so many times each [without =N: 1000]; without
    /// MODEL nothing else
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "1000")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    creation: Option<u32>,

    /// Write the figures as JSON too; `-` writes only them, to standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What `--json` writes.
#[derive(Serialize)]
struct Figures {
    trace: Option<Trace>,
    creation: Option<Vec<Creation>>,
}

/// Traces, measures and draws.
///
/// # Errors
/// Whatever keeps it from its task, in one sentence.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let trace = arguments.model.as_deref().map(|name| run_model(name, arguments)).transpose()?;
    let creates = trace.as_ref().is_some_and(creates);
    let creations = arguments.creation.or(creates.then_some(CREATION_COUNT));
    let creation = creations.map(creation::measure).transpose()?;
    let figures = Figures { trace, creation };
    let json = || serde_json::to_string_pretty(&figures).map(|json| json + "\n");
    let text = match &arguments.json {
        Some(path) if path.as_os_str() == "-" => json().map_err(|error| error.to_string())?,
        Some(path) => {
            let json = json().map_err(|error| error.to_string())?;
            std::fs::write(path, json).map_err(|error| format!("{}: {error}", path.display()))?;
            draw(&figures)
        }
        None => draw(&figures),
    };
    let _ = io::stdout().lock().write_all(text.as_bytes());
    Ok(())
}

fn run_model(name: &str, arguments: &Arguments) -> Result<Trace, String> {
    let model = MODELS.iter().copied().find(|model: &&Model| model.name == name);
    let order = Order {
        model: model.ok_or_else(|| format!("{name}: there is no such model; see `staunch lab list`"))?,
        pool: arguments.pool,
        requests: arguments.requests,
        bytes: arguments.bytes as usize,
        keep_alive: arguments.keep_alive,
    };
    let program = env::current_exe().map_err(|error| format!("the path of this program: {error}"))?;
    trace::run(&program, &order)
}

/// Whether a process or a thread was created for each request.
fn creates(trace: &Trace) -> bool {
    let is_creation = |call: &&Call| matches!(&*call.name, "fork" | "vfork" | "clone" | "clone3");
    let count: u64 = trace.calls.iter().filter(is_creation).map(|call| call.count).sum();
    count as f64 >= PER_REQUEST * f64::from(trace.requests)
}

fn draw(figures: &Figures) -> String {
    let mut text = figures.trace.as_ref().map(draw_trace).unwrap_or_default();
    if let Some(creation) = &figures.creation {
        if !text.is_empty() {
            text.push('\n');
        }
        text += "What creating costs here, from the call until the end was seen\n";
        for creation in creation {
            text += &draw_creation(creation);
        }
    }
    text
}

fn draw_trace(trace: &Trace) -> String {
    let requests = f64::from(trace.requests);
    let mut text = format!(
        "{}: {} requests for {} bytes, one after the other, {}\n\n",
        trace.model,
        trace.requests,
        trace.bytes,
        if trace.keep_alive() { "on one connection" } else { "a connection each" },
    );
    text += &format!(
        "{:<20} {:>11} {:>12} {:>12} {:>12} {:>9} {:>7}\n",
        "system call", "per request", "us a request", "median us", "shortest us", "failed", "share"
    );
    let is_rare = |call: &&Call| call.count * RARE < u64::from(trace.requests);
    let work_ns: u64 = trace.calls.iter().filter(|call| !call.waits).map(|call| call.total_ns).sum();
    for call in trace.calls.iter().filter(|call| !is_rare(call)) {
        let share = match call.waits {
            true => "waits".to_owned(),
            false => format!("{:.1} %", 100.0 * call.total_ns as f64 / work_ns.max(1) as f64),
        };
        text += &format!(
            "{:<20} {:>11.2} {:>12.1} {:>12.1} {:>12.1} {:>9} {share:>7}\n",
            call.name,
            call.count as f64 / requests,
            micros(call.total_ns) / requests,
            micros(call.median_ns),
            micros(call.shortest_ns),
            call.failed,
        );
    }
    let rare: Vec<&str> = trace.calls.iter().filter(is_rare).map(|call| &*call.name).collect();
    if !rare.is_empty() {
        text += &format!("(and less than once in {RARE} requests: {})\n", rare.join(", "));
    }
    text += &summary(trace);
    text += &remarks(trace);
    text
}

/// What the same requests take without strace.
fn summary(trace: &Trace) -> String {
    format!(
        "\nTIMES UNDER STRACE ARE INFLATED: it stops the server before and after each call.\n  \
         {:<42} {:>12} {:>12}\n  {:<42} {:>12.1} {:>12.1}\n  {:<42} {:>12.1} {:>12.1}\n  \
         {:.2} calls a request, to each of which strace adds {:.1} us of processor time\n",
        "microseconds of a request",
        "with strace",
        "without",
        "until the answer is there",
        micros(trace.request_traced_ns),
        micros(trace.request_ns),
        "processor time of the server (and strace)",
        micros(trace.processor_traced_ns),
        micros(trace.processor_ns),
        trace.calls_per_request(),
        trace.overhead_ns() / 1e3,
    )
}

/// What a reader must know of the kinds of calls that are there.
fn remarks(trace: &Trace) -> String {
    let has = |name| trace.calls.iter().any(|call| call.name == name);
    let mut text = String::from(
        "Counts are right, and so is which call is dear beside which. A call that \"waits\" sleeps if there\n\
         is nothing for it yet (a client, its bytes, a lock, a child's end): that is no work, and in no\n\
         share. Its shortest time comes nearest to the work in it.\n",
    );
    if has("io_uring_enter") {
        text += "io_uring: what it was told to do stands in a ring that strace does not see. Its one call\n\
                 does the work and then waits, so that their times cannot be told apart.\n";
    }
    text
}

fn draw_creation(creation: &Creation) -> String {
    let mut text = format!(
        "\n{}, {} times: median {:.1} us, shortest {:.1}, 90 % {:.1}, 99 % {:.1}, longest {:.1}\n",
        creation.what,
        creation.count,
        micros(creation.median_ns),
        micros(creation.shortest_ns),
        micros(creation.p90_ns),
        micros(creation.p99_ns),
        micros(creation.longest_ns),
    );
    let most = creation.bins.iter().map(|bin| bin.count).max().unwrap_or(1);
    // The last of a hundred may be far away: they are counted in one line.
    let shown = creation.bins.iter().take_while(|bin| bin.to_ns <= creation.p99_ns).count() + 1;
    let (shown, above) = creation.bins.split_at(shown.min(creation.bins.len()));
    for (index, bin) in shown.iter().enumerate() {
        if bin.count == 0 {
            let begins = shown[..index].last().is_none_or(|before| before.count > 0);
            text += if begins { "  ...\n" } else { "" };
            continue;
        }
        let bar = "#".repeat((bin.count * BAR_WIDTH).div_ceil(most) as usize);
        text += &format!("  up to {:>8.1} us {:>6}  {bar}\n", micros(bin.to_ns), bin.count);
    }
    if !above.is_empty() {
        text += &format!("  {:<17} {:>6}\n", "longer", above.iter().map(|bin| bin.count).sum::<u64>());
    }
    text
}

fn micros(ns: u64) -> f64 {
    ns as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use staunch_lab::creation::Bin;
    use staunch_lab::results::Protocol;

    use super::*;

    fn call(name: &str, waits: bool, count: u64, total_ns: u64) -> Call {
        let each_ns = total_ns / count;
        let (shortest_ns, median_ns, longest_ns) = (each_ns, each_ns, each_ns);
        Call { name: name.into(), waits, count, failed: 0, total_ns, shortest_ns, median_ns, longest_ns }
    }

    fn example(calls: Vec<Call>) -> Trace {
        Trace {
            model: "prefork",
            pool: 4,
            protocol: Protocol::Paper,
            requests: 1000,
            bytes: 4000,
            calls,
            request_traced_ns: 290_000,
            request_ns: 64_000,
            processor_traced_ns: 120_000,
            processor_ns: 20_000,
        }
    }

    #[test]
    fn waiting_has_no_share_and_the_rare_no_row() {
        let calls = vec![
            call("close", false, 1000, 30_000_000),
            call("sendto", false, 1000, 10_000_000),
            call("brk", false, 9, 90_000),
            call("accept", true, 1000, 900_000_000),
        ];
        let text = draw_trace(&example(calls));
        let ends = |name: &str, end: &str| {
            text.lines().any(|line| line.starts_with(&format!("{name} ")) && line.ends_with(end))
        };
        assert!(ends("close", " 74.8 %") && ends("sendto", " 24.9 %") && ends("accept", " waits"), "{text}");
        assert!(!ends("brk", "") && text.contains("(and less than once in 100 requests: brk)"), "{text}");
        assert!(text.contains("3.01 calls a request, to each of which strace adds 33.2 us"), "{text}");
        assert!(!text.contains("io_uring"), "{text}");
        let ring = draw_trace(&example(vec![call("io_uring_enter", true, 2000, 1)]));
        assert!(ring.contains("a ring that strace does not see"), "{ring}");
    }

    #[test]
    fn creations_for_each_request_are_noticed() {
        assert!(creates(&example(vec![call("clone3", false, 1000, 1000)])));
        assert!(!creates(&example(vec![call("clone3", false, 8, 1000), call("close", false, 1000, 1000)])));
    }

    #[test]
    fn a_histogram_shows_where_most_are() {
        let bin = |to_ns, count| Bin { to_ns, count };
        let creation = Creation {
            what: "nothing",
            count: 108,
            shortest_ns: 900,
            median_ns: 1900,
            p90_ns: 2000,
            p99_ns: 15_000,
            longest_ns: 60_000,
            bins: [(1000, 5), (2000, 100), (4000, 0), (8000, 0), (16_000, 2), (32_000, 0), (64_000, 1)]
                .map(|(to_ns, count)| bin(to_ns, count))
                .to_vec(),
        };
        let text = draw_creation(&creation);
        let lines: Vec<&str> = text.lines().skip(2).collect();
        let most = format!("  up to      2.0 us    100  {}", "#".repeat(50));
        let expected = [
            "  up to      1.0 us      5  ###",
            &most,
            "  ...",
            "  up to     16.0 us      2  #",
            "  longer                 1",
        ];
        assert_eq!(lines, expected, "{text}");
    }
}
