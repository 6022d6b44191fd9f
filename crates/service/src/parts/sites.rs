//! Sites as a part: folders that are served.

use std::sync::Arc;

use rustix::io::Errno;
use staunch_program::Failure;
use staunch_server::metrics::ContentFigures;
use staunch_server::{SiteError, SitesShared};

use crate::config::of_site_error;
use crate::part::{BeforeBinding, Commit, NewSettings, Part, Refusal, Surroundings};
use crate::sites;

/// Opens the sites. One of several that cannot be opened is told of and closed.
///
/// # Errors
/// A site alone that cannot be opened, or rules that contradict each other.
pub(super) fn open(opening: &BeforeBinding<'_>) -> Result<Arc<SitesShared>, Failure> {
    let sites = SitesShared::open_what_can_be(sites::of(opening.config), Arc::clone(opening.notice));
    sites.map_err(|error| of_site_error(&error))
}

impl Part for SitesShared {
    fn start(&self, around: &Surroundings<'_>) -> Result<Vec<String>, Failure> {
        Self::start(self, &around.post).map_err(|error| of_site_error(&error))?;
        Ok(Vec::new())
    }

    fn prepare<'a>(&'a self, new: &'a NewSettings<'_>) -> Result<Commit<'a>, Refusal> {
        let prepared = Self::prepare(self, sites::of(new.config)).map_err(|error| match error {
            // A folder that was made anew lies outside of the fence, though its name does not.
            SiteError::Root { errno: Errno::ACCESS, .. } if new.has_starter => {
                Refusal::Beyond(error.to_string())
            }
            _ => Refusal::Faulty(error.to_string()),
        })?;
        Ok(Box::new(|| {
            prepared.commit();
            self.troubles()
        }))
    }

    fn figures(&self, figures: &mut ContentFigures) {
        figures.sites = Self::figures(self);
        figures.troubles.extend(self.troubles());
    }
}
