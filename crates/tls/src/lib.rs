//! TLS 1.3 and 1.2 for servers, and for what they connect to, without input or output: bytes in, bytes out.
//!
//! It owns handshakes (rustls does the work; no other crate sees a type of it), the record layer, tickets,
//! certificates, policies of client certificates and a local authority. It must never open a file or a
//! socket, read a clock, write a secret, or show one: no secret is `Debug`, and all of ours are wiped when
//! they go.
//!
//! A connection is in one of three states, each a type, and moves between them by value:
//!
//! 1. [`Handshake`]: shaking hands. [`Handshake::feed`] takes what was received and gives answers; the
//!    ClientHello is looked at ([`hello::peek`]) before any key is touched. [`Handshake::finish`] makes of it
//! 2. [`Awake`]: an opener and a sealer. [`Awake::open`] opens records in place in the receive buffer,
//!    [`Awake::seal`] makes records of scattered slices, and [`Awake::sleep`] what is kept of it in
//! 3. [`Asleep`]: at most 128 bytes without a pointer, from which [`Awake::wake`] goes on.
//!
//! Who stands between a socket and a session does this: feed what was received to the state there is; send
//! what it appends to the output, whatever the result is; on a fault close; give [`OpenedRecords::plain`] to
//! the session, and keep the bytes behind [`OpenedRecords::taken`], at most [`limits::RECORD_BYTES_MAX`],
//! until more came; seal what the session answers, not more at a time than may be held.
#![forbid(unsafe_code)]

mod alert;
mod asleep;
mod awake;
mod certificate;
mod chain_answer;
mod challenge;
mod client;
mod clock;
mod compression;
mod configs;
mod context;
mod direction;
mod facts;
mod handshake;
pub mod hello;
mod hybrid;
pub mod limits;
mod local_authority;
mod outgoing;
mod pem;
mod secret;
mod suite;
mod ticket;
#[cfg(test)]
mod trial;

pub use alert::{Alert, CertificateFault, Fault};
pub use asleep::Asleep;
pub use awake::{Awake, OpenedRecords};
pub use certificate::{CertificatePair, CertificateRequest, CertificateStore, PairFault, RequestFault};
pub use challenge::ChallengeCertificates;
pub use client::{
    CertificatePolicy, ClientAuthority, ClientAuthorityFault, ClientIdentity, ListsFault, SitePolicy,
};
pub use clock::WallTime;
pub use context::TlsContext;
pub use handshake::{Agreed, Handshake, HandshakeProgress};
pub use hello::ClientHello;
pub use local_authority::{AuthorityFault, IssuedPair, LocalAuthority};
pub use outgoing::{
    OutgoingFault, OutgoingSession, OutgoingSettingsFault, OutgoingTls, OutgoingTrust, is_certificate_name,
};
pub use suite::Suite;
pub use ticket::{TicketFault, TicketKeys, Tickets};
