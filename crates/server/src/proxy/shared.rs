//! The part that the proxies of all workers share.
//!
//! It must never forget an application: those of former settings stay, with what is known of their servers.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use staunch_engine::{Notice, PlaceNews, Post, monotonic_ns};
use staunch_tls::OutgoingTls;

use super::application::{Application, ServerName};
use super::config::{ProxyApplication, ProxyConfig};
use super::figures::{ProxyFigures, ProxyServerFigures};
use super::mail::ProxyMail;
use super::shares::{ClientsSeen, ExcessCounts};
use crate::limits::{PROXY_ANSWER_BYTES_KEPT, PROXY_ANSWER_BYTES_MIN};
use crate::mail::Mail;
use crate::owner::OwnerPart;
use crate::problem::Problems;

/// Time between two looks at lines while there are any: less than a person notices.
const TEND_LINES_EVERY: Duration = Duration::from_millis(50);

/// The part that the proxies of all workers share.
pub struct ProxyShared {
    pub(super) config: ProxyConfig,
    /// The server's name in Via, by which a request is known that has come here before.
    pub(super) pseudonym: Box<[u8]>,
    pub(super) problems: Problems,
    applications: Mutex<HashMap<Box<str>, Arc<Application>>>,
    /// Names of those of the settings in use.
    in_use: Mutex<Vec<Box<str>>>,
    /// Counts changes of the applications, so that workers see them without the lock.
    changes: AtomicU64,
    /// Bytes that are held for slow clients.
    held_bytes: AtomicU64,
    post: OnceLock<Post<Mail>>,
    /// Settings of links by TLS, if there may be any.
    tls: OnceLock<OutgoingTls>,
    pub(super) notice: Notice,
    pub(super) clients_seen: ClientsSeen,
    pub(super) excess_counts: ExcessCounts,
    /// Whether some request stands in line, for the thread that looks after them.
    has_lines: Mutex<bool>,
    line_began: Condvar,
    has_ended: AtomicBool,
}

impl ProxyShared {
    /// Without an application so far. `pseudonym` is a token that no other proxy on the
    /// way has.
    pub fn new(config: ProxyConfig, pseudonym: &str, notice: Notice) -> Arc<Self> {
        Arc::new(Self {
            config,
            pseudonym: pseudonym.as_bytes().into(),
            problems: Problems::new(),
            applications: Mutex::default(),
            in_use: Mutex::default(),
            changes: AtomicU64::new(0),
            held_bytes: AtomicU64::new(0),
            post: OnceLock::new(),
            tls: OnceLock::new(),
            notice,
            clients_seen: ClientsSeen::default(),
            excess_counts: ExcessCounts::default(),
            has_lines: Mutex::new(false),
            line_began: Condvar::new(),
            has_ended: AtomicBool::new(false),
        })
    }

    /// Makes all applications of the settings in use known by their names, with their servers at present. A
    /// server that an application had before stays, with all that was learned of it; one that it has no more
    /// gets no new requests, and those that stand in its line ask elsewhere.
    pub fn know(&self, applications: &[ProxyApplication]) {
        let vanished = self.replace(applications);
        let names = applications.iter().map(|one| (*one.name).into()).collect();
        *self.in_use.lock().unwrap_or_else(PoisonError::into_inner) = names;
        // A worker that sees a server gone finds the applications that go on without it.
        self.changes.fetch_add(1, Release);
        let mut news = Vec::new();
        for server in vanished {
            server.get().vanish(&mut news);
            news.drain(..).for_each(|one| self.tell(&server, one));
        }
    }

    /// Links to servers that are spoken to by TLS go by these settings, which never change.
    pub fn secure(&self, tls: OutgoingTls) {
        let _ = self.tls.set(tls);
    }

    /// Whether servers can be spoken to by TLS.
    pub fn is_secured(&self) -> bool {
        self.tls.get().is_some()
    }

    pub(super) fn tls(&self) -> Option<&OutgoingTls> {
        self.tls.get()
    }

    /// Gives the servers that have vanished.
    fn replace(&self, applications: &[ProxyApplication]) -> Vec<ServerName> {
        let mut known = self.applications.lock().unwrap_or_else(PoisonError::into_inner);
        let mut vanished = Vec::new();
        for application in applications {
            let before = known.get(&*application.name).cloned();
            if before.as_ref().is_some_and(|before| before.is_at(&application.servers)) {
                continue;
            }
            let next = Arc::new(Application::new(application, before.as_deref(), &self.config));
            if let Some(before) = before {
                let server = |index| ServerName { application: Arc::clone(&before), index };
                vanished.extend(next.vanished(&before).map(server));
            }
            known.insert((*application.name).into(), next);
        }
        vanished
    }

