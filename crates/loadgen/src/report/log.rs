//! Histograms for other programs: the HdrHistogram interval log, version 2, and the percentile text
//! (`.hgrm`).
//!
//! It owns tags and units: the log holds nanoseconds, the text milliseconds. It must never write a histogram
//! that the standard tools cannot read.

use std::fmt::Write;
use std::time::Duration;

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use crate::histogram::Histogram;
use crate::outcome::RunOutcome;

/// Nanoseconds in the unit of the figures for people.
const NS_A_MS: f64 = 1e6;
/// Ticks of the percentile text in each half of what is left to 100 %, as HdrHistogram's own tools have it.
const TICKS_A_HALF: u32 = 5;

/// The run's histograms as an HdrHistogram log. The one without a tag is the latency of all lanes; `connect`,
/// `handshake`, `first_byte` and `drift` are tagged so, and each lane's latency with the lane's name. Values
/// are nanoseconds.
pub fn hdr_log(outcome: &RunOutcome) -> String {
    let mut bytes = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment(&format!("staunch load {}", env!("CARGO_PKG_VERSION")))
        .add_comment(&one_line(&outcome.command))
        .add_comment("values are nanoseconds; no tag: from the intended start to the last byte, all lanes")
        .with_start_time(outcome.began)
        .with_base_time(outcome.began)
        .with_max_value_divisor(NS_A_MS)
        .begin_log_with(&mut bytes, &mut serializer)
        .expect("memory takes every byte");
    for (tag, histogram) in tagged(outcome) {
        log.write_histogram(
            histogram.buckets(),
            Duration::ZERO,
            outcome.lasted(),
            tag.as_deref().and_then(Tag::new),
        )
        .expect("memory takes every byte");
    }
    drop(log);
    String::from_utf8(bytes).expect("a log is text")
}

/// Latency of all lanes by percentile in milliseconds, as HdrHistogram's plotter reads it (`.hgrm`).
pub fn hgrm(outcome: &RunOutcome) -> String {
    let mut text = String::from("       Value     Percentile TotalCount 1/(1-Percentile)\n\n");
    let histogram = outcome.times().complete;
    if histogram.count() == 0 {
        return text;
    }
    let library = histogram.buckets();
    let mut total = 0;
    for step in library.iter_quantiles(TICKS_A_HALF) {
        total += step.count_since_last_iteration();
        let value = step.value_iterated_to() as f64 / NS_A_MS;
        let quantile = step.quantile_iterated_to();
        let _ = write!(text, "{value:12.3} {quantile:2.12} {total:10}");
        if quantile < 1.0 {
            let _ = write!(text, " {:14.2}", 1.0 / (1.0 - quantile));
        }
        text.push('\n');
    }
    let (mean, deviation) = (library.mean() / NS_A_MS, library.stdev() / NS_A_MS);
    let (max, count) = (histogram.max() as f64 / NS_A_MS, library.len());
    let _ = writeln!(text, "#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]");
    let _ = writeln!(text, "#[Max     = {max:12.3}, Total count    = {count:12}]");
    let _ = writeln!(
        text,
        "#[Buckets = {:12}, SubBuckets     = {:12}]",
        library.buckets(),
        sub_buckets(library.sigfig())
    );
    text
}

/// How many parts each doubling is counted in: enough for values of so many digits to be told apart.
fn sub_buckets(digits: u8) -> u32 {
    (2 * 10u32.pow(u32::from(digits))).next_power_of_two()
}

/// Every histogram in which something was recorded, with its tag.
fn tagged(outcome: &RunOutcome) -> Vec<(Option<String>, Histogram)> {
    let times = outcome.times();
    let all = [
        (None, times.complete),
        (Some("connect"), times.connect),
        (Some("handshake"), times.handshake),
        (Some("first_byte"), times.first_byte),
        (Some("drift"), times.drift),
    ];
    let all = all.into_iter().map(|(tag, histogram)| (tag.map(str::to_owned), histogram));
    let lanes = outcome.lanes.iter().filter(|_| outcome.lanes.len() > 1);
    let lanes = lanes.map(|lane| (Some(tag_of(&lane.name)), lane.times.complete.clone()));
    all.chain(lanes).filter(|(_, histogram)| histogram.count() > 0).collect()
}

/// A tag must not hold what separates columns and lines.
fn tag_of(name: &str) -> String {
    let separates = |one: char| one == ',' || one.is_whitespace() || one.is_control();
    format!("lane.{}", name.replace(separates, "_"))
}

fn one_line(words: &str) -> String {
    words.replace(|one: char| one.is_control(), " ")
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;
    use crate::report::{blob, made_up};

    #[test]
    fn the_crate_reads_the_log_back() {
        let outcome = made_up::overload();
        let log = hdr_log(&outcome);
        let mut found = Vec::new();
        for entry in IntervalLogIterator::new(log.as_bytes()) {
            if let LogEntry::Interval(interval) = entry.unwrap() {
                let library = blob::decode("log", interval.encoded_histogram()).unwrap().unwrap();
                found.push((interval.tag().map(|tag| tag.as_str().to_owned()), library.len()));
                assert_eq!(interval.duration(), outcome.lasted());
            }
        }
        let times = outcome.times();
        assert_eq!(found[0], (None, times.complete.count()));
        assert_eq!(found[1], (Some("connect".to_owned()), times.connect.count()));
        assert_eq!(found.len(), 4 + outcome.lanes.len());
        assert!(log.contains("#[StartTime: ") && log.contains("#[BaseTime: "));
    }

    #[test]
    fn a_tag_holds_no_separator_and_a_command_no_line() {
        assert_eq!(tag_of("a,b c\n"), "lane.a_b_c_");
        let mut outcome = made_up::overload();
        outcome.command = "one\n1,2,3,x".to_owned();
        assert!(hdr_log(&outcome).contains("#one 1,2,3,x\n"));
    }

    #[test]
    fn the_percentile_text_ends_at_the_count() {
        let outcome = made_up::overload();
        let text = hgrm(&outcome);
        let count = outcome.times().complete.count();
        let last = text.lines().rfind(|line| !line.starts_with('#')).unwrap();
        let columns: Vec<&str> = last.split_whitespace().collect();
        assert_eq!(columns[1], "1.000000000000");
        assert_eq!(columns[2], count.to_string());
        assert!(text.contains(&format!("Total count    = {count:12}]")));
        assert!(text.ends_with("SubBuckets     =         2048]\n"), "{text}");
        let mut nothing = made_up::overload();
        nothing.lanes.clear();
        assert_eq!(hgrm(&nothing).lines().count(), 2);
    }
}
