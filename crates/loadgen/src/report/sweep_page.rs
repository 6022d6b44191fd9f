//! A sweep as one HTML page: goodput, latency and losses against what was offered.
//!
//! It must never join rounds silently: each point has a stroke from its smallest to its largest round.
use std::fmt::Write;

use staunch_figures::escape;
use staunch_figures::plot::{Axis, Plot, Series, Shape, figure};
use staunch_figures::statistics::Spread;
use staunch_figures::{page, words};

use crate::report::document::Figures;
use crate::report::fields::{ENDS, is_error};
use crate::report::page::{colophon, target};
use crate::report::sweep::{PointDocument, SweepDocument};
use crate::sweep_outcome::SweepOutcome;

/// The whole page of a sweep.
pub fn sweep_html(sweep: &SweepOutcome) -> String {
    let document = SweepDocument::new(sweep);
    let mut body = String::new();
    let _ = write!(
        body,
        "<h1>{}</h1><p class=\"quiet\">Sweep of {}</p><p class=\"headline\">{}</p>",
        target(&document.target),
        escape(&document.began),
        headline(&document)
    );
    body.push_str(&page::warnings(&document.warnings));
    body.push_str(&goodput(&document));
    body.push_str(&latency(&document));
    body.push_str(&losses(&document));
    table(&mut body, &document.points);
    body.push_str(&colophon(&document.command, &document.engine, &document.machine, &document.version));
    page::whole(&format!("{} - staunch load sweep", document.target), "", &body)
}

/// What the server can do, and what is left of it under the most that was offered.
fn headline(document: &SweepDocument) -> String {
    let capacity = words::unbroken(&words::per_s(document.capacity_per_s.round()));
    let sent = || document.points.iter().filter(|point| !point.is_saturated());
    let most = sent().filter_map(|point| Some((point, goodput_of(point)?.median))).next_back();
    let Some((point, rate)) = most else {
        let unsent = if document.points.is_empty() { "" } else { " that the generator could send" };
        return format!("Capacity {capacity}; nothing else{unsent} was measured.");
    };
    if let Some(more) = sent().filter_map(goodput_of).find(|rate| rate.median > beyond(document)) {
        return format!(
            "The capacity was taken to be {capacity}, but <strong>the server can do more</strong>: {} were \
             answered in time. Sweep again, with a higher --capacity or none.",
            words::unbroken(&words::per_s(more.median.round()))
        );
    }
    let share = words::share(
        rate.min(document.capacity_per_s).round() as u64,
        document.capacity_per_s.round() as u64,
    );
    format!(
        "The server answers {capacity} at most. When {} times as much was offered, <strong>{share} of that \
         was left</strong>: {} in time.{}",
        words::short(point.factor),
        words::unbroken(&words::per_s(rate.round())),
        unsent(document)
    )
}

/// Points that are no verdict on the server: offered loads that the generator could not send.
fn unsent(document: &SweepDocument) -> String {
    let Some(first) = document.points.iter().find(|point| point.is_saturated()) else {
        return String::new();
    };
    format!(
        " From {} times on the generator could not send all that was to be offered: what stands there is its \
         own limit, not the server's.",
        words::short(first.factor)
    )
}

/// More than this was answered only if the capacity is not known rightly; a little more is chance.
fn beyond(document: &SweepDocument) -> f64 {
    document.capacity_per_s * 1.1
}

fn goodput_of(point: &PointDocument) -> Option<Spread> {
    point.rate(|round| round.in_time)
}

/// Goodput against offered load, with the line on which nothing is lost.
fn goodput(document: &SweepDocument) -> String {
    let points = &document.points;
    let right = range("in_time", "in time", points, goodput_of);
    let ideal = |point: &PointDocument| Some(offered(point).min(document.capacity_per_s));
    let ideal =
        Series::dashed("offered", "ideal: all, up to the capacity", points.iter().map(ideal).collect());
    let title = "Goodput: right answers in time";
    draw("goodput", title, Vertical::Linear("a second", words::short), document, vec![right, ideal])
}

fn latency(document: &SweepDocument) -> String {
    let points = &document.points;
    let series = vec![
        range("p50", "p50", points, |point| point.spread(|round| round.latency_ms.p50)),
        range("p99", "p99", points, |point| point.spread(|round| round.latency_ms.p99)),
    ];
    let title = "Latency of right answers, from the intended start";
    draw("latency", title, Vertical::Logarithmic("time, logarithmic", words::short_ms), document, series)
}

/// Everything that did not end well, or late, as a share of what was offered.
fn losses(document: &SweepDocument) -> String {
    let share = |end: &'static crate::report::fields::CountField| {
        let of = move |round: &Figures| {
            (round.offered > 0).then(|| end.get(&round.counts) as f64 / round.offered as f64)
        };
        range(end.name, end.words, &document.points, move |point| point.spread(of))
    };
    let ends = ENDS.iter().filter(|end| is_error(end) || end.name == "late");
    let series: Vec<Series> = ends.map(share).filter(Series::is_there).collect();
    let title = "What did not end well, or late";
    draw("losses", title, Vertical::Linear("share of what was offered", words::percent), document, series)
}

