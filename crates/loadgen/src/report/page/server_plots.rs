//! The server's side on the run's axis of time: processors, queue, drops, memory.
//!
//! It must never draw what was not probed: a figure that could not be read has a gap.
use staunch_figures::plot::{Axis, Plot, Series, figure};
use staunch_figures::words;

use super::bins::Bins;
use super::plots::seconds;
use crate::report::document::Document;
use crate::report::server_side::{CPU_KINDS, DROPS, Drawn, PROCESS_KINDS};

/// All of it, with its heading; nothing when the server was not probed.
pub(super) fn section(body: &mut String, document: &Document) {
    if document.moments.server.is_empty() {
        return;
    }
    body.push_str("<h2>The server's side</h2>");
    body.push_str(&processors(document));
    body.push_str(&process(document));
    body.push_str(&queue(document));
    body.push_str(&drops(document));
    body.push_str(&memory(document));
}

fn processors(document: &Document) -> String {
    let bins = Bins::new(&document.moments);
    let area = |(name, class, label): &Drawn| {
        Some(Series::area(class, label, bins.mean(document.moments.server(name)?)))
    };
    plot(
        &bins,
        "cpu",
        "Processors of the machine, by kind of work",
        "share of all",
        CPU_KINDS.iter().filter_map(area).filter(Series::is_there),
    )
}

fn process(document: &Document) -> String {
    let bins = Bins::new(&document.moments);
    let area = |(name, class, label): &Drawn| {
        let ms_a_second = bins.rate_or_none(document.moments.server(name)?);
        let busy = ms_a_second.into_iter().map(|ms| Some(ms? / 1e3)).collect();
        Some(Series::area(class, label, busy))
    };
    let title = "The server's process: how many processors it kept busy";
    plot(&bins, "process", title, "processors", PROCESS_KINDS.iter().filter_map(area))
}

fn queue(document: &Document) -> String {
    let bins = Bins::new(&document.moments);
    let column = |name: &str| Some(bins.largest(document.moments.server(name)?));
    let length = column("accept_queue").map(|values| Series::line("in_flight", "waiting", values));
    let limit = column("accept_queue_limit").map(|values| Series::dashed("offered", "limit", values));
    plot(&bins, "queue", "Connections waiting to be accepted", "number", length.into_iter().chain(limit))
}

fn drops(document: &Document) -> String {
    let bins = Bins::new(&document.moments);
    let line = |(name, class, label): &Drawn| {
        Some(Series::line(class, label, bins.rate_or_none(document.moments.server(name)?)))
    };
    let series = DROPS.iter().filter_map(line).filter(Series::is_there);
    plot(&bins, "drops", "What the kernel dropped", "a second", series)
}

fn memory(document: &Document) -> String {
    let bins = Bins::new(&document.moments);
    let column = document.moments.server("process_resident_bytes").map(|column| bins.largest(column));
    let series = column.map(|values| Series::line("connections", "resident memory of the server", values));
    plot(&bins, "memory", "Memory", "bytes", series.into_iter())
}

fn plot(bins: &Bins, name: &str, title: &str, unit: &str, series: impl Iterator<Item = Series>) -> String {
    let series: Vec<Series> = series.collect();
    if series.iter().all(|one| one.values.iter().all(Option::is_none)) {
        return String::new();
    }
    let sum = |index: usize| series.iter().filter_map(|one| one.values[index]).sum::<f64>();
    let values = series.iter().flat_map(|one| one.values.iter().flatten().copied());
    let highest = match name {
        "process" => (0..bins.places.len()).map(sum).fold(0.0, f64::max),
        _ => values.fold(0.0, f64::max),
    };
    let y = match name {
        "cpu" => Axis::linear(0.0, 1.0, true, unit, words::percent),
        "memory" => Axis::linear(0.0, highest, true, unit, words::short_bytes),
        "queue" => Axis::counted(highest, unit, words::short),
        _ => Axis::linear(0.0, highest, true, unit, words::short),
    };
    let (title, note) = (title.to_owned(), String::new());
    figure(name, &Plot { title, note, x: seconds(bins), y, places: bins.places.clone(), series })
}
