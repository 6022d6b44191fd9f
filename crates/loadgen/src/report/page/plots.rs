//! The plots of a run: what became of requests, how long they took, how far the generator was behind.
//!
//! It decides what is drawn over which axis. It must never leave out an end of requests that happened.
use staunch_figures::plot::{Axis, Plot, Series, figure};
use staunch_figures::words;

use super::bins::Bins;
use crate::report::blob;
use crate::report::document::Document;
use crate::report::fields::{ENDS, is_error};

/// Points of a curve by percentile.
const CURVE_POINTS: usize = 120;

/// Requests by their end, stacked, below what was offered.
pub(super) fn ends(document: &Document) -> String {
    let bins = Bins::new(&document.moments);
    let rate = |name: &str| bins.rate(document.moments.count(name));
    let mut series: Vec<Series> = ENDS
        .iter()
        .map(|end| Series::area(end.name, end.words, rate(end.name)))
        .filter(|series| series.is_there() || series.class == "in_time")
        .collect();
    let stacked = |index: usize| series.iter().filter_map(|one| one.values[index]).sum::<f64>();
    let highest = (0..bins.places.len()).map(stacked).fold(0.0, f64::max);
    let offered = rate("offered");
    let highest = offered.iter().flatten().copied().fold(highest, f64::max);
    series.push(Series::line("offered", "offered", offered));
    figure(
        "ends",
        &Plot {
            title: "Requests by their end".to_owned(),
            note: "A request is counted when it ends, so what waits shows as a gap below what was offered."
                .to_owned(),
            x: seconds(&bins),
            y: Axis::linear(0.0, highest, true, "requests a second", words::short),
            places: bins.places.clone(),
            series,
        },
    )
}

/// Errors alone, which a stack of all requests would hide. Nothing when there was none.
pub(super) fn errors(document: &Document) -> String {
    let bins = Bins::new(&document.moments);
    let series: Vec<Series> = ENDS
        .iter()
        .filter(|end| is_error(end) || end.name == "late")
        .map(|end| Series::line(end.name, end.words, bins.rate(document.moments.count(end.name))))
        .filter(Series::is_there)
        .collect();
    let values = series.iter().flat_map(|one| one.values.iter().flatten().copied());
    let y = Axis::linear(0.0, values.fold(0.0, f64::max), true, "requests a second", words::short);
    figure(
        "errors",
        &Plot {
            title: "What did not end well, or late".to_owned(),
            note: String::new(),
            x: seconds(&bins),
            y,
            places: bins.places.clone(),
            series,
        },
    )
}

/// Percentiles of latency over time.
pub(super) fn latency(document: &Document) -> String {
    let bins = Bins::new(&document.moments);
    let columns = &document.moments.latency_ms;
    let series = vec![
        Series::line("p50", "p50", bins.largest(&columns.p50)),
        Series::line("p90", "p90", bins.largest(&columns.p90)),
        Series::line("p99", "p99", bins.largest(&columns.p99)),
        Series::line("max", "longest", bins.largest(&columns.max)),
    ];
    times("latency", "Latency of right answers, from the intended start", bins.note(), &bins, series)
}

/// How far the generator was behind its own schedule.
pub(super) fn drift(document: &Document) -> String {
    let bins = Bins::new(&document.moments);
    let column: Vec<Option<f64>> =
        document.moments.drift_max_ms.iter().map(|ms| (*ms > 0.0).then_some(*ms)).collect();
    let series = vec![Series::line("drift", "most behind its schedule", bins.largest(&column))];
    times("drift", "Drift of the generator", bins.note(), &bins, series)
}

fn times(name: &str, title: &str, note: String, bins: &Bins, series: Vec<Series>) -> String {
    if !series.iter().any(Series::is_there) {
        return String::new();
    }
    let y = Axis::logarithmic(values(&series), "time, logarithmic", words::short_ms);
    let (x, places) = (seconds(bins), bins.places.clone());
    figure(name, &Plot { title: title.to_owned(), note, x, y, places, series })
}

