//! The page of `staunch kernel trace --html`: a report as HTML, which works without a script.

use std::fmt::Write as _;

use staunch_figures::bars::{Bar, bars};
use staunch_figures::statistics::Spread;
use staunch_figures::{escape, page, words};

use super::creation::CreationReport;
use super::delays::DelayStep;
use super::graph::Call;
use super::part::KernelPart;
use super::report::{FUNCTION_HEAD, GraphReport, TraceReport, function_rows, thread_rows, time};

/// Calls of the typical request that the page lists, as many as one looks through; calls that take less than
/// this share of its time are left out.
const CALLS_MAX: usize = 60;
const CALL_SHARE_MIN: f64 = 0.01;

/// The whole page; `command` is what made it.
pub(super) fn html(report: &TraceReport, command: &str) -> String {
    let missing: Vec<String> = report.missing.iter().map(|what| format!("missing: {what}")).collect();
    let mut body = format!(
        "<h1>Where khttpd's time goes in mode {}</h1><p class=\"quiet\">Events of {:.1} s; the function \
         graph was recorded after them, and slows what it records.</p>{}",
        escape(&report.mode),
        report.seconds,
        page::warnings(&missing)
    );
    let glance = report.glance().into_iter().map(|(name, value)| vec![name.to_owned(), value]);
    body.push_str(&page::table(&["events", ""], glance));
    let (head, rows) = report.slowest_rows();
    let _ = write!(body, "<h2>The slowest requests</h2>{}", page::table(&head, rows));
    let threads = page::table(&["thread", "switches to it"], thread_rows(&report.threads));
    let _ = write!(body, "<h2>Threads that served</h2>{threads}");
    if let Some(creation) = &report.creation {
        creation_section(&mut body, creation);
    }
    if let Some(graph) = &report.graph {
        graph_section(&mut body, graph);
    }
    let events: Vec<String> = report.events.iter().map(|(name, count)| format!("{name} {count}")).collect();
    let facts = [("events", events.join(", "))];
    body.push_str(&page::colophon(command, facts));
    page::whole("khttpd traced", "", &body)
}

fn creation_section(body: &mut String, creation: &CreationReport) {
    for (title, delays) in creation.histograms() {
        let names: Vec<String> = delays.steps.iter().map(DelayStep::name).collect();
        let bar = |(step, name): (&DelayStep, _)| {
            let spread = Spread::of(&[step.count as f64])?;
            Some(Bar { name, class: "ours", spread, words: words::count(step.count) })
        };
        let steps: Vec<Bar<'_>> =
            delays.steps.iter().zip(names.iter().map(String::as_str)).filter_map(bar).collect();
        let (plot, figures) = (bars(title, &steps), escape(&delays.glance()));
        let _ = write!(body, "<h2>{}</h2>{plot}<p class=\"quiet\">{figures}</p>", escape(title));
    }
    let _ = write!(body, "<p class=\"quiet\">{}</p>", escape(&creation.beside()));
}

fn graph_section(body: &mut String, graph: &GraphReport) {
    let bar = |(part, share): &(KernelPart, f64)| {
        Some(Bar {
            name: part.name(),
            class: "ours",
            spread: Spread::of(&[*share])?,
            words: words::percent(*share),
        })
    };
    let shares: Vec<Bar<'_>> = graph.shares.iter().filter_map(bar).collect();
    let _ = write!(
        body,
        "<h2>Shares of all time beneath the module</h2>{}<h2>Functions by their own time</h2>{}",
        bars("shares of time", &shares),
        page::table(&FUNCTION_HEAD, function_rows(graph))
    );
    if graph.typical.is_empty() {
        return;
    }
    let _ = write!(
        body,
        "<h2>A request</h2><p class=\"quiet\">The one whose time is in the middle of {}; calls of less than \
         1 % of it are left out. On a loopback interface the peer's side of TCP runs within the send.</p>\
         <pre><code>{}</code></pre>",
        among(graph),
        escape(&calls(&graph.typical))
    );
}

/// How many requests the typical one was chosen among, and of how many they were the first.
fn among(graph: &GraphReport) -> String {
    let kept = words::count(graph.requests_kept as u64);
    if graph.requests_kept == graph.requests {
        return kept;
    }
    format!("the first {kept} of {}", words::count(graph.requests as u64))
}

/// The calls of a request, one a line, each indented beneath its caller.
fn calls(calls: &[Call]) -> String {
    let least = calls.first().map_or(0.0, |call| call.us * CALL_SHARE_MIN);
    let shown = calls.iter().filter(|call| call.us >= least).take(CALLS_MAX);
    let line = |call: &Call| format!("{:>9}  {}{}\n", time(call.us), "  ".repeat(call.depth), call.function);
    shown.map(line).collect()
}
