//! Goodput against offered load as SVG: a line a server, both axes in multiples of its peak.
//!
//! It owns geometry and the colours of the lines. It must never compute a result.

use std::fmt::Write;

/// One server's line.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// Name of the server.
    pub(super) name: &'a str,
    /// Offered and answered in time, each as a multiple of the peak, in the order of what is offered.
    pub(super) points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 620.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 340.0;
/// Ends of the axis of offered load, which is logarithmic.
const OFFERED: (f64, f64) = (0.4, 12.0);
const GOODPUT_MAX: f64 = 1.1;
/// Ours in green tones, the others apart from each other and from them (Okabe and Ito's palette).
const OURS: [&str; 2] = ["#0f766e", "#34b3a0"];
const OTHERS: [&str; 4] = ["#d55e00", "#0072b2", "#cc79a7", "#8a6d00"];

/// The plot.
pub(super) fn svg(lines: &[Line<'_>]) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"goodput against offered load\" font-family=\"system-ui, sans-serif\" font-size=\"14\">\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\
         <text x=\"{LEFT}\" y=\"22\" fill=\"#1c2430\">Answered in time, of the peak</text>"
    );
    axes(&mut svg);
    let mut labels: Vec<f64> = Vec::new();
    let (mut ours, mut others) = (OURS.iter().cycle(), OTHERS.iter().cycle());
    for line in lines {
        let colours = if line.name.starts_with("staunch") { &mut ours } else { &mut others };
        draw(&mut svg, line, colours.next().copied().unwrap_or("#000"), &mut labels);
    }
    svg.push_str("</svg>\n");
    svg
}

fn axes(svg: &mut String) {
    for tenths in (0..=10).step_by(2) {
        let value = f64::from(tenths) / 10.0;
        let y = y_of(value);
        let _ = write!(
            svg,
            "<path d=\"M{LEFT} {y:.1}H{RIGHT}\" stroke=\"#e2e6ec\"/><text x=\"{}\" y=\"{:.1}\" \
             text-anchor=\"end\" fill=\"#667085\">{value}</text>",
            LEFT - 8.0,
            y + 5.0
        );
    }
    for offered in [0.5, 1.0, 2.0, 5.0, 10.0] {
        let x = x_of(offered);
        let _ = write!(
            svg,
            "<path d=\"M{x:.1} {TOP}V{BOTTOM}\" stroke=\"#e2e6ec\"/><text x=\"{x:.1}\" y=\"{}\" \
             text-anchor=\"middle\" fill=\"#667085\">{offered}</text>",
            BOTTOM + 20.0
        );
    }
    let _ = write!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#1c2430\">\
         Offered, in multiples of the peak</text>",
        f64::midpoint(LEFT, RIGHT),
        BOTTOM + 44.0
    );
}

fn draw(svg: &mut String, line: &Line<'_>, colour: &str, labels: &mut Vec<f64>) {
    let places: Vec<String> = line
        .points
        .iter()
        .map(|(offered, goodput)| format!("{:.1},{:.1}", x_of(*offered), y_of(*goodput)))
        .collect();
    let _ = write!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\"/>",
        places.join(" ")
    );
    let Some((_, last)) = line.points.last() else { return };
    let y = free_place(y_of(*last), labels);
    let _ = write!(
        svg,
        "<text x=\"{}\" y=\"{:.1}\" fill=\"{colour}\">{}</text>",
        RIGHT - 24.0,
        y + 5.0,
        line.name
    );
    labels.push(y);
}

/// The nearest place to `wanted` where a label hides no other.
fn free_place(wanted: f64, taken: &[f64]) -> f64 {
    const STEP: f64 = 17.0;
    let mut places: Vec<f64> =
        (-20..=20).map(|step| wanted + f64::from(step) * STEP / 2.0).filter(|y| *y <= BOTTOM).collect();
    places.sort_by(|left, right| (left - wanted).abs().total_cmp(&(right - wanted).abs()));
    let free = |y: &f64| taken.iter().all(|other| (other - y).abs() >= STEP);
    places.into_iter().find(free).unwrap_or(wanted)
}

fn x_of(offered: f64) -> f64 {
    let (least, most) = OFFERED;
    // Names stand at the end of their lines.
    let right = RIGHT - 32.0;
    LEFT + (offered / least).ln() / (most / least).ln() * (right - LEFT)
}

fn y_of(goodput: f64) -> f64 {
    BOTTOM - (goodput / GOODPUT_MAX).min(1.0) * (BOTTOM - TOP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_and_a_name_a_server_and_no_name_hides_another() {
        let line = |name| Line { name, points: vec![(0.5, 0.5), (10.0, 0.9)] };
        let svg = svg(&[line("nginx"), line("staunch uring"), line("staunch epoll")]);
        assert_eq!(svg.matches("<polyline").count(), 3);
        assert!(svg.contains(">nginx</text>") && svg.contains(OURS[1]));
        let first = free_place(100.0, &[]);
        assert!((free_place(100.0, &[first]) - first).abs() >= 17.0);
    }

    #[test]
    fn more_is_higher_and_further_right() {
        assert!(y_of(0.9) < y_of(0.5) && x_of(10.0) > x_of(1.0) && x_of(10.0) < RIGHT);
    }
}
