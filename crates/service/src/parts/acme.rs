//! The agent of certificates as a part. It stands in the list without an agent, too: settings that ask for
//! one later need another process.

use std::sync::Arc;

use staunch_config::Config;
use staunch_config::syntax::choice;
use staunch_program::Failure;

use crate::acme::{self, Agent};
use crate::certificates::{self, Certificates};
use crate::descriptors::Descriptors;
use crate::part::{BeforeBinding, Commit, Leaving, NewSettings, Part, Refusal, Surroundings};

/// The name under which the line to the agent passes to the next process.
const AGENT: &str = "agent";

/// The agent, if there is one, and the certificates that it proves names by.
pub(super) struct AcmePart {
    agent: Option<Agent>,
    certificates: Arc<Certificates>,
}

impl AcmePart {
    /// Starts the agent, or goes on with that of the process before, if the settings ask for one.
    ///
    /// # Errors
    /// Those of [`Agent::start`].
    pub(super) fn open_agent(
        opening: &BeforeBinding<'_>,
        left: &mut Descriptors,
    ) -> Result<Option<Agent>, Failure> {
        Agent::start(opening.config, left.take(AGENT), opening.user, opening.notice)
    }

    pub(super) fn new(agent: Option<Agent>, certificates: &Arc<Certificates>) -> Self {
        Self { agent, certificates: Arc::clone(certificates) }
    }

    /// The reason that keeps this process from these settings, if there is one.
    fn refusal(&self, started: &Config, config: &Config) -> Result<(), Refusal> {
        let wants_agent = certificates::store(config)?.is_some();
        match &self.agent {
            None if wants_agent => {
                let why = "tls: \"auto\" needs a process that this one cannot start any more";
                Err(Refusal::Beyond(why.to_owned()))
            }
            Some(_) if started.process.sandbox != choice::Sandbox::Off => {
                Agent::refuse_other_files(started, config).map_err(Refusal::Faulty)
            }
            _ => Ok(()),
        }
    }
}

impl Part for AcmePart {
    fn start(&self, around: &Surroundings<'_>) -> Result<Vec<String>, Failure> {
        let Some(agent) = &self.agent else { return Ok(Vec::new()) };
        let wishes = acme::wishes(around.config, [around.plain, around.secured]);
        agent.listen(&self.certificates, Arc::clone(around.notice), wishes, around.takes_over)?;
        Ok(Vec::new())
    }

    fn prepare<'a>(&'a self, new: &'a NewSettings<'_>) -> Result<Commit<'a>, Refusal> {
        self.refusal(new.started, new.config)?;
        Ok(Box::new(|| {
            let wishes = acme::wishes(new.config, [new.plain, new.secured]);
            self.agent.iter().filter_map(|agent| agent.configure(wishes.clone()).err()).collect()
        }))
    }

    fn descriptors(&self, shared: &mut Descriptors) {
        shared.put(AGENT, self.agent.as_ref().and_then(Agent::line));
    }

    fn drain(&self, leaving: Leaving) {
        self.agent.iter().filter(|_| leaving.hands_over).for_each(Agent::rest);
    }

    fn end(&self) {
        self.agent.iter().for_each(Agent::rest);
    }

    fn metrics(&self, text: &mut String) {
        self.agent.iter().for_each(|agent| text.push_str(&agent.metrics()));
    }
}
