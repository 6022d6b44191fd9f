//! Client certificates: who vouches for them, who has to show one, and who a client is by the one it showed.
//!
//! It must never read a file: text in, policies out. What is verified here is told once, as a
//! [`ClientIdentity`]; no other part of the crate judges a certificate of a client.
mod authority;
mod bound_tickets;
mod identity;
mod lists;
mod path;
mod policies;
mod refusal;
mod verifier;

pub use authority::{ClientAuthority, ClientAuthorityFault};
pub use identity::ClientIdentity;
pub(crate) use identity::Proof;
pub use lists::ListsFault;
pub(crate) use policies::{Asking, PolicyTable};
pub use policies::{CertificatePolicy, SitePolicy};
