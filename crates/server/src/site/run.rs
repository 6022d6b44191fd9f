//! Which script an application runs for a path.
//!
//! A script is run only if it stands as a file beneath the root: an application that looked for it itself
//! might run what somebody has uploaded. It must never read the disk in a worker, as `resolve` does not.

use std::sync::Arc;

use staunch_protocol::Method;
use staunch_protocol::http1::decode_path;

use super::Site;
use super::pass_on::PassedOn;
use crate::content::entry::Kind;
use crate::content::load::Outcome;
use crate::content::path::is_servable;
use crate::errand::Errand;
use crate::permission::{Asked, Passage};
use crate::problem::Problem;
use crate::rules::Ruling;
use crate::scripts::{ScriptCall, script_end};
use crate::shared::Purpose;

impl Site {
    /// Finds the script for a path that was permitted, or what else answers.
    pub(super) fn find_script<'e>(
        &mut self,
        ruling: Arc<Ruling>,
        path: &[u8],
        errand: Errand<'e>,
    ) -> PassedOn<'e> {
        let config = &self.shared.load.config;
        let Some(scripts) = &config.rules.scripts else {
            let call = ScriptCall { path_info: path.into(), ..ScriptCall::default() };
            return PassedOn::to(ruling, Some(Box::new(call)), errand);
        };
        if config.has_no_folder() {
            let name = format!("/{}", scripts.index);
            return self.run(name.as_bytes(), ruling, path, errand);
        }
        let key = script_end(path).map_or(path, |end| path.get(..end).unwrap_or(path));
        if !path.starts_with(b"/") {
            // OPTIONS of the server as a whole.
            return PassedOn::Site(errand);
        }
        if !is_servable(key, config.dotfiles) {
            return PassedOn::Answered(self.refuse(Problem::NotFound, path, errand));
        }
        if config.no_cache {
            self.shared.ask_to_look(errand.answer.unix_ms() / 1000);
        }
        match self.held_or_alias(key, &errand) {
            Some(outcome) => self.run_found(outcome, ruling, path, errand),
            None => self.ask_for_script(key, errand),
        }
    }

    /// Goes on with a request for which another thread has looked what there is.
    pub(crate) fn pass_on_loaded<'e>(&mut self, outcome: Outcome, errand: Errand<'e>) -> PassedOn<'e> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let decoded = decode_path(errand.request.path, &mut scratch).ok();
        let told = match decoded.and_then(|path| Some((path, self.ruling(path)?))) {
            Some((path, ruling)) => self.run_found(outcome, ruling, path, errand),
            None => PassedOn::Site(errand),
        };
        self.scratch = scratch;
        told
    }

    /// What is held under a key; of a folder, what answers for it.
    fn held_or_alias(&self, key: &[u8], errand: &Errand<'_>) -> Option<Outcome> {
        let held = self.held(key, &errand.answer)?;
        match &held {
            Outcome::Entry(entry) => match &entry.kind {
                Kind::Alias(target) => self.held(target, &errand.answer),
                Kind::Version(_) | Kind::NoDifference => None,
                Kind::Content(_) | Kind::Slashless | Kind::Folder | Kind::Script => Some(held),
            },
            Outcome::Problem(_) => Some(held),
        }
    }

    fn ask_for_script<'e>(&mut self, key: &[u8], errand: Errand<'e>) -> PassedOn<'e> {
        let answer = &errand.answer;
        let (unix_s, address) = (answer.unix_ms() / 1000, answer.address());
        PassedOn::Answered(match self.shared.ask_for(key, unix_s, Purpose::Script, address) {
            Ok(()) => errand.answer.later(),
            Err(_) => self.refuse_under(Problem::Overloaded, None, errand),
        })
    }

    /// Runs what was found if it is a script, and answers as for files if it is not.
    fn run_found<'e>(
        &mut self,
        outcome: Outcome,
        ruling: Arc<Ruling>,
        path: &[u8],
        errand: Errand<'e>,
    ) -> PassedOn<'e> {
        let is_read = matches!(errand.request.method, Method::Get | Method::Head);
        match outcome {
            Outcome::Entry(entry) if matches!(entry.kind, Kind::Script) => {
                entry.mark_used();
                self.run(&entry.key, ruling, path, errand)
            }
            // A folder with the name of a script.
            Outcome::Entry(_) if script_end(path).is_some() => {
                PassedOn::Answered(self.refuse_under(Problem::NotFound, Some(&ruling), errand))
            }
            // A file takes no other method, and says so.
            Outcome::Entry(_) if !is_read => PassedOn::Site(errand),
            Outcome::Entry(entry) => {
                let outcome = Outcome::Entry(entry);
                PassedOn::Answered(self.resolve_loaded(outcome, &Purpose::Content, path, errand))
            }
            Outcome::Problem(problem) => {
                PassedOn::Answered(self.refuse_under(problem, Some(&ruling), errand))
            }
        }
    }

    /// Runs a script, under the rules of its own path as well.
    fn run<'e>(&mut self, name: &[u8], ruling: Arc<Ruling>, path: &[u8], errand: Errand<'e>) -> PassedOn<'e> {
        let own = self.ruling(name).filter(|own| !Arc::ptr_eq(own, &ruling));
        let is_guarded = own.as_ref().is_some_and(|own| own.auth.is_some());
        let errand = match own {
            Some(own) => match self.permission.pass(&own, Asked::within(name), &self.shared, errand) {
                Passage::Open(errand) => errand,
                Passage::Answered(answered) => return PassedOn::Answered(answered),
                Passage::Refused(problem, errand) => {
                    return PassedOn::Answered(self.refuse_under(problem, Some(&own), errand));
                }
            },
            None => errand,
        };
        let behind = path.strip_prefix(name).filter(|_| script_end(path) == Some(name.len()));
        let call = ScriptCall {
            root: self.document_root(),
            name: name.into(),
            path_info: behind.unwrap_or_default().into(),
        };
        let mut told = PassedOn::to(ruling, Some(Box::new(call)), errand);
        if let PassedOn::Application(to, _) = &mut told {
            to.is_guarded |= is_guarded;
        }
        told
    }

    /// The served folder, as the application sees it.
    fn document_root(&self) -> Box<[u8]> {
        let load = &self.shared.load;
        let far_root = load.config.rules.scripts.as_ref().and_then(|scripts| scripts.far_root.as_deref());
        match far_root {
            Some(far_root) => far_root.as_bytes().into(),
            None => load.root.name().as_os_str().as_encoded_bytes().into(),
        }
    }
}
