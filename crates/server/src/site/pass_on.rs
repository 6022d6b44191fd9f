//! Whether an application answers for a path, and whether a request may go there.
//!
//! It must never look at a file: what an application answers for need not be there. Which script is run is
//! for `run` to find.

use std::sync::Arc;

use staunch_engine::{Answered, PlaceClass};
use staunch_protocol::Request;
use staunch_protocol::http1::decode_path;

use super::Site;
use crate::config::ProxyWire;
use crate::errand::Errand;
use crate::permission::{Asked, Passage, granted};
use crate::rules::Ruling;
use crate::scripts::ScriptCall;

/// The part that answers a request.
pub(crate) enum PassedOn<'e> {
    /// An application is asked for the answer.
    Application(PassedTo, Errand<'e>),
    /// The site itself.
    Site(Errand<'e>),
    /// The request is answered, or will be by mail.
    Answered(Answered),
}

/// The application that a request goes to.
pub(crate) struct PassedTo {
    /// The rules of the path, which name it.
    pub(crate) ruling: Arc<Ruling>,
    /// Field lines for the answer.
    pub(crate) lines: Vec<u8>,
    /// Whether the client has shown credentials here.
    pub(crate) is_guarded: bool,
    /// The script that it runs, if it is one by FastCGI.
    pub(crate) script: Option<Box<ScriptCall>>,
}

impl<'e> PassedOn<'e> {
    /// By an application, under these rules.
    pub(super) fn to(ruling: Arc<Ruling>, script: Option<Box<ScriptCall>>, errand: Errand<'e>) -> Self {
        let lines = [ruling.lines.as_bytes(), &granted(&ruling, errand.request)].concat();
        let is_guarded = ruling.auth.is_some();
        Self::Application(PassedTo { ruling, lines, is_guarded, script }, errand)
    }
}

impl Site {
    /// How urgent a request is by the rules of its path; normal where its path is none.
    pub(crate) fn class(&self, request: &Request<'_>) -> PlaceClass {
        let Some(rules) = &self.shared.load.rules else { return PlaceClass::default() };
        let mut scratch = Vec::new();
        let decoded = decode_path(request.path, &mut scratch).ok();
        decoded.and_then(|path| rules.class(path)).unwrap_or_default()
    }

    /// Tells who answers a request, by the rules of its path.
    pub(crate) fn pass_on<'e>(&mut self, errand: Errand<'e>) -> PassedOn<'e> {
        let Some(rules) = self.shared.load.rules.as_ref().filter(|rules| rules.have_proxy()) else {
            return PassedOn::Site(errand);
        };
        if rules.are_of_one_application()
            && let Some(ruling) = rules.of(errand.request.path)
        {
            // No rule asks what its path means: that is for the application to say.
            let path = errand.request.path;
            return self.pass_on_by(ruling, path, errand);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        // A path that cannot be decoded, or leads out of the site, is refused by the site.
        let decoded = decode_path(errand.request.path, &mut scratch).ok();
        let ruling = decoded.and_then(|path| rules.of(path)).filter(|ruling| ruling.proxy.is_some());
        let told = match (ruling, decoded) {
            (Some(ruling), Some(path)) => self.pass_on_by(ruling, path, errand),
            _ => PassedOn::Site(errand),
        };
        self.scratch = scratch;
        told
    }

    fn pass_on_by<'e>(&mut self, ruling: Arc<Ruling>, path: &[u8], errand: Errand<'e>) -> PassedOn<'e> {
        match self.permission.pass(&ruling, Asked::by_peer(path), &self.shared, errand) {
            Passage::Open(errand) => {
                errand.note_guard(Some(&ruling));
                let wire = ruling.proxy.as_ref().map(|proxy| proxy.wire);
                if wire == Some(ProxyWire::FastCgi) {
                    return self.find_script(ruling, path, errand);
                }
                PassedOn::to(ruling, None, errand)
            }
            Passage::Answered(answered) => PassedOn::Answered(answered),
            Passage::Refused(problem, errand) => {
                PassedOn::Answered(self.refuse_under(problem, Some(&ruling), errand))
            }
        }
    }
}
