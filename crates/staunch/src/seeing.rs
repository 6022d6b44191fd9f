//! What the operator sees: access log, error log, admin address.
//!
//! Order of calls: [`Seeing::open`] while ports below 1024 can be had, [`Seeing::reload`] once the process is
//! who it will be, which starts the first threads, [`Seeing::show`] once the workers are there, then
//! [`Seeing::reload`] and [`Seeing::reopen`] as signals ask, [`Seeing::drain`] and [`Seeing::finish`] at the
//! end.

use std::io::Write as _;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use staunch_config::Config;
use staunch_config::groups::Logs;
use staunch_config::syntax::choice::{LogField, LogFormat};
use staunch_config::syntax::text::Output;
use staunch_engine::Engine;
use staunch_server::log::{AccessLog, ErrorLog, Field, Format, LogSettings, Notice, Target};
use staunch_server::metrics::{SiteFigures, Sources};
use staunch_server::{About, Admin, MoreMetrics};

use crate::admin::{Door, Listener};
use crate::config::Failure;

/// How long the end of the process waits for its last lines.
const PATIENCE: Duration = Duration::from_secs(2);

/// See the module's text.
pub(crate) struct Seeing {
    /// The access log.
    pub(crate) log: Arc<AccessLog>,
    /// Where the server's own lines go.
    pub(crate) notice: Notice,
    error_log: Arc<RwLock<Option<Arc<ErrorLog>>>>,
    listener: Option<Listener>,
    shown: OnceLock<(Arc<Sources>, Door)>,
}

impl Seeing {
    /// Listens on the admin address. `takes_over`: another process listens there, and will end.
    ///
    /// # Errors
    /// An address that cannot be had.
    pub(crate) fn open(config: &Config, takes_over: bool) -> Result<Self, Failure> {
        let error_log = Arc::new(RwLock::new(None));
        let place = Arc::clone(&error_log);
        let notice: Notice = Arc::new(move |text: &str| say(&place, text));
        let log = AccessLog::new(Arc::clone(&notice));
        let listener = config.process.admin.map(|address| Listener::bind(address, takes_over)).transpose()?;
        Ok(Self { log, notice, error_log, listener, shown: OnceLock::new() })
    }

    /// Logs as these settings say from now on.
    ///
    /// # Errors
    /// A log that cannot be opened: the old one goes on.
    pub(crate) fn reload(&self, logs: &Logs) -> Result<(), Failure> {
        let error_log = logs.error_log.clone().map(ErrorLog::open).transpose();
        let error_log = error_log.map_err(|error| Failure::configuration(format!("error_log: {error}")))?;
        self.log
            .set(settings(logs))
            .map_err(|error| Failure::configuration(format!("access_log: {error}")))?;
        *self.error_log.write().unwrap_or_else(PoisonError::into_inner) = error_log;
        Ok(())
    }

    /// Opens the files that now have the logs' names.
    pub(crate) fn reopen(&self) {
        self.log.reopen();
        if let Some(log) = &*self.error_log.read().unwrap_or_else(PoisonError::into_inner) {
            log.reopen();
        }
    }

    /// Adds to the start-up block where the admin address is, with the port taken.
    pub(crate) fn announce(&self) {
        if let Some(listener) = &self.listener {
            // Nobody reading the block is no reason not to serve.
            let _ = writeln!(std::io::stdout(), "  admin        http://{}", listener.address());
        }
    }

    /// Answers on the admin address from now on, if there is one. `sites` tells how far each site is; `more`
    /// stands behind the metrics.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub(crate) fn show<M: Send + 'static>(
        &mut self,
        engine: &Engine<M>,
        started: Instant,
        sites: impl Fn() -> Vec<SiteFigures> + Send + Sync + 'static,
        more: Option<MoreMetrics>,
    ) -> Result<(), Failure> {
        let Some(listener) = self.listener.take() else { return Ok(()) };
        let about =
            About { version: env!("CARGO_PKG_VERSION"), io: engine.backend().0, stats: engine.stats() };
        let most = engine.connections_max().0;
        let sources = Arc::new(Sources::new(about, most, started, Box::new(sites), Arc::clone(&self.log)));
        let door = listener.serve(Admin::new(Arc::clone(&sources), more))?;
        // It is set only here, and this runs once: the listener is gone now.
        let _ = self.shown.set((sources, door));
        Ok(())
    }

    /// No further requests are wanted. `hands_over`: another process answers on the admin address from now
    /// on.
    pub(crate) fn drain(&self, hands_over: bool) {
        if let Some((sources, door)) = self.shown.get() {
            sources.drain();
            if hands_over {
                door.close();
            }
        }
    }

    /// Waits for the last lines of the logs, but not long.
    pub(crate) fn finish(&self) {
        self.log.finish(PATIENCE);
        if let Some(log) = &*self.error_log.read().unwrap_or_else(PoisonError::into_inner) {
            log.finish(PATIENCE);
        }
    }
}

fn say(error_log: &RwLock<Option<Arc<ErrorLog>>>, text: &str) {
    match &*error_log.read().unwrap_or_else(PoisonError::into_inner) {
        Some(log) => log.say(text),
        None => eprintln!("staunch: {text}"),
    }
}

fn settings(logs: &Logs) -> Option<LogSettings> {
    let target = match logs.access_log.as_ref()? {
        Output::Standard => Target::StandardOutput,
        Output::File(path) => Target::File(path.clone()),
    };
    let format = match logs.access_log_format {
        LogFormat::Combined => Format::Combined,
        LogFormat::Json => Format::Json(logs.access_log_fields.iter().map(field).collect()),
    };
    let keep = u32::try_from(logs.access_log_keep).unwrap_or(u32::MAX);
    Some(LogSettings { target, format, size_bytes_max: logs.access_log_size_max, keep })
}

fn field(field: &LogField) -> Field {
    match field {
        LogField::Time => Field::Time,
        LogField::Client => Field::Client,
        LogField::Method => Field::Method,
        LogField::Target => Field::Target,
        LogField::Version => Field::Version,
        LogField::Host => Field::Host,
        LogField::Status => Field::Status,
        LogField::Bytes => Field::Bytes,
        LogField::Referer => Field::Referer,
        LogField::UserAgent => Field::UserAgent,
        LogField::DurationUs => Field::DurationUs,
        LogField::Worker => Field::Worker,
        LogField::ForwardedFor => Field::ForwardedFor,
        LogField::User => Field::User,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_one_name_everywhere() {
        for one in LogField::ALL {
            assert_eq!(field(one).name(), one.name());
        }
        assert_eq!(LogField::ALL.len(), Field::ALL.len());
    }
}
