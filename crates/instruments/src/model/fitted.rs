//! A fit as a file: what `staunch model fit --json` writes and `--fit` reads.
//!
//! It owns the names and units of the file. It must never hold a figure the text does not.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use staunch_loadgen::report::layout;
use staunch_queueing::batching::Reception;
use staunch_queueing::{Host, Service};

use super::expected::Expected;
use super::service::{service, service_word};

/// The version of the file's form. It grows when a name changes its meaning.
const FORMAT: u32 = 1;

/// The whole file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FitDocument {
    /// [`FORMAT`].
    pub(crate) format: u32,
    /// Version of the program that wrote it.
    pub(crate) version: String,
    /// The file that was fitted.
    pub(crate) source: String,
    /// A fit per curve.
    pub(crate) fits: Vec<CurveFit>,
}

/// A curve, and the host that explains it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CurveFit {
    /// The server.
    pub(crate) name: String,
    /// What grows from point to point: `requests` or `flood`.
    pub(crate) over: String,
    /// The host as it was fitted.
    pub(crate) host: HostDocument,
    /// How long each load was offered, if that was taken into account.
    pub(crate) sending_s: Option<f64>,
    /// Which of mu1, c0, mu2, K, T and phi were given and not fitted.
    pub(crate) given: Vec<String>,
    /// Which of them the points do not tell.
    pub(crate) undetermined: Vec<String>,
    /// `-mu2/mu1`.
    pub(crate) slope: f64,
    /// Root of the mean square of the relative errors of the fitted points.
    pub(crate) error_fitted: f64,
    /// The error of the points that were predicted; not there if all were fitted.
    pub(crate) error_predicted: Option<f64>,
    /// The largest relative error of a predicted point.
    pub(crate) error_predicted_max: Option<f64>,
    /// Without a gate.
    pub(crate) points: Vec<FitPoint>,
    /// Behind a gate: the host of the fit with a gate before it.
    pub(crate) gated: Vec<FitPoint>,
}

/// A host in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct HostDocument {
    /// SYN segments a second that reception alone could take, in large batches where there is a window.
    pub(crate) mu1_per_s: f64,
    /// c0, seconds for each interrupt.
    #[serde(default)]
    pub(crate) interrupt_s: f64,
    /// Seconds between a first packet and its interrupt.
    #[serde(default)]
    pub(crate) window_s: f64,
    /// phi: how much of c1 is left for a SYN that finds no place.
    #[serde(default = "all")]
    pub(crate) full_share: f64,
    /// Requests a second that the application alone could answer.
    pub(crate) mu2_per_s: f64,
    /// K.
    pub(crate) places: u32,
    /// T; `None` is for ever.
    pub(crate) patience_s: Option<f64>,
    /// Seconds until a client tries again whose handshake found no place; 0 for never.
    #[serde(default)]
    pub(crate) retry_s: f64,
    /// `deterministic` or `exponential`.
    pub(crate) service: String,
}

/// A point, measured and predicted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FitPoint {
    /// Requests offered a second.
    pub(crate) requests_per_s: f64,
    /// Forged SYN a second beside them.
    pub(crate) syn_per_s: f64,
    /// Whether the fit saw it.
    pub(crate) fitted: bool,
    /// Answers in time a second.
    pub(crate) goodput_per_s: f64,
    /// The smallest round.
    pub(crate) goodput_min_per_s: f64,
    /// The largest round.
    pub(crate) goodput_max_per_s: f64,
    /// Half of the answers came within this.
    pub(crate) p50_ms: Option<f64>,
    /// All but one of a hundred.
    pub(crate) p99_ms: Option<f64>,
    /// What the model says.
    pub(crate) predicted: Expected,
    /// Predicted less measured goodput, over the measured (but over no less than a tenth of the largest).
    pub(crate) error: f64,
}

impl FitDocument {
    /// Of the curves of a file.
    pub(crate) fn new(source: &str, fits: Vec<CurveFit>) -> Self {
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            source: source.to_owned(),
            fits,
        }
    }

    /// As JSON, with a line break at its end.
    pub(crate) fn write(&self) -> String {
        layout::write(self)
    }
}

impl HostDocument {
    /// Of a host.
    pub(crate) fn of(host: &Host) -> Self {
        Self {
            mu1_per_s: host.reception.packet_s.recip(),
            interrupt_s: host.reception.interrupt_s,
            window_s: host.reception.window_s,
            full_share: host.reception.full_share,
            mu2_per_s: host.mu2_per_s,
            places: host.places,
            patience_s: host.patience_s.is_finite().then_some(host.patience_s),
            retry_s: host.retry_s,
            service: service_word(host.service).to_owned(),
        }
    }

    /// The host as it was fitted.
    ///
    /// # Errors
    /// The kind of service is unknown.
    pub(crate) fn host(&self) -> Result<Host, String> {
        let service: Service =
            service(&self.service).map_err(|words| format!("`service` is {:?}: {words}", self.service))?;
        Ok(Host {
            reception: Reception {
                packet_s: self.mu1_per_s.recip(),
                interrupt_s: self.interrupt_s,
                window_s: self.window_s,
                full_share: self.full_share,
            },
            mu2_per_s: self.mu2_per_s,
            places: self.places,
            patience_s: self.patience_s.unwrap_or(f64::INFINITY),
            retry_s: self.retry_s,
            service,
            gate: None,
        })
    }
}

/// What is meant by a file that does not say.
fn all() -> f64 {
    1.0
}

/// The host of a file: that of `server`, or of the only server.
///
/// # Errors
/// The file cannot be read or is of another form, there is no such server, or there are several.
pub(crate) fn host(path: &Path, server: Option<&str>) -> Result<Host, String> {
    let name = path.display();
    let text = fs::read_to_string(path).map_err(|error| format!("cannot read {name}: {error}"))?;
    let document: FitDocument = serde_json::from_str(&text)
        .map_err(|error| format!("{name}: was not written by `staunch model fit --json`: {error}"))?;
    if document.format != FORMAT {
        return Err(format!("{name}: has `format` {}, not {FORMAT}", document.format));
    }
    let wanted = |fit: &&CurveFit| server.is_none_or(|server| fit.name == server);
    let mut found = document.fits.iter().filter(wanted);
    let names = || document.fits.iter().map(|fit| fit.name.as_str()).collect::<Vec<&str>>().join(", ");
    let Some(first) = found.next() else {
        return Err(format!("{name}: has no server {}; it has {}", server.unwrap_or_default(), names()));
    };
    if found.any(|other| other.name != first.name) {
        return Err(format!("{name}: --server says which of {} is meant", names()));
    }
    first.host.host().map_err(|words| format!("{name}: {words}"))
}
