//! From a plot to markup: a figure with its title, its legend and its SVG.
//!
//! It must never write a colour: each series has a class.
use std::fmt::Write;

use super::{Plot, Series, Shape};
use crate::markup::escape;

pub(super) const WIDTH: f64 = 720.0;
pub(super) const HEIGHT: f64 = 270.0;
/// Room for the words of the upright axis, in the larger letters of a phone.
const LEFT: f64 = 78.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 12.0;
/// Room for the words of the level axis.
const BOTTOM: f64 = 34.0;
const PLOT_WIDTH: f64 = WIDTH - LEFT - RIGHT;
const PLOT_HEIGHT: f64 = HEIGHT - TOP - BOTTOM;
const FLOOR: f64 = HEIGHT - BOTTOM;

/// The plot as a figure. `name` is unique on the page. Nothing when no series has a place to be drawn at.
pub fn figure(name: &str, plot: &Plot) -> String {
    if plot.places.is_empty() || plot.series.is_empty() {
        return String::new();
    }
    let name = escape(name);
    let mut figure = format!("<figure id=\"{name}\"><figcaption>{}</figcaption>", escape(&plot.title));
    legend(&mut figure, plot);
    let _ = write!(
        figure,
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-labelledby=\"{name}-title {name}-desc\">\
         <title id=\"{name}-title\">{}</title><desc id=\"{name}-desc\">{}</desc>",
        escape(&plot.title),
        escape(&description(plot))
    );
    grid(&mut figure, plot);
    series(&mut figure, plot);
    hover(&mut figure, plot);
    figure.push_str("</svg>");
    if !plot.note.is_empty() {
        let _ = write!(figure, "<p class=\"quiet note\">{}</p>", escape(&plot.note));
    }
    figure.push_str("</figure>");
    figure
}

fn legend(figure: &mut String, plot: &Plot) {
    let _ = write!(figure, "<p class=\"legend\"><span class=\"quiet\">{}</span>", escape(&plot.y.label));
    for one in &plot.series {
        let shape = match one.shape {
            Shape::Area => "block",
            Shape::Points(_) => "block round",
            _ => "stroke",
        };
        let dashed = if matches!(one.shape, Shape::Dashed) { " dashed" } else { "" };
        let _ = write!(
            figure,
            "<span><i class=\"{shape}{dashed} {}\"></i>{}</span>",
            one.class,
            escape(&one.label)
        );
    }
    figure.push_str("</p>");
}

/// What a reader who cannot see the plot is told: each series from its smallest to its largest value.
pub(super) fn description(plot: &Plot) -> String {
    let mut words = format!("{}, over {}.", plot.y.label, plot.x.label);
    for one in &plot.series {
        let values = || one.values.iter().flatten().copied();
        let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
        if low.is_finite() {
            let _ = write!(words, " {}: {} to {}.", one.label, (plot.y.words)(low), (plot.y.words)(high));
        }
    }
    words
}

pub(super) fn grid(figure: &mut String, plot: &Plot) {
    let right = WIDTH - RIGHT;
    for (value, words) in &plot.y.ticks {
        let y = y_of(plot, *value);
        let (baseline, end) = (y + 5.0, LEFT - 8.0);
        let words = escape(words);
        let _ = write!(
            figure,
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{right}\"/>\
             <text class=\"end\" x=\"{end}\" y=\"{baseline:.1}\">{words}</text>"
        );
    }
    let baseline = HEIGHT - 10.0;
    for (value, words) in &plot.x.ticks {
        let x = x_of(plot, *value);
        let tick_end = FLOOR + 5.0;
        let class = if x > right - 30.0 { "end" } else { "middle" };
        let words = escape(words);
        let _ = write!(
            figure,
            "<path class=\"grid\" d=\"M{x:.1} {FLOOR}V{tick_end}\"/>\
             <text class=\"{class}\" x=\"{x:.1}\" y=\"{baseline}\">{words}</text>"
        );
    }
    let _ = write!(figure, "<path class=\"axis\" d=\"M{LEFT} {FLOOR}H{right}\"/>");
}