/// Connections and requests under way.
pub(super) fn connections(document: &Document) -> String {
    let bins = Bins::new(&document.moments);
    let gauge = |column: &[u64]| {
        let column: Vec<Option<f64>> = column.iter().map(|value| Some(*value as f64)).collect();
        bins.largest(&column)
    };
    let series = vec![
        Series::line("connections", "connections open", gauge(&document.moments.connections)),
        Series::line("in_flight", "requests under way", gauge(&document.moments.in_flight)),
    ];
    let highest = values(&series).fold(0.0, f64::max);
    figure(
        "connections",
        &Plot {
            title: "Held by the generator".to_owned(),
            note: bins.note(),
            x: seconds(&bins),
            y: Axis::counted(highest, "number", words::short),
            places: bins.places.clone(),
            series,
        },
    )
}

/// Times by percentile, the way HdrHistogram plots them: each decade of rarity has the same width. Nothing
/// when no time was measured.
pub(super) fn percentiles(document: &Document) -> Option<Plot> {
    let blobs = &document.main.histograms;
    let kinds = [
        ("latency", "latency", &blobs.complete),
        ("first_byte", "first byte", &blobs.first_byte),
        ("connect", "connect", &blobs.connect),
        ("handshake", "TLS handshake", &blobs.handshake),
        ("drift", "drift", &blobs.drift),
    ];
    // A closed loop has no schedule that it could be behind.
    let is_scheduled = document.main.drift_ms.max.is_some_and(|ms| ms > 0.0);
    // What cannot be read is left out of a picture; whoever compares documents is told.
    let histograms: Vec<(&str, &str, blob::Library)> = kinds
        .into_iter()
        .filter(|(class, _, _)| *class != "drift" || is_scheduled)
        .filter_map(|(class, label, text)| Some((class, label, blob::decode(label, text).ok()??)))
        .collect();
    let largest = histograms.iter().map(|(_, _, histogram)| histogram.len()).max().unwrap_or(0);
    if largest == 0 {
        return None;
    }
    let end = (largest as f64).log10().max(1.0);
    let step = end / CURVE_POINTS as f64;
    let places: Vec<f64> = (0..=CURVE_POINTS).map(|point| step * point as f64).collect();
    let curve = |histogram: &blob::Library| {
        // Beyond one in so many as were counted, nothing is known.
        let known = (histogram.len() as f64).log10() + 1e-9;
        // A curve ends with the longest of all: one among so many is above every percentile before it.
        let share = |place: f64| if place + step > known { 1.0 } else { 1.0 - 10f64.powf(-place) };
        let value = |place: f64| histogram.value_at_quantile(share(place)) as f64 / 1e6;
        places.iter().map(|place| (*place <= known).then(|| value(*place))).collect()
    };
    let series: Vec<Series> = histograms
        .iter()
        .map(|(class, label, histogram)| match *class {
            // Of short answers it lies on the latency, and both are to be seen.
            "first_byte" => Series::dashed(class, label, curve(histogram)),
            _ => Series::line(class, label, curve(histogram)),
        })
        .collect();
    let y = Axis::logarithmic(values(&series), "time, logarithmic", words::short_ms);
    let title = "Times by percentile, all lanes together".to_owned();
    let x = Axis::ticked(0.0, end, percentile_ticks(end), "percentile", percentile_words);
    Some(Plot { title, note: String::new(), x, y, places, series })
}

fn percentile_ticks(end: f64) -> Vec<(f64, String)> {
    // A tick too near to the end would stand on the one before it.
    let decades = (1..=end.floor() as i32).map(f64::from).filter(|place| *place == 1.0 || end - place > 0.3);
    [2f64.log10()].into_iter().chain(decades).map(|place| (place, percentile_words(place))).collect()
}

/// `99.9 %` for three nines, whose place is 3.
fn percentile_words(place: f64) -> String {
    let percent = 100.0 * (1.0 - 10f64.powf(-place));
    let decimals = (place.ceil() as usize).saturating_sub(2);
    format!("{percent:.decimals$} %")
}

fn values(series: &[Series]) -> impl Iterator<Item = f64> {
    series.iter().flat_map(|one| one.values.iter().flatten().copied())
}

/// The axis of time, the same for every plot of a run.
pub(super) fn seconds(bins: &Bins) -> Axis {
    Axis::linear(0.0, bins.end(), false, "seconds since the run began", words::seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_named_by_their_nines() {
        let words: Vec<String> = percentile_ticks(4.5).into_iter().map(|(_, words)| words).collect();
        assert_eq!(words, ["50 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
        assert_eq!(percentile_ticks(5.1).len(), words.len());
        assert_eq!(percentile_words(0.0), "0 %");
    }
}
