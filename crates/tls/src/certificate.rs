//! Certificates: read from PEM whole or not at all, chosen by name, requested, named for their renewal.
//!
//! It must never read a file: text in, pairs out.
mod chain;
mod pair;
mod renewal;
mod request;
mod store;

pub(crate) use pair::span;
pub use pair::{CertificatePair, PairFault};
pub use request::{CertificateRequest, RequestFault};
pub use store::CertificateStore;
