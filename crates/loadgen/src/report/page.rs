//! A run as one HTML page that needs nothing else: headline, warnings, tables that add up, plots, and the
//! command.
//!
//! It owns the order of the page. It works without a script, in light and dark, and on a phone. All words
//! from outside are escaped.

pub(super) mod bins;
mod plots;
mod server_plots;
mod tables;
use std::fmt::Write;

use staunch_figures::escape;
use staunch_figures::plot::{Plot, alone, figure};
use staunch_figures::{page, words};

use crate::outcome::RunOutcome;
use crate::report::document::Document;
use crate::report::drift_note;
use crate::report::machine::Machine;

/// The whole page of a run.
pub fn html(outcome: &RunOutcome) -> String {
    document_page(&Document::new(outcome))
}

/// The page of a document, for instance one that was read from a file.
pub fn document_page(document: &Document) -> String {
    let mut body = String::new();
    heading(&mut body, document);
    body.push_str(&page::warnings(&document.warnings));
    body.push_str("<h2>What became of the requests</h2>");
    tables::lanes(&mut body, document);
    for flood in &document.floods {
        let _ = write!(body, "<p>Flood: {}</p>", escape(&flood.to_string()));
    }
    body.push_str(&plots::ends(document));
    body.push_str(&plots::errors(document));
    tables::statuses(&mut body, document);
    body.push_str("<h2>How long they took</h2>");
    tables::times(&mut body, document);
    if let Some(note) = drift_note(&document.main) {
        let _ = write!(body, "<p class=\"note\">{}</p>", escape(&note));
    }
    body.push_str(&plots::latency(document));
    if let Some(plot) = plots::percentiles(document) {
        body.push_str(&figure("percentiles", &plot));
    }
    body.push_str("<h2>Whether the generator kept up</h2>");
    body.push_str(&plots::drift(document));
    body.push_str(&plots::connections(document));
    tables::network(&mut body, document);
    server_plots::section(&mut body, document);
    body.push_str(&colophon(&document.command, &document.engine, &document.machine, &document.version));
    page::whole(&format!("{} - staunch load", document.target), "", &body)
}

/// Times by percentile as a picture that needs nothing else, for a document.
pub fn svg(outcome: &RunOutcome) -> String {
    let document = Document::new(outcome);
    let plot = plots::percentiles(&document).map(|plot| Plot { title: lanes(&document), ..plot });
    alone(plot.as_ref())
}

fn heading(body: &mut String, document: &Document) {
    let _ = write!(
        body,
        "<h1>{}</h1><p class=\"quiet\">{}, {}, {}</p><p class=\"headline\">{}</p>",
        target(&document.target),
        escape(&document.began),
        words::seconds(document.seconds),
        escape(&lanes(document)),
        headline(document)
    );
}

/// What was done, lane by lane.
fn lanes(document: &Document) -> String {
    document.lanes.iter().map(|lane| lane.description.as_str()).collect::<Vec<&str>>().join("; ")
}

/// A target that may be broken behind a slash.
pub(super) fn target(target: &str) -> String {
    escape(target).replace('/', "/<wbr>")
}

/// What was offered, what came of it, and how long it took, in one sentence. Its figures are our own words.
fn headline(document: &Document) -> String {
    let main = &document.main;
    let rate = |count: u64| {
        let seconds = document.seconds;
        if seconds > 0.0 {
            format!(" ({})", words::unbroken(&words::per_s(count as f64 / seconds)))
        } else {
            String::new()
        }
    };
    let answered = match words::share(main.in_time, main.offered) {
        share if share.is_empty() => "nothing was offered".to_owned(),
        share => {
            format!(
                "<strong>{} were answered in time</strong>{}",
                words::unbroken(&share),
                rate(main.in_time)
            )
        }
    };
    let latency = match (main.latency_ms.p50, main.latency_ms.p99) {
        (Some(p50), Some(p99)) => format!(
            "; half of the right answers took at most {}, <strong>99 of 100 at most {}</strong>",
            words::unbroken(&words::time_ms(p50)),
            words::unbroken(&words::time_ms(p99))
        ),
        _ => "; there was no right answer".to_owned(),
    };
    let (count, offered) = (words::unbroken(&words::count(main.offered)), rate(main.offered));
    format!("Of {count} requests offered{offered}, {answered}{latency}.")
}

/// The command that made it, and where.
pub(super) fn colophon(command: &str, engine: &str, machine: &Machine, version: &str) -> String {
    let memory = match machine.memory_bytes {
        0 => "unknown".to_owned(),
        bytes => words::bytes(bytes as f64),
    };
    let facts = [
        ("Generator", engine.to_owned()),
        ("Processor", format!("{}, {} used", machine.processor, machine.processors)),
        ("Memory", memory),
        ("Kernel", machine.kernel.clone()),
        ("Version", format!("staunch {version}")),
    ];
    page::colophon(command, facts)
}

#[cfg(test)]
mod tests;
