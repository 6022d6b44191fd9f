//! Axes: from a value to its place, and where the ticks stand.
//!
//! It must never know pixels: a place is a share of the axis, 0 at its beginning and 1 at its end.

/// How many ticks an axis has at most; more do not fit on a phone.
const TICKS_MAX: usize = 7;

/// How far beyond its values a fitted axis reaches, as a factor, so that no point stands on the frame.
const MARGIN: f64 = 1.15;

/// An axis of a plot.
#[derive(Debug, Clone)]
pub struct Axis {
    /// What it shows, with the unit.
    pub label: String,
    /// How a value is said.
    pub words: fn(f64) -> String,
    /// Values at which a tick stands, and what stands there.
    pub ticks: Vec<(f64, String)>,
    from: f64,
    to: f64,
    is_logarithmic: bool,
}

impl Axis {
    /// From `from` to `to` in equal steps. Its end is moved to the next tick when `to_tick` is set.
    pub fn linear(from: f64, to: f64, to_tick: bool, label: &str, words: fn(f64) -> String) -> Self {
        let to = if to > from { to } else { from + 1.0 };
        let step = round_step((to - from) / (TICKS_MAX - 2) as f64);
        let to = if to_tick { from + ((to - from) / step - 1e-9).ceil() * step } else { to };
        let count = ((to - from) / step + 1e-9).floor() as usize;
        let values = (0..=count).map(|index| from + step * index as f64);
        let ticks = values.map(|value| (value, words(value))).collect();
        Self { label: label.to_owned(), words, ticks, from, to, is_logarithmic: false }
    }

    /// From 0 to a number of things: no tick stands between two whole numbers.
    pub fn counted(highest: f64, label: &str, words: fn(f64) -> String) -> Self {
        Self::linear(0.0, highest.max((TICKS_MAX - 2) as f64), true, label, words)
    }

    /// A logarithmic axis over whole decades that holds every positive value of `values`.
    pub fn logarithmic(values: impl Iterator<Item = f64>, label: &str, words: fn(f64) -> String) -> Self {
        let (smallest, largest) = extremes(values);
        let (low, high) = if largest > 0.0 { (smallest.log10(), largest.log10()) } else { (0.0, 1.0) };
        let low = (low + 1e-9).floor() as i32;
        let high = ((high - 1e-9).ceil() as i32).max(low + 1);
        let decades = (high - low) as usize;
        let every = decades.div_ceil(TICKS_MAX).max(1);
        let ticks = (low..=high)
            .step_by(every)
            .map(|exponent| 10f64.powi(exponent))
            .map(|value| (value, words(value)))
            .collect();
        let (from, to) = (10f64.powi(low), 10f64.powi(high));
        Self { label: label.to_owned(), words, ticks, from, to, is_logarithmic: true }
    }

    /// A logarithmic axis that ends a little beyond the smallest and the largest of `values`.
    pub fn fitted(values: impl Iterator<Item = f64>, label: &str, words: fn(f64) -> String) -> Self {
        let (smallest, largest) = extremes(values);
        let (from, to) = if largest > 0.0 { (smallest / MARGIN, largest * MARGIN) } else { (1.0, 10.0) };
        let fine = (from.log10().floor() as i32..=to.log10().ceil() as i32)
            .flat_map(|exponent| [1.0, 2.0, 5.0].map(|factor| factor * 10f64.powi(exponent)))
            .filter(|value| (from..=to).contains(value));
        let fine: Vec<f64> = fine.collect();
        let every = fine.len().div_ceil(TICKS_MAX).max(1);
        let ticks = fine.into_iter().step_by(every).map(|value| (value, words(value))).collect();
        Self { label: label.to_owned(), words, ticks, from, to, is_logarithmic: true }
    }

    /// An even axis with given ticks.
    pub fn ticked(
        from: f64,
        to: f64,
        ticks: Vec<(f64, String)>,
        label: &str,
        words: fn(f64) -> String,
    ) -> Self {
        let to = if to > from { to } else { from + 1.0 };
        Self { label: label.to_owned(), words, ticks, from, to, is_logarithmic: false }
    }

    /// The place of a value, 0 to 1. What lies outside is put at the edge.
    pub fn place(&self, value: f64) -> f64 {
        let place = if self.is_logarithmic {
            let low = self.from.log10();
            (value.max(self.from).log10() - low) / (self.to.log10() - low)
        } else {
            (value - self.from) / (self.to - self.from)
        };
        place.clamp(0.0, 1.0)
    }
}

/// The smallest and the largest positive value; infinite and 0 when there is none.
fn extremes(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let positive = values.filter(|value| *value > 0.0);
    positive.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), value| (low.min(value), high.max(value)))
}

/// The step of 1, 2 or 5 times a power of ten that is at least `least`.
fn round_step(least: f64) -> f64 {
    let decade = 10f64.powf(least.log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    let factor = factors.into_iter().find(|factor| factor * decade >= least * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * decade
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(value: f64) -> String {
        format!("{value:.4}").trim_end_matches('0').trim_end_matches('.').to_owned()
    }

    fn tick_words(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, words)| words.as_str()).collect()
    }

    #[test]
    fn even_axes_have_round_ticks_and_hold_their_end() {
        for (to, expected) in [
            (10.0, vec!["0", "2", "4", "6", "8", "10"]),
            (11.0, vec!["0", "5", "10", "15"]),
            (0.37, vec!["0", "0.1", "0.2", "0.3", "0.4"]),
            (0.0, vec!["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        ] {
            let axis = Axis::linear(0.0, to, true, "x", words);
            assert_eq!(tick_words(&axis), expected, "{to}");
            assert!(axis.place(to) <= 1.0 && axis.place(0.0) == 0.0);
        }
        let exact = Axis::linear(0.0, 11.0, false, "x", words);
        assert_eq!(exact.place(11.0), 1.0);
        assert_eq!(tick_words(&exact), ["0", "5", "10"]);
    }

    #[test]
    fn things_are_counted_in_whole_numbers() {
        for highest in [0.0, 1.0, 4.0, 5.0] {
            assert_eq!(tick_words(&Axis::counted(highest, "y", words)), ["0", "1", "2", "3", "4", "5"]);
        }
        assert_eq!(tick_words(&Axis::counted(6.0, "y", words)), ["0", "2", "4", "6"]);
    }

    #[test]
    fn logarithmic_axes_hold_whole_decades() {
        let axis = Axis::logarithmic([0.0, 0.3, 45.0].into_iter(), "y", words);
        assert_eq!(tick_words(&axis), ["0.1", "1", "10", "100"]);
        assert!((axis.place(1.0) - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!(axis.place(0.0), 0.0);
        let nothing = Axis::logarithmic([].into_iter(), "y", words);
        assert_eq!(tick_words(&nothing), ["1", "10"]);
        let exact = Axis::logarithmic([1.0, 10.0].into_iter(), "y", words);
        assert_eq!(tick_words(&exact), ["1", "10"]);
        let wide = Axis::logarithmic([1e-6, 1e6].into_iter(), "y", words);
        assert!(wide.ticks.len() <= TICKS_MAX);
        let fitted = Axis::fitted([240.0, 8_000.0].into_iter(), "x", words);
        assert_eq!(tick_words(&fitted), ["500", "1000", "2000", "5000"]);
        assert!(fitted.place(240.0) > 0.0 && fitted.place(8_000.0) < 1.0);
    }
}
