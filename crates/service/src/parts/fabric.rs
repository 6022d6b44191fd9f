//! The fabric as a part: the other servers of one LAN.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use staunch_program::Failure;
use staunch_server::metrics::ContentFigures;

use super::live::{Follower, LivePart};
use crate::descriptors::Descriptors;
use crate::fabric::{OpenFabric, ServedFabric};
use crate::part::{BeforeBinding, Leaving, Part, Surroundings};

/// The name under which the line for the socket passes to the next process.
const FABRIC: &str = "fabric";

/// The fabric: open until it is started, then at work.
pub(super) struct FabricPart {
    open: Mutex<Option<OpenFabric>>,
    live: Option<Arc<LivePart>>,
    served: OnceLock<ServedFabric>,
}

impl FabricPart {
    /// Opens the socket, if a fabric is asked for. Gives with it what follows live data for the fabric.
    ///
    /// # Errors
    /// Those of [`OpenFabric::open`], and of [`OpenFabric::waker`].
    pub(super) fn open(
        opening: &BeforeBinding<'_>,
        left: &mut Descriptors,
    ) -> Result<Option<(OpenFabric, Follower)>, Failure> {
        let handed = left.take(FABRIC);
        let open = OpenFabric::open(opening.config, handed, opening.takes_over, opening.notice)?;
        let follow = |open: OpenFabric| {
            let follower = Follower { node: open.node(), wake: open.waker()? };
            Ok((open, follower))
        };
        open.map(follow).transpose()
    }

    pub(super) fn new(open: OpenFabric, live: Option<Arc<LivePart>>) -> Self {
        Self { open: Mutex::new(Some(open)), live, served: OnceLock::new() }
    }
}

impl Part for FabricPart {
    fn start(&self, around: &Surroundings<'_>) -> Result<Vec<String>, Failure> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        let live = self.live.as_ref().and_then(|live| live.sites()).cloned();
        if let Some(open) = open {
            let notice = Arc::clone(around.notice);
            let served = ServedFabric::start(open, live, around.stats.clone(), notice)?;
            // Set only here, and the open fabric is there once.
            let _ = self.served.set(served);
        }
        Ok(Vec::new())
    }

    fn lend(&self, lent: &mut Descriptors) -> Result<(), String> {
        lent.put(FABRIC, self.served.get().and_then(ServedFabric::lend));
        Ok(())
    }

    fn take_back(&self) {
        self.served.get().into_iter().for_each(ServedFabric::take_back);
    }

    fn drain(&self, leaving: Leaving) {
        self.served.get().into_iter().filter(|_| leaving.hands_over).for_each(ServedFabric::hand_over);
    }

    fn end(&self) {
        self.served.get().into_iter().for_each(ServedFabric::end);
    }

    fn figures(&self, figures: &mut ContentFigures) {
        figures.fabric = self.served.get().map(ServedFabric::figures);
    }
}
