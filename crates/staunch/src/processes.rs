//! Hidden subcommands: processes that a server starts by itself.
//!
//! Their words and flags are those that `staunch-service` writes when it starts them.

use std::path::PathBuf;

use clap::Args;
use staunch_program::Failure;
use staunch_service::acme::{self, AgentPlan};
use staunch_service::life;
use staunch_service::resolver::{self, ResolverPlan};

/// Arguments of the agent that looks after certificates.
#[derive(Args, Debug)]
pub(crate) struct AgentArguments {
    /// Folder with certificates and keys
    folder: PathBuf,

    /// User to become
    user: Option<String>,

    /// How much it is confined
    #[arg(long)]
    sandbox: String,

    /// Files that it is to read
    #[arg(long)]
    read: Vec<PathBuf>,
}

/// Arguments of the process that looks names up.
#[derive(Args, Debug)]
pub(crate) struct ResolverArguments {
    /// Names with their ports
    names: Vec<String>,

    /// User to become
    #[arg(long)]
    user: Option<String>,

    /// How much it is confined
    #[arg(long)]
    sandbox: String,

    /// Time between two lookups, in milliseconds
    #[arg(long)]
    interval_ms: u64,

    /// Look names up, and start no process for it
    #[arg(long)]
    looks: bool,
}

/// Arguments of the process that starts the next server in an upgrade.
#[derive(Args, Debug)]
pub(crate) struct StarterArguments {
    /// User to become
    user: Option<String>,
}

impl AgentArguments {
    /// Runs the agent until its server has ended.
    ///
    /// # Errors
    /// Those of [`acme::run_agent`].
    pub(crate) fn run(self) -> Result<(), Failure> {
        let Self { folder, user, sandbox, read } = self;
        acme::run_agent(&AgentPlan { folder, user, sandbox, read })
    }
}

impl ResolverArguments {
    /// Runs the process until its server has ended.
    ///
    /// # Errors
    /// Those of [`resolver::run`].
    pub(crate) fn run(self) -> Result<(), Failure> {
        let Self { names, user, sandbox, interval_ms, looks } = self;
        resolver::run(&ResolverPlan { names, user, sandbox, interval_ms, looks })
    }
}

impl StarterArguments {
    /// Runs the process until its server has ended.
    ///
    /// # Errors
    /// Those of [`life::run_starter`].
    pub(crate) fn run(&self) -> Result<(), Failure> {
        life::run_starter(self.user.as_deref())
    }
}
