//! Bar plots as SVG: one bar a server to its median, a line from its smallest to its largest sample.
//!
//! It owns geometry; colours are classes of the page that holds it. It must never compute a result.

use std::fmt::Write;

use super::figures::{Outcome, Summary};
use super::setup::Kind;
use super::terminal::number_words;

const WIDTH: f64 = 720.0;
const NAME_WIDTH: f64 = 160.0;
const VALUE_WIDTH: f64 = 120.0;
const ROW_HEIGHT: f64 = 30.0;
const BAR_HEIGHT: f64 = 18.0;

/// The plot of one measure of an outcome, or nothing when there is none.
pub(super) fn bars(outcome: &Outcome, measure: &str, unit: &str) -> String {
    let rows: Vec<(&str, Summary)> = outcome
        .figures
        .iter()
        .filter(|figure| figure.measure == measure)
        .filter_map(|figure| Some((figure.server.as_str(), Summary::of(&figure.samples)?)))
        .collect();
    let largest = rows.iter().map(|(_, summary)| summary.max).fold(0.0, f64::max);
    if rows.is_empty() || largest <= 0.0 {
        return String::new();
    }
    let height = ROW_HEIGHT * rows.len() as f64;
    let scale = (WIDTH - NAME_WIDTH - VALUE_WIDTH) / largest;
    let mut svg = String::new();
    let _ = write!(svg, r#"<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{measure}">"#);
    for (index, (server, summary)) in rows.iter().enumerate() {
        row(&mut svg, index, server, summary, scale, unit);
    }
    svg.push_str("</svg>");
    svg
}

fn row(svg: &mut String, index: usize, server: &str, summary: &Summary, scale: f64, unit: &str) {
    let middle = ROW_HEIGHT * (index as f64 + 0.5);
    let top = middle - BAR_HEIGHT / 2.0;
    let [min, median, max] =
        [summary.min, summary.median, summary.max].map(|value| NAME_WIDTH + value * scale);
    let width = (median - NAME_WIDTH).max(1.0);
    let class = class(server);
    let baseline = middle + 5.0;
    let name_end = NAME_WIDTH - 10.0;
    let _ = write!(svg, r#"<text class="name" x="{name_end}" y="{baseline}">{server}</text>"#);
    let _ = write!(
        svg,
        r#"<rect class="{class}" x="{NAME_WIDTH}" y="{top:.1}" width="{width:.1}" height="{BAR_HEIGHT}"/>"#
    );
    if max > min {
        let (above, below) = (middle - 5.0, middle + 5.0);
        let ends = format!("M{min:.1} {above}V{below}M{max:.1} {above}V{below}");
        let _ = write!(svg, r#"<path class="range" d="M{min:.1} {middle}H{max:.1}{ends}"/>"#);
    }
    let value_start = median.max(max) + 8.0;
    let value = number_words(summary.median);
    let _ = write!(svg, r#"<text x="{value_start:.1}" y="{baseline}">{value} {unit}</text>"#);
}

/// How a server's bar is coloured: ours, the floor, or a peer.
fn class(server: &str) -> &'static str {
    if server.starts_with("staunch") {
        "ours"
    } else if server == Kind::Floor.name() {
        "floor"
    } else {
        "peer"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_a_server_and_a_range_only_where_there_is_one() {
        let mut outcome = Outcome::new("name", "title");
        outcome.add("nginx", "cost", "us", 9.0);
        outcome.add("nginx", "cost", "us", 10.0);
        outcome.add("staunch uring", "cost", "us", 5.0);
        let svg = bars(&outcome, "cost", "us");
        assert_eq!(svg.matches("<rect").count(), 2);
        assert_eq!(svg.matches("class=\"range\"").count(), 1);
        assert!(svg.contains("9.50 us") && svg.contains("class=\"ours\""));
        assert_eq!(bars(&outcome, "rate", "1/s"), "");
    }
}