pub(super) fn series(figure: &mut String, plot: &Plot) {
    let mut ground = vec![0.0; plot.places.len()];
    for one in &plot.series {
        match &one.shape {
            Shape::Area => area(figure, plot, one, &mut ground),
            Shape::Line => line(figure, plot, one, "line"),
            Shape::Dashed => line(figure, plot, one, "line dashed"),
            Shape::Range(ranges) => {
                line(figure, plot, one, "line");
                points(figure, plot, one, ranges);
            }
            Shape::Points(ranges) => points(figure, plot, one, ranges),
        }
    }
}

/// A band on top of `ground`, which rises by it. Where there is no value there is no band.
fn area(figure: &mut String, plot: &Plot, one: &Series, ground: &mut [f64]) {
    let below: Vec<f64> = ground.to_vec();
    for (height, value) in ground.iter_mut().zip(&one.values) {
        *height += value.unwrap_or(0.0);
    }
    let mut path = String::new();
    let mut start = 0;
    for run in one.values.chunk_by(|value, next| value.is_some() == next.is_some()) {
        let end = start + run.len();
        if run[0].is_some() {
            let point = |index: usize, heights: &[f64]| {
                format!("{:.1} {:.1}", x_of(plot, plot.places[index]), y_of(plot, heights[index]))
            };
            let above = (start..end).map(|index| point(index, ground));
            let edge: Vec<String> =
                above.chain((start..end).rev().map(|index| point(index, &below))).collect();
            let _ = write!(path, "M{}Z", edge.join("L"));
        }
        start = end;
    }
    let _ = write!(figure, "<path class=\"area {}\" d=\"{path}\"/>", one.class);
}

fn line(figure: &mut String, plot: &Plot, one: &Series, class: &str) {
    let mut path = String::new();
    let mut is_drawing = false;
    for (place, value) in plot.places.iter().zip(&one.values) {
        if let Some(value) = value {
            let (x, y) = (x_of(plot, *place), y_of(plot, *value));
            // The first point has a line of no length, so that one alone is seen as a dot.
            let _ =
                if is_drawing { write!(path, "L{x:.1} {y:.1}") } else { write!(path, "M{x:.1} {y:.1}h0") };
        }
        is_drawing = value.is_some();
    }
    let _ = write!(figure, "<path class=\"{class} {}\" d=\"{path}\"/>", one.class);
}

