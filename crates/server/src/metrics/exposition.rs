//! The text form of Prometheus, version 0.0.4: families with their help, samples with their labels.
//!
//! It owns the syntax and its escapes. It must never know what is measured.

use std::fmt::{Display, Write as _};

/// Samples by family, in the order they were added.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    text: String,
    family: &'static str,
}

impl Exposition {
    /// Begins a counter: its name ends with `_total`.
    pub(super) fn counter(&mut self, name: &'static str, help: &str) -> &mut Self {
        self.family(name, "counter", help)
    }

    /// Begins a gauge.
    pub(super) fn gauge(&mut self, name: &'static str, help: &str) -> &mut Self {
        self.family(name, "gauge", help)
    }

    /// A sample of the family begun last. Writing to a string does not fail.
    pub(super) fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) -> &mut Self {
        let _ = writeln!(self.text, "{}{} {value}", self.family, Labels(labels));
        self
    }

    /// A whole histogram of seconds. Buckets are counts by bound, without sums, and one more for the rest.
    pub(super) fn histogram(
        &mut self,
        name: &'static str,
        help: &str,
        bounds_ns: &[u64],
        buckets: &[u64],
        sum_ns: u64,
    ) {
        self.family(name, "histogram", help);
        let mut count = 0;
        for (index, bucket) in buckets.iter().enumerate() {
            count += bucket;
            let bound = bounds_ns.get(index).map_or("+Inf".to_owned(), |ns| seconds(*ns).to_string());
            let _ = writeln!(self.text, "{name}_bucket{} {count}", Labels(&[("le", &bound)]));
        }
        let _ = writeln!(self.text, "{name}_sum {}\n{name}_count {count}", seconds(sum_ns));
    }

    /// The whole text.
    pub(super) fn finish(self) -> String {
        self.text
    }

    fn family(&mut self, name: &'static str, kind: &str, help: &str) -> &mut Self {
        self.family = name;
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        self
    }
}

/// Nanoseconds in seconds, the base unit.
pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

struct Labels<'a>(&'a [(&'a str, &'a str)]);

impl Display for Labels<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, (name, value)) in self.0.iter().enumerate() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            write!(formatter, "{}{name}=\"{value}\"", if index == 0 { '{' } else { ',' })?;
        }
        if self.0.is_empty() { Ok(()) } else { formatter.write_char('}') }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_as_described() {
        let mut exposition = Exposition::default();
        exposition.counter("a_total", "All.").sample(&[("x", "q\"\\\n"), ("y", "")], 3).sample(&[], 4);
        exposition.histogram("b_seconds", "Time.", &[1_000_000, 2_000_000_000], &[1, 2, 4], 1_500_000_000);
        assert_eq!(
            exposition.finish(),
            "# HELP a_total All.\n# TYPE a_total counter\na_total{x=\"q\\\"\\\\\\n\",y=\"\"} 3\na_total 4\n\
             # HELP b_seconds Time.\n# TYPE b_seconds histogram\nb_seconds_bucket{le=\"0.001\"} 1\n\
             b_seconds_bucket{le=\"2\"} 3\nb_seconds_bucket{le=\"+Inf\"} 7\nb_seconds_sum 1.5\n\
             b_seconds_count 7\n"
        );
    }
}
