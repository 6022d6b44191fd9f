//! What a server does when more is asked of it than it can do: formulas, a simulator, a fit.
//!
//! It owns the model: reception (S1) takes the processor from the application (S2), interrupts come in
//! batches, S2's queue has K places, clients have patience T, a gate lets part of the load in. Equations (1)
//! to (7) are those of Yao and Ju, "Study on the Performance of Overloaded Servers", Journal of Software
//! 14(10), 2003.
//! It must never read a clock, a file or the host: rates and seconds in, rates and seconds out.
//!
//! Rates are per second, times are seconds, numbers count customers, unless a name says otherwise. Places
//! always count everybody in the system, the one being served included (as the paper's l1 and l2).
//!
//! Order: [`fit::fit`] or a [`Host`] by hand, then [`Host::predict`] or [`Host::predict_run`];
//! [`simulate::run`] plays the same host event by event.
#![forbid(unsafe_code)]

pub mod batching;
mod episode;
pub mod fit;
mod flow;
pub mod host;
mod limits;
pub mod md1k;
pub mod mm1;
pub mod mm1k;
pub mod patience;
mod predict;
mod prediction;
pub mod preemptive;
pub mod simulate;
mod tries;

pub use episode::Run;
pub use host::{Admission, Fault, Gate, Host, OfferedLoad};
pub use patience::Service;
pub use prediction::{Prediction, Response};
