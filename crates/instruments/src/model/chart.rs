//! Pictures: goodput against offered load, the model as lines, what was measured as points.
//!
//! It must never calculate, but for the ends of axes. What is without a gate has one colour, what is behind
//! it another; what is served, be it too late, is dashed.
use staunch_figures::plot::{Axis, Plot, Series, Shape};
use staunch_figures::words;

use super::curves::Curves;
use super::expected::Expected;
use super::measured::{Mark, Over};

/// What is drawn.
pub(crate) struct Chart<'a> {
    /// Stands above.
    pub(crate) title: String,
    /// What grows.
    pub(crate) over: Over,
    /// Whether the level axis has equal steps.
    pub(crate) is_even: bool,
    /// The model.
    pub(crate) curves: &'a Curves,
    /// What was measured without a gate.
    pub(crate) off: &'a [Mark],
    /// And behind it.
    pub(crate) on: &'a [Mark],
}

/// Whether the axis of what grows has equal steps when nothing is said: a flood may be none at all, which has
/// no place on a logarithmic axis.
pub(crate) fn is_even(over: Over) -> bool {
    over == Over::Flood
}

/// The picture.
pub(crate) fn plot(chart: &Chart<'_>) -> Plot {
    let curves = chart.curves;
    let model = |of: fn(&Expected) -> f64, all: &[Expected]| all.iter().map(|one| Some(of(one))).collect();
    let mut series = vec![
        Series::line("timed_out", "in time", model(|one| one.goodput_per_s, &curves.off)),
        Series::line("in_time", "in time, gate", model(|one| one.goodput_per_s, &curves.on)),
    ];
    if curves.is_long_run {
        // Above the others: where it lies on one of them both are seen.
        series.push(Series::dashed("late", "served", model(|one| one.served_per_s, &curves.off)));
    }
    for (class, label, marks) in
        [("timed_out", "measured", chart.off), ("in_time", "measured, gate", chart.on)]
    {
        if !marks.is_empty() {
            series.push(points(class, label, chart, marks));
        }
    }
    let values = series.iter().flat_map(|one| &one.values).flatten().copied();
    let y = Axis::linear(0.0, values.fold(0.0, f64::max), true, "a second", words::short);
    Plot {
        title: chart.title.clone(),
        note: note(chart),
        x: axis(chart),
        y,
        places: curves.places.clone(),
        series,
    }
}

fn axis(chart: &Chart<'_>) -> Axis {
    let places = &chart.curves.places;
    let label = match (chart.over, chart.is_even) {
        (Over::Requests, true) => "requests offered a second",
        (Over::Requests, false) => "requests offered a second (logarithmic)",
        (Over::Flood, true) => "forged SYN a second",
        (Over::Flood, false) => "forged SYN a second (logarithmic)",
    };
    if chart.is_even {
        let last = places.last().copied().unwrap_or(1.0);
        Axis::linear(0.0, last, false, label, words::short)
    } else {
        Axis::fitted(places.iter().copied(), label, words::short)
    }
}

/// What was measured, at its places among those of the model.
fn points(class: &'static str, label: &str, chart: &Chart<'_>, marks: &[Mark]) -> Series {
    let at = |place: &f64| marks.iter().find(|mark| chart.over.place(&mark.load) == *place);
    let found: Vec<Option<&Mark>> = chart.curves.places.iter().map(at).collect();
    Series {
        class,
        label: label.to_owned(),
        values: found.iter().map(|mark| mark.map(|mark| mark.goodput.median)).collect(),
        shape: Shape::Points(
            found.iter().map(|mark| mark.map(|mark| (mark.goodput.min, mark.goodput.max))).collect(),
        ),
    }
}

fn note(chart: &Chart<'_>) -> String {
    let mut note = "Lines are the model. ".to_owned();
    if chart.curves.is_long_run {
        note.push_str("Dashed: served without a gate, but for clients who may have left. ");
    }
    if !chart.off.is_empty() || !chart.on.is_empty() {
        note.push_str("Points were measured; strokes reach from the smallest to the largest round. ");
    }
    note.push_str(match chart.over {
        Over::Requests => "Across: requests offered a second.",
        Over::Flood => "Across: forged SYN a second beside the requests.",
    });
    note
}
