//! All parts of a server, in one list: the only place that names each of them.
//!
//! Parts are opened, started, lent, drained and ended in the order of the list: live data stops numbering
//! before the fabric tells what was published last. The list must never do a part's work.

mod acme;
mod certificates;
mod fabric;
mod gate;
mod live;
mod proxy;
mod sites;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use staunch_config::Config;
use staunch_program::Failure;
use staunch_server::SitesShared;
use staunch_server::metrics::ContentFigures;

use self::acme::AcmePart;
use self::certificates::CertificatesPart;
use self::fabric::FabricPart;
use self::gate::GatePart;
use self::live::LivePart;
use self::proxy::ProxyPart;
use crate::descriptors::Descriptors;
use crate::part::{BeforeBinding, Commit, Leaving, NewSettings, Part, Refusal, Surroundings};

/// The parts of one server. What they have opened is closed when this is dropped.
pub(crate) struct Parts {
    list: Vec<Arc<dyn Part>>,
    /// Handles of the parts that handshakes and requests need.
    pub(crate) served: Served,
}

/// Parts that the data path knows by their types.
#[derive(Clone)]
pub(crate) struct Served {
    pub(crate) certificates: Arc<CertificatesPart>,
    pub(crate) sites: Arc<SitesShared>,
    pub(crate) live: Option<Arc<LivePart>>,
    pub(crate) proxy: Arc<ProxyPart>,
}

impl Parts {
    /// Opens every part that the settings ask for, with what the process before has left.
    ///
    /// # Errors
    /// Whatever keeps one from being opened. Those before it are closed.
    pub(crate) fn open(opening: &BeforeBinding<'_>, left: &mut Descriptors) -> Result<Self, Failure> {
        // The agent makes the folder that certificates are watched in.
        let agent = AcmePart::open_agent(opening, left)?;
        let certificates = Arc::new(CertificatesPart::open(opening, left)?);
        let acme = AcmePart::new(agent, &certificates.certificates);
        let sites = sites::open(opening)?;
        let (fabric, follower) = FabricPart::open(opening, left)?.unzip();
        let live = LivePart::open(opening, left, follower).map(Arc::new);
        let fabric = fabric.map(|open| FabricPart::new(open, live.clone()));
        let proxy = Arc::new(ProxyPart::open(opening)?);
        let gate = GatePart::open(opening);
        let mut list: Vec<Arc<dyn Part>> = vec![Arc::clone(&certificates) as _, Arc::new(acme)];
        list.push(Arc::clone(&proxy) as _);
        list.push(Arc::clone(&sites) as _);
        list.extend(live.clone().map(|live| live as _));
        list.extend(fabric.map(|fabric| Arc::new(fabric) as _));
        list.extend(gate.map(|gate| Arc::new(gate) as _));
        Ok(Self { list, served: Served { certificates, sites, live, proxy } })
    }

    /// See [`Part::bound`].
    ///
    /// # Errors
    /// That of the first part with one.
    pub(crate) fn bound(&self, around: &Surroundings<'_>) -> Result<(), Failure> {
        self.list.iter().try_for_each(|part| part.bound(around))
    }

    /// See [`Part::describe`].
    pub(crate) fn describe(&self, config: &Config) -> Vec<String> {
        self.list.iter().flat_map(|part| part.describe(config)).collect()
    }

    /// See [`Part::start`].
    ///
    /// # Errors
    /// That of the first part with one; those behind it are not started.
    pub(crate) fn start(&self, around: &Surroundings<'_>) -> Result<Vec<String>, Failure> {
        let started = self.list.iter().map(|part| part.start(around)).collect::<Result<Vec<_>, _>>()?;
        Ok(started.concat())
    }

    /// See [`Part::prepare`]: what is given commits all of them.
    ///
    /// # Errors
    /// That of the first part with one. Nothing has changed.
    pub(crate) fn prepare<'a>(&'a self, new: &'a NewSettings<'_>) -> Result<Commit<'a>, Refusal> {
        let prepared = self.list.iter().map(|part| part.prepare(new)).collect::<Result<Vec<_>, _>>()?;
        Ok(Box::new(|| prepared.into_iter().flat_map(|commit| commit()).collect()))
    }

    /// See [`Part::lend`].
    ///
    /// # Errors
    /// That of the first part with one; then [`Self::take_back`] is due.
    pub(crate) fn lend(&self) -> Result<Descriptors, String> {
        let mut lent = Descriptors::default();
        self.list.iter().try_for_each(|part| part.lend(&mut lent)).map(|()| lent)
    }

    /// See [`Part::descriptors`].
    pub(crate) fn descriptors(&self, shared: &mut Descriptors) {
        self.list.iter().for_each(|part| part.descriptors(shared));
    }

    /// See [`Part::take_back`].
    pub(crate) fn take_back(&self) {
        self.list.iter().for_each(|part| part.take_back());
    }

    /// See [`Part::take_over`].
    pub(crate) fn take_over(&self) {
        self.list.iter().for_each(|part| part.take_over());
    }

    /// See [`Part::drain`].
    pub(crate) fn drain(&self, leaving: Leaving) {
        self.list.iter().for_each(|part| part.drain(leaving));
    }

    /// See [`Part::end`].
    pub(crate) fn end(&self) {
        self.list.iter().for_each(|part| part.end());
    }

    /// See [`Part::figures`].
    pub(crate) fn figures(&self) -> ContentFigures {
        let mut figures = ContentFigures::default();
        self.list.iter().for_each(|part| part.figures(&mut figures));
        figures
    }

    /// See [`Part::metrics`].
    pub(crate) fn metrics(&self) -> String {
        let mut text = String::new();
        self.list.iter().for_each(|part| part.metrics(&mut text));
        text
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.end();
    }
}
