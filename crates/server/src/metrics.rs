//! What a running server knows about itself: one [`Snapshot`], and the same as text for Prometheus.
//!
//! It reads what workers count and content threads hold. It must never take a lock that a request may want,
//! nor give a label whose values a peer can choose.

mod dictionary;
mod exposition;
mod fabric;
mod families;
mod process;
mod proxy;
mod snapshot;
mod sources;

pub use fabric::{FabricFigures, FabricLoad, FabricNodeFigures};
pub use families::text;
pub use process::ProcessFigures;
pub use proxy::proxy;
pub use snapshot::{
    ByReason, ErrorLogFigures, HistogramFigures, LogFigures, Readiness, ReloadFigures, SiteFigures, Snapshot,
    TlsFigures, WorkerFigures,
};
pub use sources::{ContentFigures, Sources};

#[cfg(test)]
mod tests;
