//! The plot of the demonstration as SVG: a panel a server, goodput against offered load, and one for floods.
//!
//! It owns geometry, colours and words of the plot. It must never compute a result.

use std::fmt::Write;

use super::model::Curve;
use super::record::{Place, Point, Record, Sides};

const WIDTH: f64 = 920.0;
const PANEL_WIDTH: f64 = 460.0;
const PANEL_HEIGHT: f64 = 290.0;
const HEADING: f64 = 64.0;
/// Room around the plotted part of a panel: left, right, top, bottom.
const ROOM: (f64, f64, f64, f64) = (52.0, 16.0, 40.0, 50.0);
/// Where the axis ends, in parts of the peak, if nothing lies above.
const GOODPUT_LEAST: f64 = 1.2;
const OFF: &str = "#d55e00";
const ON: &str = "#0f766e";
const GRID: &str = "#e2e6ec";
const QUIET: &str = "#667085";

/// A logarithmic axis with the places that are named.
struct Axis<'a> {
    least: f64,
    most: f64,
    title: &'a str,
    named: &'a [(f64, &'a str)],
}

const OFFERED: Axis<'_> = Axis {
    least: 0.45,
    most: 11.0,
    title: "offered, in multiples of the peak",
    named: &[(0.5, "0.5"), (1.0, "1"), (2.0, "2"), (5.0, "5"), (10.0, "10")],
};
const FLOODED: Axis<'_> = Axis {
    least: 4e4,
    most: 1.25e6,
    title: "forged SYN segments a second",
    named: &[(5e4, "50 000"), (2e5, "200 000"), (1e6, "1 000 000")],
};

/// One panel and where it stands.
struct Panel<'a> {
    x: f64,
    y: f64,
    axis: &'a Axis<'a>,
    /// Goodput at the upper end, in parts of the peak.
    most: f64,
}

/// The plot.
pub(super) fn svg(record: &Record, curves: &[Curve]) -> String {
    let panels = record.servers.len() + record.floods.len();
    let height = HEADING + PANEL_HEIGHT * panels.div_ceil(2) as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"goodput against offered load, with the gate and without\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\">\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\
         <text x=\"16\" y=\"26\" font-size=\"17\" fill=\"#1c2430\">Answered within the clients’ patience, of \
         the server’s peak</text>"
    );
    legend(&mut svg, !curves.is_empty());
    let mut places = (0..panels).map(|index| {
        let (column, line) = (index % 2, index / 2);
        (column as f64 * PANEL_WIDTH, HEADING + line as f64 * PANEL_HEIGHT)
    });
    for server in &record.servers {
        let Some((x, y)) = places.next() else { break };
        let peak = record.peak_per_s(&server.name).unwrap_or(1.0);
        let panel = Panel { x, y, axis: &OFFERED, most: most(server, peak) };
        panel.frame(&mut svg, &format!("{}, everybody honest", server.name));
        panel.curves(&mut svg, curves.iter().filter(|curve| !curve.flood && curve.name == server.name), peak);
        panel.sides(&mut svg, &server.gate_off, &server.gate_on, peak);
    }
    for flood in &record.floods {
        let Some((x, y)) = places.next() else { break };
        let peak = record.peak_per_s(&flood.name).unwrap_or(1.0);
        let panel = Panel { x, y, axis: &FLOODED, most: most(flood, peak) };
        panel.frame(&mut svg, &format!("{}, flooded; clients seen before", flood.name));
        panel.curves(&mut svg, curves.iter().filter(|curve| curve.flood && curve.name == flood.name), peak);
        panel.sides(&mut svg, &flood.gate_off, &flood.gate_on, peak);
    }
    svg.push_str("</svg>\n");
    svg
}

/// A little above the highest point.
fn most<X>(sides: &Sides<X>, peak: f64) -> f64 {
    let points = sides.gate_off.iter().chain(&sides.gate_on);
    points.map(|point| 1.05 * point.goodput_per_s / peak).fold(GOODPUT_LEAST, f64::max)
}

fn legend(svg: &mut String, model: bool) {
    for (x, colour, words) in [(16.0, ON, "gate on"), (116.0, OFF, "gate off")] {
        let _ = write!(
            svg,
            "<path d=\"M{x} 46h24\" stroke=\"{colour}\" stroke-width=\"2.5\"/>\
             <text x=\"{}\" y=\"50\" fill=\"{colour}\">{words}</text>",
            x + 30.0
        );
    }
    if model {
        let _ = write!(
            svg,
            "<path d=\"M220 46h24\" stroke=\"{QUIET}\" stroke-width=\"1.5\" stroke-dasharray=\"5 4\"/>\
             <text x=\"250\" y=\"50\" fill=\"{QUIET}\">model</text>"
        );
    }
}

