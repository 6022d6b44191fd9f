//! What the operator sees: start-up block, access log, error log, admin address.
//!
//! Order of calls: `Seeing::open` while ports below 1024 can be had, `Seeing::prepare` and
//! `Seeing::commit` once the process is who it will be, which starts the first threads, `Seeing::show`
//! once the workers are there, both again and `Seeing::reopen` as signals ask, `Seeing::drain` and
//! `Seeing::finish` at the end. It must never make anybody wait for whoever reads what it shows.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use staunch_config::groups::{AccessLog as AccessLogSettings, Logs};
use staunch_config::syntax::choice::LogField;
use staunch_config::syntax::log_line::{LogLine, StatusTest};
use staunch_config::syntax::text::{AdminAddress, Output};
use staunch_config::{Config, Site};
use staunch_confine::Identity;
use staunch_engine::Engine;
use staunch_program::Failure;
use staunch_server::log::{
    AccessLog, ErrorLog, Field, Format, LineQueue, LogCondition, LogError, LogPlan, LogSettings,
    LogStatusTest, Notice, PreparedAccessLog, PreparedErrorLog, SiteLog, Target,
};
use staunch_server::metrics::Sources;
use staunch_server::{About, Admin, MoreMetrics};

use crate::admin::{AdminDoor, Listener};
use crate::parts::Parts;

/// How long the end of the process waits for the last lines of the access log.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long it waits for its own last lines: they are few, and written at once unless nobody takes them.
const OWN_PATIENCE: Duration = Duration::from_millis(500);

/// Logs, start-up block and admin address of the server.
pub(crate) struct Seeing {
    /// The access log.
    pub(crate) log: Arc<AccessLog>,
    /// Where the server's own lines go.
    pub(crate) notice: Notice,
    /// What stands on standard output: the start-up block.
    pub(crate) block: Arc<LineQueue>,
    error_log: Arc<ErrorLog>,
    listener: Option<Listener>,
    hosts: Vec<String>,
    takes_over: bool,
    shown: OnceLock<(Arc<Sources>, AdminDoor)>,
}

/// Logs that are opened and not yet written to.
pub(crate) struct Logging {
    access_log: PreparedAccessLog,
    error_log: PreparedErrorLog,
}

impl Seeing {
    /// Listens on the admin address, for the user who will serve. `takes_over`: another process listens
    /// there, and will end.
    ///
    /// # Errors
    /// An address that cannot be had.
    pub(crate) fn open(config: &Config, takes_over: bool, user: Option<&Identity>) -> Result<Self, Failure> {
        let no_descriptor = |error| format!("cannot copy standard output or error: {error}");
        let error_log = ErrorLog::new().map_err(no_descriptor)?;
        let block = LineQueue::of_standard_output(error_log.counts()).map_err(no_descriptor)?;
        let place = Arc::clone(&error_log);
        let notice: Notice = Arc::new(move |text: &str| place.say(text));
        let log = AccessLog::new(Arc::clone(&notice));
        let listener =
            config.process.admin.as_ref().map(|address| Listener::bind(address, takes_over)).transpose()?;
        if let (Some(listener), Some(user)) = (&listener, user) {
            listener.give(user)?;
        }
        let hosts = config.process.admin_hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        let (block, shown) = (Arc::new(block), OnceLock::new());
        Ok(Self { log, notice, block, error_log, listener, hosts, takes_over, shown })
    }

    /// Opens the logs of these settings.
    ///
    /// # Errors
    /// A log that cannot be opened: then all stays as it was.
    pub(crate) fn prepare(&self, config: &Config) -> Result<Logging, Failure> {
        let error_log =
            self.error_log.prepare(own_lines(&config.logs)).map_err(|error| blame("error_log", &error))?;
        let access_log = self.log.prepare(plan(config)).map_err(|error| blame("access_log", &error))?;
        Ok(Logging { access_log, error_log })
    }

