//! Bar plots as SVG: a bar to each median, a line from its smallest to its largest value.
//!
//! It owns geometry; colours are classes of the page that holds it. It must never compute a result.
use std::fmt::Write;

use crate::markup::escape;
use crate::statistics::Spread;

const WIDTH: f64 = 720.0;
const NAME_WIDTH: f64 = 160.0;
const VALUE_WIDTH: f64 = 120.0;
const ROW_HEIGHT: f64 = 30.0;
const BAR_HEIGHT: f64 = 18.0;

/// A bar of a chart.
#[derive(Debug, Clone)]
pub struct Bar<'a> {
    /// What was measured.
    pub name: &'a str,
    /// The class of the page's style that gives the colour.
    pub class: &'static str,
    /// Its values.
    pub spread: Spread,
    /// The median in words, with its unit.
    pub words: String,
}

/// The plot, with a title for who cannot see it. Nothing when no value is above 0.
pub fn bars(title: &str, bars: &[Bar<'_>]) -> String {
    let largest = bars.iter().map(|bar| bar.spread.max).fold(0.0, f64::max);
    if largest <= 0.0 {
        return String::new();
    }
    let height = ROW_HEIGHT * bars.len() as f64;
    let scale = (WIDTH - NAME_WIDTH - VALUE_WIDTH) / largest;
    let mut svg = format!(
        "<svg class=\"bars\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">",
        escape(title)
    );
    for (index, bar) in bars.iter().enumerate() {
        row(&mut svg, index, bar, scale);
    }
    svg.push_str("</svg>");
    svg
}

fn row(svg: &mut String, index: usize, bar: &Bar<'_>, scale: f64) {
    let Bar { name, class, spread, words } = bar;
    let middle = ROW_HEIGHT * (index as f64 + 0.5);
    let top = middle - BAR_HEIGHT / 2.0;
    let [min, median, max] = [spread.min, spread.median, spread.max].map(|value| NAME_WIDTH + value * scale);
    let width = (median - NAME_WIDTH).max(1.0);
    let (baseline, name_end) = (middle + 5.0, NAME_WIDTH - 10.0);
    let _ = write!(
        svg,
        "<text class=\"end\" x=\"{name_end}\" y=\"{baseline}\">{}</text><rect class=\"area {class}\" \
         x=\"{NAME_WIDTH}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{BAR_HEIGHT}\"/>",
        escape(name)
    );
    if max > min {
        let (above, below) = (middle - 5.0, middle + 5.0);
        let ends = format!("M{min:.1} {above}V{below}M{max:.1} {above}V{below}");
        let _ = write!(svg, "<path class=\"span\" d=\"M{min:.1} {middle}H{max:.1}{ends}\"/>");
    }
    let value_start = median.max(max) + 8.0;
    let _ = write!(svg, "<text x=\"{value_start:.1}\" y=\"{baseline}\">{}</text>", escape(words));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_has_a_range_only_where_there_is_one() {
        let bar = |name, values: &[f64]| Bar {
            name,
            class: "peer",
            spread: Spread::of(values).expect("values"),
            words: format!("{} us", values[0]),
        };
        let svg = bars("cost <b>", &[bar("nginx", &[9.0, 10.0]), bar("<i>", &[5.0])]);
        assert_eq!((svg.matches("<rect").count(), svg.matches("class=\"span\"").count()), (2, 1));
        assert!(svg.contains(">9 us</text>") && !svg.contains("<i>") && !svg.contains("<b>"));
        assert_eq!(bars("rate", &[bar("nginx", &[0.0])]), "");
    }
}
