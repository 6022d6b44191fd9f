//! Candidates that a rule names for a path: which of them answers.
//!
//! It must never look at a candidate before it is seen to that its coming would be noticed.

use staunch_protocol::Status;

use super::{Load, problem};
use crate::content::folder::Variant;
use crate::content::path::{Refusal, folder_of, is_servable};
use crate::problem::Problem;
use crate::rules::attempts::{Candidate, Tries};
use crate::scripts::is_script;

impl Load {
    pub(super) fn tries(&self, key: &[u8]) -> Option<&Tries> {
        let rules = self.rules.as_ref().filter(|_| Variant::of_key(key).is_none())?;
        // A script that is not there is answered by no other.
        if rules.scripts.is_some() && is_script(key) {
            return None;
        }
        rules.tries(key)
    }

    /// What answers for a path: nothing but itself, or the first candidate that is there. `look` is called
    /// before each look at one.
    ///
    /// # Errors
    /// What is answered if nothing is there, or it could not be told.
    pub(super) fn try_in_turn(
        &self,
        tries: &Tries,
        path: &[u8],
        mut look: impl FnMut(&[u8]),
    ) -> Result<Option<Candidate>, Problem> {
        if self.is_there(path)? {
            return Ok(None);
        }
        for candidate in tries.candidates(path) {
            // The path itself was not there, and must never be answered by itself.
            if candidate.path == path {
                continue;
            }
            look(&candidate.path);
            if is_servable(&candidate.path, self.config.dotfiles) && self.is_there(&candidate.path)? {
                return Ok(Some(candidate));
            }
        }
        Err(match tries.status {
            Status::FORBIDDEN => Problem::Forbidden,
            Status::GONE => Problem::Gone,
            _ => Problem::NotFound,
        })
    }

    /// Whether a file stands at a path, or, where it ends with a slash, a folder with an index file or a
    /// listing. What may not be read is there.
    fn is_there(&self, path: &[u8]) -> Result<bool, Problem> {
        match self.open_beneath(path) {
            Ok(opened) if opened.folder => {
                let ruling = self.ruling(path);
                let listed = ruling.and_then(|ruling| ruling.listing).unwrap_or(self.config.listing);
                Ok(path.ends_with(b"/") && (listed || self.index_of(path).is_some()))
            }
            Ok(_) | Err(Refusal::Forbidden) => Ok(true),
            Err(Refusal::NotFound) => Ok(false),
            Err(refusal) => Err(problem(refusal)),
        }
    }

    /// Sees to it that it is seen when something appears at a path, or goes. False if it may not be.
    pub(super) fn cover_name(&self, path: &[u8]) -> bool {
        let beside = path.strip_suffix(b"/").unwrap_or(path);
        self.cover(folder_of(path)) || (beside != path && self.cover(folder_of(beside)))
    }
}
