//! The page of the story of proxies: plots and what they were drawn from, which needs nothing else.
//!
//! The page owns which figures it shows and in which order. It must never compute a result. Words from
//! outside are escaped.

use std::fmt::Write;

use staunch_figures::plot::{Axis, Plot, Series, figure};
use staunch_figures::{escape, page, words};

use super::proxied::{PHASES, ProxyRecord};

/// Beside the style of every page: two panels in a row, and the changes as wide as both.
const STYLE: &str = ".panels { display: grid; grid-template-columns: repeat(auto-fill, \
    minmax(min(100%, 26rem), 1fr)); gap: 0 1.5rem; } .panels svg { font-size: 19px; }";
const TITLE: &str = "Applications behind proxies, asked for more than they can do";

/// The whole page.
pub(super) fn html(record: &ProxyRecord) -> String {
    let mut body = format!(
        "<h1>{TITLE}</h1>\
         <p>Two applications whose peak is known: one does a request at a time, 10 ms each; the other eight, \
         200 ms each. Strangers come by the clock, each with a connection of its own, and wait one second. \
         What counts is how many are answered within it, of the application's peak. Each proxy has one \
         configuration for both, as its documentation begins, and was told nothing about them.</p>\
         <div class=\"panels\">"
    );
    for (index, plot) in offered(record).iter().enumerate() {
        body.push_str(&figure(&format!("offered-{}", index + 1), plot));
    }
    body.push_str("</div><h2>The application changes</h2>");
    body.push_str(
        "<p>The second application has eight workers, then two, then sixteen, and is asked for the same all \
         the time: for more than it can do.</p>",
    );
    body.push_str(&figure("changes", &changes(record)));
    table(&mut body, record);
    body.push_str("<h2>How it was measured</h2><ul>");
    for name in &record.left_out {
        let _ = write!(body, "<li>{} is not installed, so left out", escape(name));
    }
    for command in &record.commands {
        let _ = write!(body, "<li>{}", escape(command));
    }
    body.push_str(
        "<li>Applications sleep, so the speed of the machine decides little. Applications and proxies on CPU \
         0, clients on CPU 1; both applications are measured at the same time, and all proxies while the \
         application changes.\
         <li>One round: figures with rounds are those of <code>cargo xtask bench proxy-overload</code>.</ul>",
    );
    let commit = ("commit".to_owned(), record.commit.clone());
    let facts = record.machine.iter().map(|(name, value)| (name.clone(), value.clone()));
    body.push_str(&page::colophon("cargo xtask demo proxy", [commit].into_iter().chain(facts)));
    page::whole(TITLE, STYLE, &body)
}

/// The class of a proxy's colour.
fn class(proxy: &str) -> &'static str {
    match proxy {
        "no proxy" => "peer",
        "nginx" => "peer-1",
        "haproxy" => "peer-2",
        "caddy" => "peer-3",
        _ => "ours",
    }
}

/// Names in the order in which they were measured, each once.
fn distinct<'a>(names: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    let mut all: Vec<&str> = Vec::new();
    for name in names {
        if !all.contains(&name.as_str()) {
            all.push(name);
        }
    }
    all
}

/// A panel for each application.
fn offered(record: &ProxyRecord) -> Vec<Plot> {
    let panel = |application: &str| {
        let mine = || record.points.iter().filter(|point| point.application == application);
        let mut places: Vec<f64> = mine().map(|point| point.offered_multiple).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let line = |proxy: &str| {
            let at =
                |place: &f64| mine().find(|point| point.proxy == proxy && point.offered_multiple == *place);
            let values = places.iter().map(|place| Some(at(place)?.goodput)).collect();
            Series::line(class(proxy), proxy, values)
        };
        let series: Vec<Series> = distinct(mine().map(|point| &point.proxy)).into_iter().map(line).collect();
        let highest = mine().map(|point| point.goodput).fold(1.0, f64::max);
        Plot {
            title: format!("The application {application}"),
            note: String::new(),
            x: Axis::fitted(places.iter().copied(), "offered, in multiples of the peak", words::short),
            y: Axis::linear(0.0, highest, true, "answered in time, of the peak", words::percent),
            places,
            series,
        }
    };
    distinct(record.points.iter().map(|point| &point.application)).into_iter().map(panel).collect()
}

