//! Certificates: read from PEM whole or not at all, and chosen by name.
//!
//! It must never read a file: text in, pairs out.
mod pair;
mod store;

pub use pair::{CertificatePair, PairFault};
pub use store::CertificateStore;
