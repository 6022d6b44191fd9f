//! The server's side of ACME: starts the agent, the process that gets and renews certificates, and speaks
//! with it.
//!
//! The line to the agent is owned here. The server itself never connects to an authority nor writes the
//! store; the agent serves nothing. Order of calls: `Agent::start` before the process is confined,
//! `Agent::listen` once threads may be started, `Agent::configure` whenever the settings change,
//! `Agent::rest` when another process takes over.

mod figures;
mod listening;
mod process;

use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};
use staunch_acme::{ChallengeKind, Line, ToAgent, Wishes};
use staunch_config::Config;
use staunch_config::syntax::choice::ChallengeWord;
use staunch_confine::Identity;
use staunch_engine::Notice;

use crate::certificates::{self, Certificates};
use figures::AcmeFigures;
use listening::ServerEnd;
use staunch_program::Failure;

pub use process::{AgentPlan, run as run_agent};

/// Ports at which an authority checks challenges (RFC 8555, section 8.3; RFC 8737, section 3).
const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// The server's handle of its agent.
pub(crate) struct Agent(Arc<ServerEnd>);

impl Agent {
    /// Starts the agent if the settings have `tls = "auto"`, or goes on with the one that the process before
    /// has handed over. Before it is started, the store's folder is made and given to `user`, whom both
    /// processes become.
    ///
    /// # Errors
    /// A name that ACME cannot prove here, or no folder for the store; the process cannot be started.
    pub(crate) fn start(
        config: &Config,
        handed: Option<OwnedFd>,
        user: Option<&Identity>,
        say: &Notice,
    ) -> Result<Option<Self>, Failure> {
        let Some(store) = certificates::store(config)? else { return Ok(None) };
        let line = match handed {
            Some(line) => Line::of(line),
            None => {
                if let Err(fault) = process::make_ready(&store, user) {
                    say(&format!("acme: {fault}"));
                }
                process::start(&store, config, user)?
            }
        };
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let rest = eventfd(0, flags).map_err(|error| format!("no descriptor is left: {error}"))?;
        Ok(Some(Self(Arc::new(ServerEnd { line, rest, figures: AcmeFigures::default() }))))
    }

    /// Refuses settings by which the agent would have to read other files than those that it was confined to.
    ///
    /// # Errors
    /// The file, with the way out.
    pub(crate) fn refuse_other_files(started: &Config, config: &Config) -> Result<(), String> {
        let known: Vec<_> = process::files(started).collect();
        match process::files(config).find(|file| !known.contains(file)) {
            Some(file) => Err(format!(
                "{} is not among what the agent of certificates can read since its start: restart the server",
                file.display()
            )),
            None => Ok(()),
        }
    }

    /// Sends the agent its settings.
    ///
    /// # Errors
    /// The settings are too long for one message: thousands of names.
    pub(crate) fn configure(&self, wishes: Wishes) -> Result<(), String> {
        self.0.figures.keep_only(&wishes.names);
        let told = self.0.line.tell(&ToAgent::Configure(wishes));
        told.map_err(|error| format!("acme: the agent cannot be told: {error}"))
    }

    /// Sends the agent its settings, and starts the thread that reads the agent's messages. `takes_over`: the
    /// process before this one still reads them too and may take the answer, so the settings are sent again
    /// afterwards.
    ///
    /// # Errors
    /// No thread can be started; those of [`Self::configure`].
    pub(crate) fn listen(
        &self,
        certificates: &Arc<Certificates>,
        say: Notice,
        wishes: Wishes,
        takes_over: bool,
    ) -> Result<(), String> {
        self.configure(wishes.clone())?;
        let again = takes_over.then_some(ToAgent::Configure(wishes));
        let (end, certificates) = (Arc::clone(&self.0), Arc::clone(certificates));
        let listen = move || listening::listen(&end, &certificates, &say, again);
        let started = std::thread::Builder::new().name("acme".into()).spawn(listen);
        started.map(drop).map_err(|error| format!("cannot start a thread: {error}"))
    }

    /// Stops reading the agent's messages: the process that takes over reads them from now on.
    pub(crate) fn rest(&self) {
        // An eventfd can only fail to count further, and it is enough that it has counted once.
        let _ = rustix::io::write(&self.0.rest, &1u64.to_ne_bytes());
    }

    /// The agent's attempts, as Prometheus reads them.
    pub(crate) fn metrics(&self) -> String {
        self.0.figures.text()
    }

    /// A copy of the line to the agent, for the process that takes over.
    pub(crate) fn line(&self) -> Option<OwnedFd> {
        self.0.line.as_fd().try_clone_to_owned().ok()
    }
}

/// The agent's settings, from those of the server. `plain` and `secured`: addresses where HTTP and TLS are
/// spoken, by which the first kind of challenge is chosen.
pub(crate) fn wishes(config: &Config, [plain, secured]: [&[SocketAddr]; 2]) -> Wishes {
    let acme = &config.acme;
    let has = |addresses: &[SocketAddr], port| addresses.iter().any(|address| address.port() == port);
    let kinds = match acme.acme_challenge {
        Some(ChallengeWord::Http) => vec![ChallengeKind::Http01],
        Some(ChallengeWord::TlsAlpn) => vec![ChallengeKind::TlsAlpn01],
        None if plain.is_empty() => vec![ChallengeKind::TlsAlpn01],
        None if has(secured, HTTPS_PORT) && !has(plain, HTTP_PORT) => {
            vec![ChallengeKind::TlsAlpn01, ChallengeKind::Http01]
        }
        None => vec![ChallengeKind::Http01, ChallengeKind::TlsAlpn01],
    };
    Wishes {
        directory: acme.acme_directory.clone(),
        roots: acme.acme_authority.clone(),
        contact: acme.acme_contact.clone(),
        binding: acme.acme_eab_key_id.clone().zip(acme.acme_eab_key_file.clone()),
        profile: acme.acme_profile.clone(),
        names: certificates::wanted_names(config),
        kinds,
    }
}
