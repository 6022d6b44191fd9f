//! Which clients are served, by the certificates that they showed.
//!
//! It must never look at a certificate that another site's authorities have verified.

use staunch_engine::ClientIdentity;

use crate::config::{ClientDemand, DemandedIdentity, KnownIdentity};

impl ClientDemand {
    /// The client of a connection, if its certificate was verified for this site.
    pub(crate) fn known<'a>(&self, identity: Option<&'a ClientIdentity>) -> Option<&'a ClientIdentity> {
        identity.filter(|identity| identity.policy == self.policy)
    }

    /// Whether a client is served whose certificate, if it showed one, is this. One that was verified for
    /// another site says nothing here, and no rule must take it for one that does.
    pub(crate) fn admits(&self, identity: Option<&ClientIdentity>) -> bool {
        match self.known(identity) {
            Some(_) => true,
            None => identity.is_none() && !self.is_required,
        }
    }
}

impl DemandedIdentity {
    /// Whether this client may have what the rule is about.
    pub(crate) fn admits(&self, identity: Option<&ClientIdentity>) -> bool {
        let is = |identity: &ClientIdentity, known: &KnownIdentity| match known {
            KnownIdentity::Subject(subject) => *identity.subject == **subject,
            KnownIdentity::Fingerprint(fingerprint) => identity.fingerprint == *fingerprint,
        };
        identity.is_some_and(|identity| match self {
            Self::Any => true,
            Self::OneOf(all) => all.iter().any(|known| is(identity, known)),
        })
    }
}
