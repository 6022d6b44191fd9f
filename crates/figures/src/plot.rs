//! Plots as SVG, for pages that work without a script: lines, stacked areas, medians with their ranges.
//!
//! It owns geometry and markup. Colours are classes of the page that holds it, so that one plot serves light
//! and dark. It must never compute a result. All words are escaped here.

mod alone;
mod axis;
mod draw;

pub use alone::alone;
pub use axis::Axis;
pub use draw::figure;

/// A plot: series over one axis of places.
#[derive(Debug, Clone)]
pub struct Plot {
    /// Stands above it.
    pub title: String,
    /// What a reader has to know to read it; may be empty.
    pub note: String,
    /// From left to right.
    pub x: Axis,
    /// From bottom to top.
    pub y: Axis,
    /// The place of each value, growing.
    pub places: Vec<f64>,
    /// What is drawn, the later above the earlier.
    pub series: Vec<Series>,
}

/// A series of a plot.
#[derive(Debug, Clone)]
pub struct Series {
    /// The class of the page's style that gives the colour.
    pub class: &'static str,
    /// Its name in the legend.
    pub label: String,
    /// A value per place; `None` where there is none.
    pub values: Vec<Option<f64>>,
    /// How it is drawn.
    pub shape: Shape,
}

/// How a series is drawn.
#[derive(Debug, Clone)]
pub enum Shape {
    /// A line, broken where there is no value.
    Line,
    /// A dashed line, for what is wanted or allowed, or what often lies on another line.
    Dashed,
    /// An area on top of the areas before it.
    Area,
    /// Points with a line, and at each a stroke from the smallest to the largest.
    Range(Vec<Option<(f64, f64)>>),
    /// Points without a line, for what was measured beside a line of what was expected.
    Points(Vec<Option<(f64, f64)>>),
}

impl Series {
    /// A series that is drawn as a line.
    pub fn line(class: &'static str, label: &str, values: Vec<Option<f64>>) -> Self {
        Self { class, label: label.to_owned(), values, shape: Shape::Line }
    }

    /// An area on top of those before it.
    pub fn area(class: &'static str, label: &str, values: Vec<Option<f64>>) -> Self {
        Self { shape: Shape::Area, ..Self::line(class, label, values) }
    }

    /// A dashed line.
    pub fn dashed(class: &'static str, label: &str, values: Vec<Option<f64>>) -> Self {
        Self { shape: Shape::Dashed, ..Self::line(class, label, values) }
    }

    /// Whether it has a value other than 0.
    pub fn is_there(&self) -> bool {
        self.values.iter().flatten().any(|value| *value > 0.0)
    }
}