    /// Opens the logs at the start, and says which cannot be: that is no reason not to serve.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub(crate) fn start_logs(&self, config: &Config) -> Result<(), Failure> {
        let error_log = self.error_log.prepare_what_can_be(own_lines(&config.logs));
        let error_log = error_log.map_err(|error| blame("error_log", &error))?;
        let access_log = self.log.prepare_what_can_be(plan(config));
        let access_log = access_log.map_err(|error| blame("access_log", &error))?;
        let absences = access_log.absences();
        let of_access = absences.into_iter().map(|why| format!("access_log: {why}; its lines are lost"));
        let of_error = error_log.trouble().map(|why| format!("error_log: {why}"));
        self.commit(Logging { access_log, error_log });
        of_access.chain(of_error).for_each(|text| (self.notice)(&text));
        Ok(())
    }

    /// Logs there from now on.
    pub(crate) fn commit(&self, logging: Logging) {
        self.error_log.commit(logging.error_log);
        self.log.commit(logging.access_log);
    }

    /// Opens the files that now have the logs' names.
    pub(crate) fn reopen(&self) {
        self.log.reopen();
        self.error_log.reopen();
    }

    /// Adds to the start-up block where the admin address is, with the port taken.
    pub(crate) fn announce(&self) {
        if let Some(listener) = &self.listener {
            let scheme = match listener.address() {
                AdminAddress::Internet(_) => "http://",
                AdminAddress::Unix(_) => "",
            };
            self.block.say(&format!("  admin        {scheme}{}", listener.address()));
        }
    }

    /// Answers on the admin address from now on, if there is one, with figures and metrics of all parts.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub(crate) fn show<M: Send + 'static>(
        &mut self,
        engine: &Engine<M>,
        started: Instant,
        parts: &Arc<Parts>,
    ) -> Result<(), Failure> {
        let Some(listener) = self.listener.take() else { return Ok(()) };
        let about =
            About { version: env!("CARGO_PKG_VERSION"), io: engine.backend().0, stats: engine.stats() };
        let most = engine.connections_max().0;
        let [told, measured] = [(); 2].map(|()| Arc::clone(parts));
        let content = Box::new(move || told.figures());
        let more: MoreMetrics = Box::new(move || measured.metrics());
        let logs = (Arc::clone(&self.log), Arc::clone(&self.error_log));
        let sources = Sources::new(about, most, started, content, logs, self.takes_over);
        let sources = Arc::new(sources);
        let door = listener.serve(Admin::new(Arc::clone(&sources), Some(more), self.hosts.clone()))?;
        // The value is set only here, and this runs once: the listener is gone now.
        let _ = self.shown.set((sources, door));
        Ok(())
    }

    /// Every worker accepts.
    pub(crate) fn serve(&self) {
        let Some((sources, door)) = self.shown.get() else { return };
        if let Err(error) = door.take_name() {
            (self.notice)(&format!("admin: the socket of the process before cannot be replaced: {error}"));
        }
        sources.serve();
    }

    /// Shows what came of a reload: whether the configuration is in use, and a sentence.
    pub(crate) fn note_reload(&self, is_applied: bool, text: &str) {
        self.shown.get().iter().for_each(|(sources, _)| sources.note_reload(is_applied, text));
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
        self.shown.get().iter().for_each(|(_, door)| door.leave_name());
        self.log.finish(PATIENCE);
        self.finish_own();
    }

    /// Waits for the server's own last lines alone, and less long.
    pub(crate) fn finish_own(&self) {
        self.block.finish(OWN_PATIENCE);
        self.error_log.finish(OWN_PATIENCE);
    }
}

/// Lines said on the way to a failure are written, too.
impl Drop for Seeing {
    fn drop(&mut self) {
        self.finish_own();
    }
}

fn blame(key: &str, error: &LogError) -> Failure {
    Failure::configuration(format!("{key}: {error}"))
}

fn target(output: &Output) -> Target {
    match output {
        Output::Standard => Target::StandardOutput,
        Output::StandardError => Target::StandardError,
        Output::File(path) => Target::File(path.clone()),
        Output::Syslog(path) => Target::Syslog(path.clone()),
    }
}

/// Where the server's own lines go.
fn own_lines(logs: &Logs) -> Target {
    logs.error_log.as_ref().map_or(Target::StandardError, target)
}

/// The access logs of all sites.
fn plan(config: &Config) -> LogPlan {
    let site = |site: &Site| SiteLog {
        hosts: site.hosts.clone(),
        is_default: site.default,
        log: settings(&site.access_log),
    };
    LogPlan { sites: config.sites.iter().map(site).collect() }
}

fn settings(log: &AccessLogSettings) -> Option<LogSettings> {
    let target = target(log.access_log.as_ref()?);
    let format = match &log.access_log_format {
        LogLine::Combined => Format::Combined,
        // The format was read strictly.
        LogLine::Text(text) => Format::of_text(text).unwrap_or(Format::Combined),
        LogLine::Json => Format::Json(log.access_log_fields.iter().map(field).collect()),
    };
    let keep = u32::try_from(log.access_log_keep).unwrap_or(u32::MAX);
    let test =
        |test: &StatusTest| LogStatusTest { from: test.from, to: test.to, is_negated: test.is_negated };
    let statuses = log.access_log_if.iter().map(test).collect();
    let condition = LogCondition { statuses, skipped_paths: log.access_log_skip.clone() };
    Some(LogSettings { target, format, size_bytes_max: log.access_log_size_max, keep, condition })
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
        LogField::ClientVerify => Field::ClientVerify,
        LogField::ClientSubject => Field::ClientSubject,
        LogField::ClientFingerprint => Field::ClientFingerprint,
        LogField::Upstream => Field::Upstream,
        LogField::UpstreamTries => Field::UpstreamTries,
        LogField::UpstreamClass => Field::UpstreamClass,
        LogField::UpstreamLineMs => Field::UpstreamLineMs,
        LogField::UpstreamHeaderMs => Field::UpstreamHeaderMs,
        LogField::UpstreamResponseMs => Field::UpstreamResponseMs,
    }
}

#[cfg(test)]
mod tests {
    use staunch_config::syntax::log_line::LOG_WORDS;

    use super::*;

    #[test]
    fn fields_have_one_name_everywhere() {
        for one in LogField::ALL {
            assert_eq!(field(one).name(), one.name());
        }
        assert_eq!(LogField::ALL.len(), Field::ALL.len());
        for word in LOG_WORDS {
            assert!(Format::of_text(&format!("${word}")).is_some(), "{word}");
        }
    }
}
