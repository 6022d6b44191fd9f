//! A plot as an SVG file of its own: title, legend and style inside it, to stand in a document.
//!
//! It must never ask for anything outside the file: who shows a picture does not fetch.

use std::fmt::Write;

use super::draw::{HEIGHT, WIDTH, description, grid, series};
use super::markup::escape;
use super::{Plot, Series, Shape};

/// Room above the plot for title and legend.
const HEAD: f64 = 54.0;
/// Mean width of a letter of the legend. A browser alone could measure; too much is only a gap.
const LETTER_WIDTH: f64 = 7.2;
/// Width of a mark of the legend with the blank behind it.
const MARK_WIDTH: f64 = 24.0;
/// Between two entries of the legend.
const GAP: f64 = 18.0;

/// What a page gives and a picture has to bring: ground and letters.
const STYLE: &str = ".ground { fill: var(--paper); } svg .title { fill: var(--ink); font-weight: 600; }";

/// The plot as a file. One without a plot says that nothing was measured.
pub fn alone(plot: Option<&Plot>, style: &str) -> String {
    let height = HEIGHT + HEAD;
    let title = plot.map_or("Nothing was measured", |plot| plot.title.as_str());
    let mut file = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" aria-labelledby=\"title desc\"><title id=\"title\">{title}</title>\
         <desc id=\"desc\">{}</desc><style>{style}{STYLE}</style>\
         <rect class=\"ground\" width=\"{WIDTH}\" height=\"{height}\"/>\
         <text class=\"title\" x=\"14\" y=\"22\">{title}</text>",
        escape(&plot.map(description).unwrap_or_default()),
        title = escape(title),
    );
    if let Some(plot) = plot {
        legend(&mut file, plot);
        let _ = write!(file, "<g transform=\"translate(0 {HEAD})\">");
        grid(&mut file, plot);
        series(&mut file, plot);
        file.push_str("</g>");
    }
    file.push_str("</svg>\n");
    file
}

fn legend(file: &mut String, plot: &Plot) {
    let width = |words: &str| words.chars().count() as f64 * LETTER_WIDTH;
    let _ = write!(file, "<text x=\"14\" y=\"44\">{}</text>", escape(&plot.y.label));
    let mut x = 14.0 + width(&plot.y.label) + GAP;
    for one in &plot.series {
        let words = x + MARK_WIDTH;
        mark(file, one, x);
        let _ = write!(file, "<text x=\"{words:.1}\" y=\"44\">{}</text>", escape(&one.label));
        x = words + width(&one.label) + GAP;
    }
    let end = WIDTH - 14.0;
    let _ = write!(file, "<text class=\"end\" x=\"{end}\" y=\"44\">{}</text>", escape(&plot.x.label));
}

fn mark(file: &mut String, one: &Series, x: f64) {
    let class = one.class;
    let _ = match one.shape {
        Shape::Points(_) => {
            write!(file, "<circle class=\"dot {class}\" cx=\"{:.1}\" cy=\"39.5\" r=\"3.5\"/>", x + 9.0)
        }
        Shape::Dashed => write!(file, "<path class=\"line dashed {class}\" d=\"M{x:.1} 39.5h18\"/>"),
        _ => write!(file, "<path class=\"line {class}\" d=\"M{x:.1} 39.5h18\"/>"),
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
        let file = alone(Some(&plot), ".one { --c: red; }");
        assert!(file.starts_with("<svg xmlns=") && file.ends_with("</svg>\n"));
        for part in
            ["&lt;b&gt;", "One &amp; all", ".one { --c: red; }", "class=\"line dashed one\"", ">percentile<"]
        {
            assert!(file.contains(part), "{part} is not in {file}");
        }
        assert!(!file.contains("<b>") && file.matches("<g").count() == file.matches("</g>").count());
    }

    #[test]
    fn nothing_measured_is_said() {
        assert!(alone(None, "").contains(">Nothing was measured<"));
    }
}
