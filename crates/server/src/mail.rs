//! Letters of other threads to workers.
//!
//! A letter says nothing of its recipient: the exchange it is sent to has an owner, and a letter to a worker
//! names one (`owner`).

use std::sync::Arc;

use crate::live::mail::LiveMail;
use crate::proxy::ProxyMail;
use crate::shared::{Letter, SiteShared};

/// A letter of another thread to a worker, or to an exchange of it that waits.
pub struct Mail(pub(crate) Told);

/// The content of a letter, by the thread that writes it.
pub(crate) enum Told {
    /// By the crew, of this site.
    Site(Arc<SiteShared>, Letter),
    /// By a thread of live data.
    Live(LiveMail),
    /// By the proxy of another worker, or of this one.
    Proxy(ProxyMail),
}

impl Mail {
    /// Told by the crew.
    pub(crate) fn of_site(site: Arc<SiteShared>, letter: Letter) -> Self {
        Self(Told::Site(site, letter))
    }

    /// Told by the proxy of a worker.
    pub(crate) fn of_proxy(mail: ProxyMail) -> Self {
        Self(Told::Proxy(mail))
    }

    /// Told by a thread of live data.
    pub(crate) fn of_live(mail: LiveMail) -> Self {
        Self(Told::Live(mail))
    }
}
