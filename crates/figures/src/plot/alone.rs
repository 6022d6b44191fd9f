//! A plot as an SVG file of its own: title, legend and style inside it, to stand in a document.
//!
//! It must never ask for anything outside the file: who shows a picture does not fetch.
use std::fmt::Write;

use super::draw::{HEIGHT, WIDTH, description, grid, series};
use super::{Plot, Series, Shape};
use crate::markup::escape;

/// Room above the plot for title and a legend of one line.
const HEAD: f64 = 54.0;
/// Where the legend's first line stands.
const FIRST_LINE: f64 = 44.0;
/// From one line of the legend to the next.
const LINE_HEIGHT: f64 = 20.0;
/// Left and right of words.
const EDGE: f64 = 14.0;
/// Mean width of a letter of the legend. A browser alone could measure; too much is only a gap.
const LETTER_WIDTH: f64 = 7.2;
/// Width of a mark of the legend with the blank behind it.
const MARK_WIDTH: f64 = 24.0;
/// Between two entries of the legend.
const GAP: f64 = 18.0;

/// What a page gives and a picture has to bring: colours, ground and letters.
const STYLE: &str = concat!(
    include_str!("../plot.css"),
    ".ground { fill: var(--paper); } svg .title { fill: var(--ink); font-weight: 600; }"
);

/// The plot as a file. One without a plot says that nothing was measured.
pub fn alone(plot: Option<&Plot>) -> String {
    let title = plot.map_or("Nothing was measured", |plot| plot.title.as_str());
    let (legend, head) = plot.map_or((String::new(), HEAD), legend);
    let height = HEIGHT + head;
    let mut file = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" aria-labelledby=\"title desc\"><title id=\"title\">{title}</title>\
         <desc id=\"desc\">{}</desc><style>{STYLE}</style>\
         <rect class=\"ground\" width=\"{WIDTH}\" height=\"{height}\"/>\
         <text class=\"title\" x=\"14\" y=\"22\">{title}</text>{legend}",
        escape(&plot.map(description).unwrap_or_default()),
        title = escape(title),
    );
    if let Some(plot) = plot {
        let _ = write!(file, "<g transform=\"translate(0 {head})\">");
        grid(&mut file, plot);
        series(&mut file, plot);
        file.push_str("</g>");
    }
    file.push_str("</svg>\n");
    file
}

/// What the axes and the series are, in as many lines as it takes, and the room above the plot.
fn legend(plot: &Plot) -> (String, f64) {
    let width = |words: &str| words.chars().count() as f64 * LETTER_WIDTH;
    let end = WIDTH - EDGE;
    let (mut legend, mut x, mut y) = (String::new(), EDGE, FIRST_LINE);
    let _ = write!(legend, "<text x=\"{x}\" y=\"{y}\">{}</text>", escape(&plot.y.label));
    x += width(&plot.y.label) + GAP;
    for one in &plot.series {
        let room = MARK_WIDTH + width(&one.label);
        if x + room > end {
            (x, y) = (EDGE, y + LINE_HEIGHT);
        }
        mark(&mut legend, one, x, y - 4.5);
        let words = x + MARK_WIDTH;
        let _ = write!(legend, "<text x=\"{words:.1}\" y=\"{y}\">{}</text>", escape(&one.label));
        x += room + GAP;
    }
    if x + width(&plot.x.label) > end {
        y += LINE_HEIGHT;
    }
    let _ = write!(legend, "<text class=\"end\" x=\"{end}\" y=\"{y}\">{}</text>", escape(&plot.x.label));
    (legend, HEAD + y - FIRST_LINE)
}

fn mark(file: &mut String, one: &Series, x: f64, y: f64) {
    let class = one.class;
    let _ = match one.shape {
        Shape::Points(_) => {
            write!(file, "<circle class=\"dot {class}\" cx=\"{:.1}\" cy=\"{y}\" r=\"3.5\"/>", x + 9.0)
        }
        Shape::Dashed => write!(file, "<path class=\"line dashed {class}\" d=\"M{x:.1} {y}h18\"/>"),
        _ => write!(file, "<path class=\"line {class}\" d=\"M{x:.1} {y}h18\"/>"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Axis;

    #[test]
    fn a_picture_has_all_in_it_and_words_are_escaped() {
        let axis = |label| Axis::linear(0.0, 4.0, true, label, |value| value.to_string());
        let plot = Plot {
            title: "<b>".to_owned(),
            note: String::new(),
            x: axis("percentile"),
            y: axis("logarithmic"),
            places: vec![0.0, 4.0],
            series: vec![Series::dashed("one", "One & all", vec![Some(1.0), Some(2.0)])],
        };
        let file = alone(Some(&plot));
        assert!(file.starts_with("<svg xmlns=") && file.ends_with("</svg>\n"));
        for part in ["&lt;b&gt;", "One &amp; all", "--c:", "class=\"line dashed one\"", ">percentile<"] {
            assert!(file.contains(part), "{part} is not in {file}");
        }
        assert!(!file.contains("<b>") && file.matches("<g").count() == file.matches("</g>").count());
    }

    #[test]
    fn a_long_legend_goes_on_in_another_line() {
        let axis = || Axis::linear(0.0, 1.0, true, "a label of some length", |value| value.to_string());
        let series = Series::line("one", "a series with a long name", vec![Some(1.0)]);
        let tops = |count: usize| {
            let (x, y) = (axis(), axis());
            let series = vec![series.clone(); count];
            let plot = Plot { title: String::new(), note: String::new(), x, y, places: vec![1.0], series };
            let file = alone(Some(&plot));
            [44, 64, 84].map(|y| file.matches(&format!("y=\"{y}\"")).count())
        };
        // Two labels and one series, then lines of as many as there is room for.
        assert_eq!(tops(1), [3, 0, 0]);
        assert_eq!(tops(4), [3, 3, 0]);
    }

    #[test]
    fn nothing_measured_is_said() {
        assert!(alone(None).contains(">Nothing was measured<"));
    }
}