fn points(figure: &mut String, plot: &Plot, one: &Series, ranges: &[Option<(f64, f64)>]) {
    for ((place, value), range) in plot.places.iter().zip(&one.values).zip(ranges) {
        let Some(value) = value else { continue };
        let (x, y) = (x_of(plot, *place), y_of(plot, *value));
        if let Some((low, high)) = range.filter(|(low, high)| high > low) {
            let (low, high) = (y_of(plot, low), y_of(plot, high));
            let (left, right) = (x - 4.0, x + 4.0);
            let _ = write!(
                figure,
                "<path class=\"range {}\" d=\"M{x:.1} {low:.1}V{high:.1}M{left:.1} {low:.1}H{right:.1}\
                 M{left:.1} {high:.1}H{right:.1}\"/>",
                one.class
            );
        }
        let _ = write!(figure, "<circle class=\"dot {}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"/>", one.class);
    }
}

/// Columns that nobody sees until the pointer is over one: the browser then shows the values of its place.
fn hover(figure: &mut String, plot: &Plot) {
    figure.push_str("<g class=\"hover\" aria-hidden=\"true\">");
    let xs: Vec<f64> = plot.places.iter().map(|place| x_of(plot, *place)).collect();
    for (index, place) in plot.places.iter().enumerate() {
        let left = if index == 0 { LEFT } else { (xs[index - 1] + xs[index]) / 2.0 };
        let right = xs.get(index + 1).map_or(WIDTH - RIGHT, |next| (xs[index] + next) / 2.0);
        let mut words = (plot.x.words)(*place);
        for one in &plot.series {
            if let Some(value) = one.values.get(index).copied().flatten() {
                let _ = write!(words, "\n{}: {}", one.label, (plot.y.words)(value));
            }
        }
        let width = right - left;
        let _ = write!(
            figure,
            "<rect x=\"{left:.1}\" y=\"{TOP}\" width=\"{width:.1}\" height=\"{PLOT_HEIGHT}\">\
             <title>{}</title></rect>",
            escape(&words)
        );
    }
    figure.push_str("</g>");
}

fn x_of(plot: &Plot, value: f64) -> f64 {
    LEFT + PLOT_WIDTH * plot.x.place(value)
}

fn y_of(plot: &Plot, value: f64) -> f64 {
    FLOOR - PLOT_HEIGHT * plot.y.place(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Axis;

    fn words(value: f64) -> String {
        format!("{value:.0} <u>")
    }

    fn plot(series: Vec<Series>) -> Plot {
        Plot {
            title: "A <title>".to_owned(),
            note: String::new(),
            x: Axis::linear(0.0, 4.0, false, "seconds", words),
            y: Axis::linear(0.0, 10.0, true, "a second", words),
            places: vec![0.0, 1.0, 2.0, 3.0, 4.0],
            series,
        }
    }

    #[test]
    fn lines_break_where_there_is_no_value() {
        let values = vec![Some(1.0), Some(2.0), None, Some(4.0), None];
        let svg = figure("a", &plot(vec![Series::line("one", "One", values)]));
        let path = svg.split("class=\"line one\" d=\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!(path.matches('M').count(), 2, "{path}");
        assert_eq!(path.matches('L').count(), 1, "{path}");
        assert_eq!(svg.matches("<rect").count(), 5);
    }

    #[test]
    fn areas_stand_on_each_other() {
        let values = |value| vec![Some(value); 5];
        let svg = figure(
            "a",
            &plot(vec![Series::area("one", "One", values(4.0)), Series::area("two", "Two", values(6.0))]),
        );
        let path = |class: &str| {
            let start = svg.split(&format!("class=\"area {class}\" d=\"")).nth(1).unwrap();
            start.split('"').next().unwrap().to_owned()
        };
        // The upper edge of the first is the lower edge of the second; the second ends at the top.
        let middle = format!("M{LEFT:.1} {:.1}", FLOOR - PLOT_HEIGHT * 0.4);
        assert!(path("one").starts_with(&middle), "{}", path("one"));
        assert!(path("two").ends_with(&format!("{}Z", middle.replace('M', "L"))), "{}", path("two"));
        assert!(path("two").starts_with(&format!("M{LEFT:.1} {TOP:.1}")), "{}", path("two"));
    }

    #[test]
    fn an_area_has_a_gap_where_there_is_no_value() {
        let values = vec![Some(4.0), Some(4.0), None, Some(4.0), Some(4.0)];
        let svg = figure("a", &plot(vec![Series::area("one", "One", values)]));
        let path = svg.split("class=\"area one\" d=\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!((path.matches('M').count(), path.matches('Z').count()), (2, 2), "{path}");
    }

    #[test]
    fn a_range_is_drawn_only_where_there_is_one() {
        let ranges = vec![Some((1.0, 3.0)), Some((2.0, 2.0)), None, None, Some((0.0, 9.0))];
        let one = Series {
            class: "one",
            label: "One".to_owned(),
            values: vec![Some(2.0); 5],
            shape: Shape::Range(ranges),
        };
        let svg = figure("a", &plot(vec![one]));
        assert_eq!(svg.matches("class=\"range one\"").count(), 2);
        assert_eq!(svg.matches("<circle").count(), 5);
    }

    #[test]
    fn the_plot_can_be_read_aloud_and_words_are_escaped() {
        let svg = figure("a\"b", &plot(vec![Series::line("one", "<script>", vec![Some(3.0); 5])]));
        assert!(svg.contains("role=\"img\" aria-labelledby=\"a&quot;b-title a&quot;b-desc\""));
        assert!(svg.contains("&lt;script&gt;: 3 &lt;u&gt; to 3 &lt;u&gt;."));
        assert!(!svg.contains("<script") && !svg.contains("<u>"));
        assert_eq!(figure("a", &plot(Vec::new())), "");
    }
}
