//! How starts are spread in time, as people write it.
//!
//! It must never know how many a second there are.

use std::fmt;
use std::sync::Arc;

use crate::Fault;

/// How starts are spread.
#[derive(Debug, Clone, PartialEq)]
pub enum Arrivals {
    /// Evenly.
    Constant,
    /// Each independent of all others: what many people who know nothing of each other do.
    Poisson,
    /// In bursts at every scale: the sum of Pareto on-off sources, see `schedule/self_similar.rs`.
    SelfSimilar {
        /// The Hurst parameter, 0.55 ... 0.95; the higher, the longer bursts last.
        hurst: f64,
        /// How many sources are summed, 8 ... 1024; the more, the smaller the bursts. The measured parameter
        /// is known to be right for [`SOURCES_DEFAULT`].
        sources: u32,
    },
    /// At these times: nanoseconds since the beginning, never decreasing, see
    /// [`parse_trace`](super::parse_trace).
    Trace(Arc<[u64]>),
}

/// Sources when none are said: the rate then varies by a third about its mean, on the scale of a few
/// arrivals.
pub const SOURCES_DEFAULT: u32 = 32;
/// Fewer sources may all be silent for a whole run.
const SOURCES_MIN: u32 = 8;
/// More sources make bursts so small that no run is long enough to see them.
const SOURCES_MAX: u32 = 1024;
/// Below, bursts cannot be told from Poisson arrivals in a run of minutes.
const HURST_MIN: f64 = 0.55;
/// Above, hardly any burst ends during a run.
const HURST_MAX: f64 = 0.95;

const FORMS: &str = "write `constant`, `poisson`, `self-similar:0.8` (the Hurst parameter) or \
                     `self-similar:0.8:64` (and the number of sources)";

/// Reads `constant`, `poisson`, `self-similar:HURST` or `self-similar:HURST:SOURCES`.
///
/// # Errors
/// Anything else; the sentence shows the right form.
pub fn parse_arrivals(text: &str) -> Result<Arrivals, Fault> {
    let mut words = text.trim().split(':').map(str::trim);
    let arrivals = match (words.next(), words.next(), words.next(), words.next()) {
        (Some("constant"), None, ..) => Arrivals::Constant,
        (Some("poisson"), None, ..) => Arrivals::Poisson,
        (Some("self-similar"), Some(hurst), sources, None) => Arrivals::SelfSimilar {
            hurst: parse_word(text, hurst, "a Hurst parameter")?,
            sources: sources
                .map_or(Ok(SOURCES_DEFAULT), |word| parse_word(text, word, "a number of sources"))?,
        },
        _ => return Err(Fault::new(format!("arrivals `{text}` are not known: {FORMS}"))),
    };
    arrivals.check()?;
    Ok(arrivals)
}

fn parse_word<T: std::str::FromStr>(text: &str, word: &str, what: &str) -> Result<T, Fault> {
    word.parse().map_err(|_| Fault::new(format!("arrivals `{text}`: `{word}` is not {what}: {FORMS}")))
}

impl Arrivals {
    pub(super) fn check(&self) -> Result<(), Fault> {
        let fault = match self {
            Self::Constant | Self::Poisson => return Ok(()),
            Self::SelfSimilar { hurst, .. } if !(HURST_MIN..=HURST_MAX).contains(hurst) => {
                format!("a Hurst parameter of {hurst} cannot be offered: {HURST_MIN} to {HURST_MAX} can")
            }
            Self::SelfSimilar { sources, .. } if !(SOURCES_MIN..=SOURCES_MAX).contains(sources) => {
                format!("{sources} sources cannot be offered: {SOURCES_MIN} to {SOURCES_MAX} can")
            }
            Self::Trace(times) if times.is_empty() => "the trace has no arrivals".to_owned(),
            Self::Trace(times) => match times.windows(2).position(|pair| pair[0] > pair[1]) {
                Some(place) => format!("arrival {} of the trace is earlier than the one before", place + 2),
                None => return Ok(()),
            },
            Self::SelfSimilar { .. } => return Ok(()),
        };
        Err(Fault::new(fault))
    }
}

impl fmt::Display for Arrivals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant => formatter.write_str("constant"),
            Self::Poisson => formatter.write_str("poisson"),
            Self::SelfSimilar { hurst, sources: SOURCES_DEFAULT } => {
                write!(formatter, "self-similar:{hurst}")
            }
            Self::SelfSimilar { hurst, sources } => write!(formatter, "self-similar:{hurst}:{sources}"),
            Self::Trace(times) => write!(formatter, "trace of {} arrivals", times.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let self_similar = |hurst, sources| Arrivals::SelfSimilar { hurst, sources };
        let table = [
            ("constant", Arrivals::Constant),
            ("poisson", Arrivals::Poisson),
            ("self-similar:0.8", self_similar(0.8, SOURCES_DEFAULT)),
            ("self-similar:0.55:64", self_similar(0.55, 64)),
        ];
        for (text, arrivals) in table {
            assert_eq!(parse_arrivals(text), Ok(arrivals.clone()), "{text}");
            assert_eq!(arrivals.to_string(), text);
        }
        assert_eq!(parse_arrivals(" self-similar: 0.8 "), Ok(self_similar(0.8, SOURCES_DEFAULT)));
    }

    #[test]
    fn faults_name_the_word_and_the_right_form() {
        let table = [
            ("", "arrivals `` are not known"),
            ("uniform", "`uniform`"),
            ("poisson:2", "`poisson:2`"),
            ("self-similar", "self-similar:0.8"),
            ("self-similar:high", "`high` is not a Hurst parameter"),
            ("self-similar:NaN", "NaN cannot be offered: 0.55 to 0.95"),
            ("self-similar:0.5", "0.55 to 0.95"),
            ("self-similar:0.8:x", "`x` is not a number of sources"),
            ("self-similar:0.8:2", "8 to 1024"),
            ("self-similar:0.8:32:1", "are not known"),
        ];
        for (text, part) in table {
            let fault = parse_arrivals(text).expect_err(text).to_string();
            assert!(fault.contains(part), "{text}: {fault}");
        }
    }

    #[test]
    fn a_trace_must_not_go_back() {
        assert!(Arrivals::Trace([].into()).check().is_err());
        let fault = Arrivals::Trace([1, 5, 4].into()).check().expect_err("goes back").to_string();
        assert!(fault.contains("arrival 3"), "{fault}");
        assert_eq!(Arrivals::Trace([1, 5, 5].into()).check(), Ok(()));
    }
}