/// The upright axis: its label and how its values are said.
enum Vertical {
    Linear(&'static str, fn(f64) -> String),
    Logarithmic(&'static str, fn(f64) -> String),
}

fn draw(
    name: &str,
    title: &str,
    vertical: Vertical,
    document: &SweepDocument,
    series: Vec<Series>,
) -> String {
    let places: Vec<f64> = document.points.iter().map(offered).collect();
    let ends = |one: &Series| match &one.shape {
        Shape::Range(ranges) => ranges.iter().flatten().flat_map(|(low, high)| [*low, *high]).collect(),
        _ => one.values.iter().flatten().copied().collect::<Vec<f64>>(),
    };
    let values = series.iter().flat_map(ends);
    let y = match vertical {
        Vertical::Linear(label, words) => Axis::linear(0.0, values.fold(0.0, f64::max), true, label, words),
        Vertical::Logarithmic(label, words) => Axis::logarithmic(values, label, words),
    };
    let x = Axis::fitted(places.iter().copied(), "offered, requests a second (logarithmic)", words::short);
    let note = "Across: requests offered a second, logarithmic. Strokes reach from the smallest to \
                the largest round.";
    figure(name, &Plot { title: title.to_owned(), note: note.to_owned(), x, y, places, series })
}

/// What was really offered, or what was asked for where no round tells.
fn offered(point: &PointDocument) -> f64 {
    point.rate(|round| round.offered).map_or(point.offered_per_s, |spread| spread.median)
}

fn range(
    class: &'static str,
    label: &str,
    points: &[PointDocument],
    of: impl Fn(&PointDocument) -> Option<Spread>,
) -> Series {
    let spreads: Vec<Option<Spread>> = points.iter().map(of).collect();
    Series {
        class,
        label: label.to_owned(),
        values: spreads.iter().map(|spread| spread.map(|spread| spread.median)).collect(),
        shape: Shape::Range(
            spreads.iter().map(|spread| spread.map(|spread| (spread.min, spread.max))).collect(),
        ),
    }
}

fn table(body: &mut String, points: &[PointDocument]) {
    body.push_str("<h2>Figures</h2><p class=\"quiet\">Medians, with smallest and largest round.</p>");
    body.push_str("<div class=\"wide\"><table><thead><tr>");
    for name in ["load", "offered/s", "in time/s", "late/s", "failed/s", "unsent/s", "p50", "p99"] {
        let _ = write!(body, "<th scope=\"col\" class=\"number\">{name}");
    }
    body.push_str("</tr></thead><tbody>");
    for point in points {
        let rates = [
            point.rate(|round| round.offered),
            goodput_of(point),
            point.rate(|round| round.late),
            point.failed(),
            point.rate(|round| round.counts.unsent),
        ];
        let times = [point.spread(|round| round.latency_ms.p50), point.spread(|round| round.latency_ms.p99)];
        let _ = write!(body, "<tr><th scope=\"row\" class=\"number\">x{}", words::short(point.factor));
        rates.iter().for_each(|spread| cell(body, *spread, |value| words::count(value.round() as u64)));
        times.iter().for_each(|spread| cell(body, *spread, words::time_ms));
        body.push_str("</tr>");
    }
    body.push_str("</tbody></table></div>");
}

fn cell(body: &mut String, spread: Option<Spread>, words: impl Fn(f64) -> String) {
    let _ = match spread {
        None => write!(body, "<td class=\"number\">-"),
        Some(Spread { median, min, max }) if min == max => {
            write!(body, "<td class=\"number\">{}", words(median))
        }
        Some(Spread { median, min, max }) => write!(
            body,
            "<td class=\"number\">{}<br><small class=\"quiet\">{} to {}</small>",
            words(median),
            words(min),
            words(max)
        ),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::made_up;

    #[test]
    fn the_page_has_its_plots_and_a_row_an_offered_load() {
        let sweep = made_up::sweep();
        let html = sweep_html(&sweep);
        for name in ["goodput", "latency", "losses"] {
            assert!(html.contains(&format!("<figure id=\"{name}\">")), "{name}");
        }
        assert_eq!(html.matches("<tr><th scope=\"row\"").count(), sweep.points.len());
        assert!(html.contains("When 8 times as much was offered"));
        assert!(!html.contains("NaN") && !html.contains("<script"));
    }

    #[test]
    fn a_capacity_that_was_too_small_is_said() {
        let mut sweep = made_up::sweep();
        sweep.capacity_per_s /= 10.0;
        let html = sweep_html(&sweep);
        assert!(html.contains("the server can do more") && !html.contains("of that was left"));
    }

    #[test]
    fn what_was_not_sent_is_no_verdict() {
        let mut sweep = made_up::sweep();
        let is_high = |factor: f64| factor > 2.0;
        for point in &mut sweep.points {
            let high = is_high(point.factor);
            for counts in point.rounds.iter_mut().map(|round| &mut round.lanes[0].counts) {
                counts.unsent = if high { counts.offered * 3 / 4 } else { 0 };
            }
        }
        let html = sweep_html(&sweep);
        assert!(html.contains("When 2 times as much was offered"), "{html}");
        assert!(html.contains("From 4 times on the generator could not send"), "{html}");
        for counts in sweep.points.iter_mut().flat_map(|point| &mut point.rounds) {
            counts.lanes[0].counts.unsent = counts.lanes[0].counts.offered;
        }
        assert!(sweep_html(&sweep).contains("nothing else that the generator could send was measured"));
    }

    #[test]
    fn a_sweep_without_a_point_has_a_page_and_words_are_escaped() {
        let none =
            SweepOutcome { capacity_per_s: 0.0, patience: None, notes: Vec::new(), points: Vec::new() };
        let nothing = sweep_html(&none);
        assert!(nothing.contains("nothing else was measured") && !nothing.contains("NaN"));
        let mut sweep = made_up::sweep();
        sweep.points[0].rounds[0].target = "<b>".to_owned();
        sweep.points[0].rounds[0].warnings = vec!["<b>".to_owned()];
        let html = sweep_html(&sweep);
        assert!(!html.contains("<b>") && html.contains("&lt;b&gt;"));
    }
}