impl Panel<'_> {
    fn frame(&self, svg: &mut String, title: &str) {
        let (left, right) = (self.x + ROOM.0, self.x + PANEL_WIDTH - ROOM.1);
        let (top, bottom) = (self.y + ROOM.2, self.y + PANEL_HEIGHT - ROOM.3);
        let _ = write!(
            svg,
            "<text x=\"{left}\" y=\"{}\" font-weight=\"600\" fill=\"#1c2430\">{title}</text>",
            self.y + 26.0
        );
        for tenths in (0..(10.0 * self.most) as u32).step_by(2) {
            let value = f64::from(tenths) / 10.0;
            let y = self.y_of(value);
            let _ = write!(
                svg,
                "<path d=\"M{left} {y:.1}H{right}\" stroke=\"{GRID}\"/><text x=\"{}\" y=\"{:.1}\" \
                 text-anchor=\"end\" fill=\"{QUIET}\">{} %</text>",
                left - 6.0,
                y + 4.5,
                10 * tenths
            );
        }
        for (value, words) in self.axis.named {
            let x = self.x_of(*value);
            let _ = write!(
                svg,
                "<path d=\"M{x:.1} {top}V{bottom}\" stroke=\"{GRID}\"/><text x=\"{x:.1}\" y=\"{}\" \
                 text-anchor=\"middle\" fill=\"{QUIET}\">{words}</text>",
                bottom + 17.0
            );
        }
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"{QUIET}\">{}</text>",
            f64::midpoint(left, right),
            bottom + 36.0,
            self.axis.title
        );
    }

    fn sides<X: Place>(&self, svg: &mut String, off: &[Point<X>], on: &[Point<X>], peak: f64) {
        for (points, colour) in [(off, OFF), (on, ON)] {
            let places: Vec<(f64, f64)> = points
                .iter()
                .map(|point| (self.x_of(point.at.x()), self.y_of(point.goodput_per_s / peak)))
                .collect();
            let line: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let _ = write!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\"/>",
                line.join(" ")
            );
            for (x, y) in places {
                let _ = write!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>");
            }
        }
    }

    fn curves<'c>(&self, svg: &mut String, curves: impl Iterator<Item = &'c Curve>, peak: f64) {
        for curve in curves {
            let place =
                |(x, goodput): &(f64, f64)| format!("{:.1},{:.1}", self.x_of(*x), self.y_of(goodput / peak));
            let line: Vec<String> = curve.points.iter().map(place).collect();
            let colour = if curve.gate { ON } else { OFF };
            let _ = write!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" \
                 stroke-dasharray=\"5 4\"/>",
                line.join(" ")
            );
        }
    }

    fn x_of(&self, value: f64) -> f64 {
        let Axis { least, most, .. } = self.axis;
        let share = (value / least).ln() / (most / least).ln();
        self.x + ROOM.0 + share.clamp(0.0, 1.0) * (PANEL_WIDTH - ROOM.0 - ROOM.1)
    }

    fn y_of(&self, goodput: f64) -> f64 {
        let height = PANEL_HEIGHT - ROOM.2 - ROOM.3;
        self.y + PANEL_HEIGHT - ROOM.3 - (goodput / self.most).clamp(0.0, 1.0) * height
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::record::Multiple;
    use crate::gate::clients::Answers;

    #[test]
    fn a_panel_a_server_with_both_sides_and_the_model() {
        let answers = Answers { seconds: 1.0, offered: 50, in_time: 50, ..Answers::default() };
        let mut server = Sides::new("nginx");
        for gate in [false, true] {
            server.side(gate).push(Point::new(Multiple { offered_multiple: 0.5 }, &answers));
        }
        let record = Record { servers: vec![server], ..Record::default() };
        let curve = Curve {
            name: "nginx".to_owned(),
            flood: false,
            gate: true,
            points: vec![(0.5, 50.0), (10.0, 90.0)],
        };
        let with = svg(&record, &[curve]);
        assert_eq!((with.matches("<polyline").count(), with.matches("<circle").count()), (3, 2));
        assert!(with.contains(">model</text>") && with.contains("nginx, everybody honest"));
        assert!(!svg(&record, &[]).contains(">model</text>"));
    }

    #[test]
    fn more_is_higher_and_further_right_and_stays_inside() {
        let panel = Panel { x: 0.0, y: 0.0, axis: &OFFERED, most: GOODPUT_LEAST };
        assert!(panel.y_of(0.9) < panel.y_of(0.5) && panel.x_of(10.0) > panel.x_of(1.0));
        assert!(panel.x_of(10.0) < PANEL_WIDTH && panel.y_of(9.0) >= ROOM.2 && panel.x_of(0.1) >= ROOM.0);
    }

    #[test]
    fn the_axis_ends_above_the_highest_point() {
        let answers = Answers::default();
        let mut sides = Sides::new("nginx");
        assert!((most(&sides, 25.0) - GOODPUT_LEAST).abs() < 1e-9);
        let point = Point::new(Multiple { offered_multiple: 3.0 }, &answers);
        sides.side(true).push(Point { goodput_per_s: 50.0, ..point });
        assert!(most(&sides, 25.0) > 2.0);
    }
}
