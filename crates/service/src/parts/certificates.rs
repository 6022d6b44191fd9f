//! Certificates as a part: what handshakes go by, and the thread that looks after it.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use staunch_config::Config;
use staunch_engine::{Notice, TlsSettings};
use staunch_netio::ListenPlace;
use staunch_program::Failure;
use staunch_server::HttpsHosts;
use staunch_server::metrics::ContentFigures;

use crate::certificates::{self, Certificates, Pairs};
use crate::descriptors::Descriptors;
use crate::part::{BeforeBinding, Commit, NewSettings, Part, Refusal, Surroundings};

/// The name under which the keys of tickets pass to the next process.
const TICKETS: &str = "tickets";

/// Certificates, what was read of them to start, and the thread that looks after them.
pub(crate) struct CertificatesPart {
    pub(super) certificates: Arc<Certificates>,
    notice: Notice,
    /// Pairs that were read to start, with the sentences about files that cannot be watched.
    read: Mutex<(Pairs, Vec<String>)>,
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
}

impl CertificatesPart {
    /// Reads certificates, keys, and the keys of tickets that were left. As the starting user: keys are often
    /// nobody else's to read.
    ///
    /// # Errors
    /// The fault of a file, with its name.
    pub(super) fn open(opening: &BeforeBinding<'_>, left: &mut Descriptors) -> Result<Self, Failure> {
        let (certificates, notice) = (Arc::new(Certificates::new()?), Arc::clone(opening.notice));
        if let Some(tickets) = left.take(TICKETS) {
            certificates::take_over_tickets(certificates.context.tickets(), tickets, &notice);
        }
        let read = Mutex::new((certificates.read_to_start(opening.config)?, Vec::new()));
        Ok(Self { certificates, notice, read, thread: Mutex::default() })
    }

    /// The engine's settings for TLS at these addresses.
    pub(crate) fn settings(&self, config: &Config, listen: Vec<ListenPlace>) -> TlsSettings {
        self.certificates.settings(config, listen)
    }

    /// Hosts that are led to HTTPS.
    pub(crate) fn https(&self) -> &Arc<HttpsHosts> {
        &self.certificates.https
    }
}

impl Part for CertificatesPart {
    /// Here, for the user that the process becomes may not be allowed to watch the folders of keys.
    fn bound(&self, around: &Surroundings<'_>) -> Result<(), Failure> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.1 = self.certificates.replace(&read.0, around.config, around.secured);
        Ok(())
    }

    fn describe(&self, config: &Config) -> Vec<String> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines = Vec::new();
        if read.0.count() > 0 {
            lines.push(format!("  tls          {}", describe_pairs(&read.0)));
        }
        if !read.0.awaited.is_empty() {
            let (names, authority) = (read.0.awaited.join(", "), &config.acme.acme_directory);
            lines.push(format!("  acme         {authority} is asked for certificates: {names}"));
        }
        lines
    }

    fn start(&self, around: &Surroundings<'_>) -> Result<Vec<String>, Failure> {
        let thread = certificates::start(&self.certificates, Arc::clone(around.notice))?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(read.0.words().chain(read.1.iter().cloned()).collect())
    }

    fn prepare<'a>(&'a self, new: &'a NewSettings<'_>) -> Result<Commit<'a>, Refusal> {
        let pairs = self.certificates.read(new.config)?;
        Ok(Box::new(move || {
            let unwatched = self.certificates.replace(&pairs, new.config, new.secured);
            pairs.warnings.into_iter().chain(unwatched).collect()
        }))
    }

    fn descriptors(&self, shared: &mut Descriptors) {
        let tickets = self.certificates.context.tickets();
        shared.put(TICKETS, certificates::hand_over_tickets(tickets, &self.notice));
    }

    fn end(&self) {
        self.certificates.end();
    }

    fn figures(&self, figures: &mut ContentFigures) {
        figures.troubles.extend(self.certificates.troubles());
    }

    fn metrics(&self, text: &mut String) {
        text.push_str(&certificates::expiry_metrics(&self.certificates.expiries()));
    }
}

/// How many certificates there are, and how to trust the local authority.
fn describe_pairs(pairs: &Pairs) -> String {
    let count = match pairs.count() {
        1 => "1 certificate".to_owned(),
        count => format!("{count} certificates"),
    };
    let Some(path) = &pairs.authority else { return count };
    let path = path.display();
    format!("{count}; to trust the local authority, import {path} (curl --cacert {path})")
}
