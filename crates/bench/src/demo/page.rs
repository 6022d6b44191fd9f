//! The page of the demonstration: plots and what they were drawn from, which needs nothing else.
//!
//! The page owns which figures it shows and in which order. It must never compute a result. Words from
//! outside are escaped.
use std::fmt::Write;

use staunch_figures::plot::{Axis, Plot, Series, Shape, figure};
use staunch_figures::{escape, page, words};

use super::model::Curve;
use super::record::{Offer, Record, Sides};

/// Beside the style of every page: two panels in a row.
const STYLE: &str = ".panels { display: grid; grid-template-columns: repeat(auto-fill, \
    minmax(min(100%, 26rem), 1fr)); gap: 0 1.5rem; } .panels svg { font-size: 19px; }";

/// The whole page.
pub(super) fn html(record: &Record, curves: &[Curve], notes: &[String]) -> String {
    let mut body = "<h1>Overload, with the gate and without</h1>\
         <p>Clients come by the clock, each with a connection of its own, and wait one second. What counts \
         is how many are answered within it, of the server's peak. The gate (<code>staunch gate</code>) was \
         told nothing about the servers.</p>\
         <p>100 % is the peak without the gate: what the server answered to clients who \
         ask again as soon as they were answered. More than 100 % is no error: while the gate sheds, \
         packets are taken from the interface less often, and the server has the processor time that \
         saves.</p><div class=\"panels\">"
        .to_owned();
    for (index, plot) in plots(record, curves).iter().enumerate() {
        body.push_str(&figure(&format!("panel-{}", index + 1), plot));
    }
    body.push_str("</div>");
    table(&mut body, "More clients than can be served", "times the peak", &record.servers);
    table(&mut body, "Clients seen before, under a flood of forged SYN segments", "SYN/s", &record.floods);
    body.push_str("<h2>How it was measured</h2><ul>");
    for note in notes {
        let _ = write!(body, "<li>{}", escape(note));
    }
    body.push_str(
        "<li>One round: figures with rounds are those of <code>cargo xtask bench gate</code>.</ul>",
    );
    let commit = ("commit".to_owned(), record.commit.clone());
    let facts = record.machine.iter().chain(&record.versions);
    let facts = facts.map(|(name, value)| (name.clone(), value.clone()));
    body.push_str(&page::colophon("cargo xtask demo overload", [commit].into_iter().chain(facts)));
    page::whole("Overload, with the gate and without", STYLE, &body)
}

/// A panel to each server that more and more want to be served by, then to each that is flooded.
fn plots(record: &Record, curves: &[Curve]) -> Vec<Plot> {
    let honest = record.servers.iter().map(|server| {
        panel(record, server, curves, &format!("{}, everybody honest", server.name), |places| {
            Axis::fitted(places, "offered, in multiples of the peak", words::short)
        })
    });
    let flooded = record.floods.iter().map(|flood| {
        panel(record, flood, curves, &format!("{}, flooded; clients seen before", flood.name), |places| {
            Axis::fitted(places, "forged SYN segments a second", words::short)
        })
    });
    honest.chain(flooded).collect()
}

fn panel<X: Offer>(
    record: &Record,
    sides: &Sides<X>,
    curves: &[Curve],
    title: &str,
    axis: impl Fn(std::vec::IntoIter<f64>) -> Axis,
) -> Plot {
    let peak = record.peak_per_s(&sides.name).unwrap_or(1.0);
    let mine: Vec<&Curve> =
        curves.iter().filter(|curve| curve.flood == X::IS_FLOOD && curve.name == sides.name).collect();
    let measured = || sides.gate_off.iter().chain(&sides.gate_on).map(|point| point.at.load());
    let mut places: Vec<f64> =
        mine.iter().flat_map(|curve| &curve.points).map(|point| point.0).chain(measured()).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let mut series = Vec::new();
    for (gate, class, label) in [(true, "ours", "gate on"), (false, "timed_out", "gate off")] {
        let points = if gate { &sides.gate_on } else { &sides.gate_off };
        let at = |place: &f64| points.iter().find(|point| point.at.load() == *place);
        let values: Vec<Option<f64>> =
            places.iter().map(|place| Some(at(place)?.goodput_per_s / peak)).collect();
        let shape = Shape::Points(vec![None; places.len()]);
        series.push(Series { shape, ..Series::line(class, label, values) });
        for curve in mine.iter().filter(|curve| curve.gate == gate) {
            let at = |place: &f64| curve.points.iter().find(|point| point.0 == *place);
            let values = places.iter().map(|place| Some(at(place)?.1 / peak)).collect();
            series.push(Series::dashed(class, &format!("model, {label}"), values));
        }
    }
    series.retain(|one| one.values.iter().any(Option::is_some));
    let values = series.iter().flat_map(|one| &one.values).flatten().copied();
    let y = Axis::linear(0.0, values.fold(1.0, f64::max), true, "of the peak", words::percent);
    let x = axis(places.clone().into_iter());
    Plot { title: title.to_owned(), note: String::new(), x, y, places, series }
}

fn table<X: Offer>(body: &mut String, title: &str, axis: &str, sides: &[Sides<X>]) {
    let head = ["server", "gate", axis, "offered/s", "in time/s", "p50", "p99", "refused", "timed out"];
    let points = sides.iter().flat_map(|server| {
        let off = server.gate_off.iter().map(move |point| (server, "off", point));
        off.chain(server.gate_on.iter().map(move |point| (server, "on", point)))
    });
    let rows = points.map(|(server, gate, point)| {
        vec![
            server.name.clone(),
            gate.to_owned(),
            words::number(point.at.load()),
            words::count(point.offered_per_s.round() as u64),
            words::count(point.goodput_per_s.round() as u64),
            words::time_ms_or_dash(point.p50_ms),
            words::time_ms_or_dash(point.p99_ms),
            words::count(point.refused),
            words::count(point.timed_out),
        ]
    });
    let _ = write!(body, "<h2>{title}</h2>{}", page::table(&head, rows));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::record::{Multiple, Point};
    use staunch_loadgen::Counts;

    use crate::account::made_up;

    #[test]
    fn words_from_outside_cannot_become_markup() {
        let record = Record { commit: "<script>".to_owned(), ..Record::default() };
        let page = html(&record, &[], &["<b>note</b>".to_owned()]);
        assert!(page.contains("&lt;b&gt;note") && !page.contains("<script>") && !page.contains("<b>"));
    }

    #[test]
    fn a_panel_has_both_sides_and_the_model() {
        let answers = made_up(1.0, Counts { offered: 50, in_time: 50, ..Counts::default() }, &[50]);
        let mut server = Sides::new("nginx");
        for gate in [false, true] {
            server.side(gate).push(Point::new(Multiple { offered_multiple: 0.5 }, &answers));
        }
        let record = Record { servers: vec![server], ..Record::default() };
        let points = vec![(0.5, 50.0), (10.0, 90.0)];
        let curve = Curve { name: "nginx".to_owned(), flood: false, gate: true, points };
        let plots = plots(&record, &[curve]);
        let labels: Vec<&str> = plots[0].series.iter().map(|one| one.label.as_str()).collect();
        assert_eq!(labels, ["gate on", "model, gate on", "gate off"]);
        assert_eq!(plots[0].places, [0.5, 10.0]);
        assert!(html(&record, &[], &[]).contains("nginx, everybody honest"));
    }
}