fn changes(record: &ProxyRecord) -> Plot {
    let seconds = record.changes.iter().map(|change| change.in_time_per_s.len()).max().unwrap_or(0);
    let possible = |second: usize| {
        let phase = PHASES.iter().rev().find(|(at_s, _)| *at_s as usize <= second);
        phase.map(|(_, per_s)| f64::from(*per_s))
    };
    let mut series = vec![Series::dashed("offered", "possible", (0..seconds).map(possible).collect())];
    series.extend(record.changes.iter().map(|change| {
        let values = (0..seconds).map(|second| change.in_time_per_s.get(second).copied()).collect();
        Series::line(class(&change.proxy), &change.proxy, values)
    }));
    let highest = series.iter().flat_map(|one| &one.values).flatten().copied().fold(1.0, f64::max);
    Plot {
        title: "Answered in time, a second".to_owned(),
        note: String::new(),
        x: Axis::linear(0.0, seconds as f64, false, "seconds", words::short),
        y: Axis::linear(0.0, highest, true, "answers a second", words::short),
        places: (0..seconds).map(|second| second as f64 + 0.5).collect(),
        series,
    }
}

fn table(body: &mut String, record: &ProxyRecord) {
    let head = ["application", "proxy", "offered", "in time", "for nobody", "p50", "p99"];
    let rows = record.points.iter().map(|point| {
        vec![
            point.application.clone(),
            point.proxy.clone(),
            format!("{} x", words::number(point.offered_multiple)),
            words::percent(point.goodput),
            words::percent(point.wasted),
            words::time_ms_or_dash(point.p50_ms),
            words::time_ms_or_dash(point.p99_ms),
        ]
    });
    let _ = write!(body, "<h2>All figures</h2>{}", page::table(&head, rows));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::proxied::{ProxyChange, ProxyPoint};

    fn record() -> ProxyRecord {
        let point = |proxy: &str, offered_multiple, goodput| ProxyPoint {
            application: "1 x 10 ms".to_owned(),
            proxy: proxy.to_owned(),
            offered_multiple,
            goodput,
            wasted: 0.25,
            p50_ms: None,
            p99_ms: Some(7.0),
        };
        ProxyRecord {
            points: vec![
                point("nginx", 0.5, 0.5),
                point("nginx", 10.0, 0.17),
                point("staunch uring", 10.0, 1.0),
            ],
            changes: vec![ProxyChange { proxy: "nginx".to_owned(), in_time_per_s: vec![1.0; 30] }],
            commands: vec!["nginx: <script>".to_owned()],
            ..ProxyRecord::default()
        }
    }

    #[test]
    fn each_proxy_has_a_line_over_all_loads() {
        let plots = offered(&record());
        assert_eq!((plots.len(), plots[0].places.clone()), (1, vec![0.5, 10.0]));
        assert_eq!(plots[0].series[0].values, [Some(0.5), Some(0.17)]);
        assert_eq!(plots[0].series[1].values, [None, Some(1.0)]);
        assert_eq!(plots[0].series[1].class, "ours");
    }

    #[test]
    fn what_is_possible_stands_beside_what_was_answered() {
        let plot = changes(&record());
        let possible = &plot.series[0].values;
        assert_eq!(
            (possible[0], possible[11], possible[12], possible[29]),
            (Some(40.0), Some(40.0), Some(10.0), Some(80.0))
        );
    }

    #[test]
    fn words_from_outside_cannot_become_markup() {
        let page = html(&record());
        assert!(page.contains("nginx: &lt;script&gt;") && !page.contains("<script>"), "{page}");
    }
}