    /// The servers of the applications of the settings in use.
    pub(super) fn servers_in_use(&self) -> Vec<ServerName> {
        let names = self.in_use.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let applications = names.iter().filter_map(|name| self.application(name));
        let servers = |application: Arc<Application>| {
            let all = 0..application.servers.len();
            all.map(move |index| ServerName { application: Arc::clone(&application), index })
        };
        applications.flat_map(servers).collect()
    }

    /// Whether no more is to be done beside requests.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Relaxed)
    }

    /// Tells the operator.
    pub fn say(&self, line: &str) {
        (self.notice)(line);
    }

    /// How often applications have changed.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Acquire)
    }

    /// Mail goes this way from now on, and lines are looked after until [`ProxyShared::end`].
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn start(self: &Arc<Self>, post: &Post<Mail>) -> io::Result<()> {
        let _ = self.post.set(post.clone());
        let shared = Arc::clone(self);
        let thread = std::thread::Builder::new().name("proxy-lines".into());
        thread.spawn(move || shared.tend_lines()).map(drop)
    }

    /// Ends the thread that looks after lines.
    pub fn end(&self) {
        self.has_ended.store(true, Relaxed);
        self.look_after_lines();
    }

    /// Looks after lines as long as there are any, and then waits for the next.
    fn tend_lines(&self) {
        let mut news = Vec::new();
        while !self.has_ended.load(Relaxed) {
            let has_lines = self.has_lines.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = self.line_began.wait_while(has_lines, |has_lines| !*has_lines);
            *waited.unwrap_or_else(PoisonError::into_inner) = false;
            // tidy: allow(clock): looking again is all this thread does.
            std::thread::sleep(TEND_LINES_EVERY);
            if self.tick_all(&mut news) {
                self.look_after_lines();
            }
        }
    }

    /// Whether any request waits on.
    fn tick_all(&self, news: &mut Vec<PlaceNews>) -> bool {
        let applications: Vec<Arc<Application>> =
            self.applications.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        let mut has_lines = false;
        for application in applications {
            for index in 0..application.servers.len() {
                let server = ServerName { application: Arc::clone(&application), index };
                has_lines |= server.get().places.tick(monotonic_ns() / 1_000_000, news);
                news.drain(..).for_each(|one| self.tell(&server, one));
            }
        }
        has_lines
    }

    /// A request stands in line.
    pub(super) fn look_after_lines(&self) {
        let mut has_lines = self.has_lines.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *has_lines, true) {
            self.line_began.notify_one();
        }
    }

    /// Figures for people.
    pub fn figures(&self) -> ProxyFigures {
        let now_ms = monotonic_ns() / 1_000_000;
        let known = self.applications.lock().unwrap_or_else(PoisonError::into_inner);
        let mut servers: Vec<ProxyServerFigures> = known
            .values()
            .flat_map(|one| {
                one.servers.iter().map(|server| ProxyServerFigures::of(&one.name, server, now_ms))
            })
            .collect();
        servers
            .sort_by(|one, other| (&one.application, &one.server).cmp(&(&other.application, &other.server)));
        ProxyFigures {
            servers,
            held_bytes: self.held_bytes.load(Relaxed),
            excess_connections: self.excess_counts.links.load(Relaxed),
            excess_line: self.excess_counts.line.load(Relaxed),
        }
    }

    pub(super) fn application(&self, name: &str) -> Option<Arc<Application>> {
        self.applications.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Tells the worker of a request that stood in line what became of it.
    pub(super) fn tell(&self, server: &ServerName, news: PlaceNews) {
        if let Some(post) = self.post.get() {
            let mail = Mail::of_proxy(ProxyMail { server: server.clone(), news });
            post.send_to_worker(news.address.worker, OwnerPart::Proxy.into(), mail);
        }
    }

    /// Counts a change of the bytes that are held for slow clients.
    pub(super) fn hold(&self, before_bytes: usize, bytes: usize) {
        if bytes >= before_bytes {
            self.held_bytes.fetch_add((bytes - before_bytes) as u64, Relaxed);
        } else {
            self.held_bytes.fetch_sub((before_bytes - bytes) as u64, Relaxed);
        }
    }

    /// Bytes of an answer that are kept for a slow client before no more are taken from its server.
    pub(super) fn answer_bytes_max(&self) -> usize {
        if self.has_room() { PROXY_ANSWER_BYTES_KEPT } else { PROXY_ANSWER_BYTES_MIN }
    }

    /// Whether more may be held for slow clients.
    pub(super) fn has_room(&self) -> bool {
        self.held_bytes.load(Relaxed) < self.config.memory_bytes
    }
}
