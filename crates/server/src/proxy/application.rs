//! Applications, their servers, and which of these a request goes to.
//!
//! This module owns the health of servers. It must never ask a server anything.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use staunch_engine::{PlaceClass, PlaceNews, Places, Standing};

use super::config::{ProxyApplication, ProxyConfig, ProxyServer};
use super::error_lines::ErrorLines;
use super::shares::{LineShares, PrecedenceShares};
use super::sticky::{rank, server_hash};
use super::verdict::Verdict;
use crate::config::ProxyWire;
use crate::limits::PROXY_CLIENT_PART;

/// Requests after which it is looked how many of them have failed: never a count alone.
const HEALTH_REQUESTS: u32 = 20;
/// Between two lines for the operator about one server, in milliseconds.
const NOTICE_MS: u64 = 1_000;
/// Time for which requests go elsewhere once half of them have failed, in milliseconds: a restart takes about
/// as long.
const ILL_MS: u64 = 1_000;
/// The longest such time: an operator who has mended a server does not wait for longer.
const ILL_MS_MAX: u64 = 30_000;

/// A group of servers that answer the same, as it is at present: servers that come or vanish make another
/// value, which shares those that stay.
#[derive(Debug)]
pub(super) struct Application {
    /// As it was configured.
    pub(super) name: Box<str>,
    /// The language that is spoken with its servers.
    pub(super) wire: ProxyWire,
    pub(super) servers: Vec<Arc<AppServer>>,
    /// Requests that are tried once more at present.
    pub(super) retries: Arc<AtomicU32>,
    /// The shares of clients of its servers' lines.
    line: Arc<LineShares>,
    /// Shares of the line of requests of low class, which stand before no others.
    low_line: Arc<LineShares>,
    /// Requests that go before others: those of high class, and those of known clients.
    precedence: [Arc<PrecedenceShares>; 2],
}

/// A server of an application.
#[derive(Debug)]
pub(super) struct AppServer {
    pub(super) address: ProxyServer,
    /// The hash of the address, of which ranks for clients are made.
    hash: u64,
    pub(super) places: Places,
    pub(super) counts: ServerCounts,
    pub(super) error_lines: ErrorLines,
    /// The verdict of checks, if there are any.
    pub(super) verdict: Verdict,
    health: Health,
    /// The moment in which the operator was told of a failure last, in milliseconds of the workers' clock.
    told_ms: AtomicU64,
    /// Whether the name leads elsewhere by now: what is in work there ends, and nothing new begins.
    is_gone: AtomicBool,
}

/// Counts of requests and answers since the start.
#[derive(Debug, Default)]
pub(super) struct ServerCounts {
    pub(super) answers: AtomicU64,
    /// Answers of 500 and above.
    pub(super) errors: AtomicU64,
    pub(super) unreachable: AtomicU64,
    pub(super) timed_out: AtomicU64,
    /// Answers that were not HTTP.
    pub(super) broken: AtomicU64,
    /// Answers that ended before their length.
    pub(super) short: AtomicU64,
    pub(super) retried: AtomicU64,
    pub(super) links_opened: AtomicU64,
    /// Milliseconds that answers took, from the place to their end.
    pub(super) in_work_ms: AtomicU64,
}

/// Whether a server is worth asking.
#[derive(Debug, Default)]
struct Health {
    requests: AtomicU32,
    failures: AtomicU32,
    /// The moment before which requests go elsewhere, in milliseconds of the workers' clock.
    ill_until_ms: AtomicU64,
    ill_ms: AtomicU64,
}

/// A server of an application, for mail and links.
#[derive(Debug, Clone)]
pub(super) struct ServerName {
    pub(super) application: Arc<Application>,
    pub(super) index: usize,
}

impl ServerName {
    pub(super) fn get(&self) -> &AppServer {
        &self.application.servers[self.index]
    }

    /// Whether both name the same server.
    pub(super) fn is(&self, other: &Self) -> bool {
        std::ptr::eq(self.get(), other.get())
    }
}

impl Application {
    /// An application of these servers. Those that it had `before` keep all that is known of them.
    pub(super) fn new(told: &ProxyApplication, before: Option<&Self>, config: &ProxyConfig) -> Self {
        let server = |address: &ProxyServer| {
            let known = before.and_then(|before| before.server_at(address));
            known.map_or_else(|| Arc::new(AppServer::new(address, config)), Arc::clone)
        };
        Self {
            name: (*told.name).into(),
            wire: told.wire,
            servers: told.servers.iter().map(server).collect(),
            retries: before.map(|before| Arc::clone(&before.retries)).unwrap_or_default(),
            line: before.map(|before| Arc::clone(&before.line)).unwrap_or_default(),
            low_line: before.map(|before| Arc::clone(&before.low_line)).unwrap_or_default(),
            precedence: before.map(|before| before.precedence.clone()).unwrap_or_default(),
        }
    }

    fn server_at(&self, address: &ProxyServer) -> Option<&Arc<AppServer>> {
        self.servers.iter().find(|server| server.address == *address)
    }

    /// Whether it has these servers, in this order.
    pub(super) fn is_at(&self, servers: &[ProxyServer]) -> bool {
        self.servers.iter().map(|server| &server.address).eq(servers)
    }

    /// The shares of clients of the line in which requests of this standing wait for each other.
    pub(super) fn line(&self, standing: Standing) -> &LineShares {
        match standing.class {
            PlaceClass::Low => &self.low_line,
            PlaceClass::Normal | PlaceClass::High => &self.line,
        }
    }

    /// The counts of requests that go before others by this standing.
    pub(super) fn precedence(&self, standing: Standing) -> &Arc<PrecedenceShares> {
        let [high, known] = &self.precedence;
        if standing.class == PlaceClass::High { high } else { known }
    }

    /// Requests of one client that may go before others while others are there: a quarter of what the servers
    /// work on at once.
    pub(super) fn precedence_max(&self) -> u32 {
        let all = self.servers.iter().fold(0, |all: u32, server| all.saturating_add(server.places.limit()));
        (all / PROXY_CLIENT_PART).max(1)
    }

    /// The servers of the value `before` that this one has no more.
    pub(super) fn vanished<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = usize> + 'a {
        (0..before.servers.len()).filter(|index| self.server_at(&before.servers[*index].address).is_none())
    }

    /// The place of a server in the list, if it is there.
    pub(super) fn index_of(&self, server: &AppServer) -> Option<usize> {
        self.servers.iter().position(|one| std::ptr::eq(&**one, server))
    }

    /// The server for a request, by two drawn at random (`draw` is any number): the one with less before it.
    /// Not `but`, if there is another. Those that fail are left out as long as there are others.
    pub(super) fn choose(&self, draw: u64, but: Option<usize>, now_ms: u64) -> usize {
        let count = self.servers.len();
        if count == 1 {
            return 0;
        }
        let fit: Vec<usize> =
            (0..count).filter(|index| but != Some(*index) && self.servers[*index].is_well(now_ms)).collect();
        let fit = if fit.is_empty() { (0..count).filter(|index| but != Some(*index)).collect() } else { fit };
        let first = fit[draw as usize % fit.len()];
        let second = fit[(draw >> 32) as usize % fit.len()];
        let load = |index: usize| self.servers[index].places.load();
        if load(second) < load(first) { second } else { first }
    }

    /// The server that a client stays with, by its key: where that is ill or its line full, the next that is
    /// neither, until it is well again. `None`: none is.
    pub(super) fn choose_for(
        &self,
        key: u64,
        standing: Standing,
        but: Option<usize>,
        now_ms: u64,
    ) -> Option<usize> {
        let is_fit = |index: &usize| {
            let server = &self.servers[*index];
            but != Some(*index) && server.is_well(now_ms) && !server.places.is_full(standing, now_ms)
        };
        (0..self.servers.len()).filter(is_fit).max_by_key(|index| rank(self.servers[*index].hash, key))
    }

    /// Whether one more request may be tried twice: at most one in ten of those in work.
    pub(super) fn may_retry(&self) -> bool {
        let in_work: u32 = self.servers.iter().map(|server| server.places.figures().in_work).sum();
        self.retries.load(Relaxed) <= in_work / 10
    }
}

impl AppServer {
    fn new(address: &ProxyServer, config: &ProxyConfig) -> Self {
        Self {
            address: address.clone(),
            hash: server_hash(&address.to_string()),
            places: Places::new(config.limit, config.patience_ms),
            counts: ServerCounts::default(),
            error_lines: ErrorLines::default(),
            verdict: Verdict::default(),
            health: Health::default(),
            told_ms: AtomicU64::new(0),
            is_gone: AtomicBool::new(false),
        }
    }

    /// Nothing new begins here. `news` is for those who stand in line: each has to ask elsewhere.
    pub(super) fn vanish(&self, news: &mut Vec<PlaceNews>) {
        // Before the line is emptied: a request that stands in it afterwards looks, and sees this.
        self.is_gone.store(true, SeqCst);
        self.places.send_away(news);
    }

    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.load(SeqCst)
    }

    /// A request has come to its end there, well or not. `true`: from now on requests go elsewhere, which
    /// they did not before.
    pub(super) fn note(&self, is_failure: bool, now_ms: u64) -> bool {
        self.health.note(is_failure, now_ms)
    }

    /// Whether the operator is to be told of a failure: once a second.
    pub(super) fn claims_notice(&self, now_ms: u64) -> bool {
        let told_ms = self.told_ms.load(Relaxed);
        let is_due = told_ms == 0 || now_ms.saturating_sub(told_ms) >= NOTICE_MS;
        is_due && self.told_ms.compare_exchange(told_ms, now_ms.max(1), Relaxed, Relaxed).is_ok()
    }

    /// Whether requests go there: neither they nor checks have found it ill.
    pub(super) fn is_well(&self, now_ms: u64) -> bool {
        self.health.is_well(now_ms) && self.verdict.is_well()
    }
}

impl Health {
    fn be_ill(&self, ill_ms: u64, now_ms: u64) {
        self.ill_ms.store(ill_ms, Relaxed);
        self.ill_until_ms.store(now_ms + ill_ms, Relaxed);
    }

    fn note_probe(&self, is_failure: bool, now_ms: u64) -> bool {
        match (is_failure, self.is_well(now_ms)) {
            (false, _) => {
                self.ill_ms.store(0, Relaxed);
                self.ill_until_ms.store(0, Relaxed);
            }
            (true, true) => self.be_ill((self.ill_ms.load(Relaxed) * 2).min(ILL_MS_MAX), now_ms),
            // A request that was under way before.
            (true, false) => {}
        }
        false
    }

    fn is_well(&self, now_ms: u64) -> bool {
        self.ill_until_ms.load(Relaxed) <= now_ms
    }

    fn note(&self, is_failure: bool, now_ms: u64) -> bool {
        if self.ill_ms.load(Relaxed) > 0 {
            // Behind an illness one answer says that the server is well, and one failure that it is not.
            return self.note_probe(is_failure, now_ms);
        }
        let failures = self.failures.fetch_add(u32::from(is_failure), Relaxed) + u32::from(is_failure);
        let requests = self.requests.fetch_add(1, Relaxed) + 1;
        if requests < HEALTH_REQUESTS {
            return false;
        }
        self.requests.store(0, Relaxed);
        self.failures.store(0, Relaxed);
        let is_ill = failures * 2 >= requests;
        if is_ill {
            self.be_ill(ILL_MS, now_ms);
        }
        is_ill
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u16) -> ProxyServer {
        ProxyServer::Internet(([127, 0, 0, 1], 1000 + number).into())
    }

    fn shop(servers: Vec<ProxyServer>) -> ProxyApplication {
        ProxyApplication { name: "shop".to_owned(), wire: ProxyWire::Http, servers }
    }

    fn application(count: u16) -> Application {
        Application::new(&shop((0..count).map(address).collect()), None, &ProxyConfig::default())
    }

    #[test]
    fn servers_that_stay_keep_what_is_known_of_them_and_others_vanish() {
        let before = application(3);
        (0..20).for_each(|_| _ = before.servers[2].note(true, 0));
        let after =
            Application::new(&shop(vec![address(2), address(7)]), Some(&before), &ProxyConfig::default());
        assert!(after.is_at(&[address(2), address(7)]) && !after.is_at(&[address(7), address(2)]));
        assert!(!after.servers[0].is_well(0) && after.servers[1].is_well(0));
        assert_eq!(after.vanished(&before).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(after.index_of(&before.servers[2]), Some(0));
        assert_eq!(after.index_of(&before.servers[0]), None);
    }

    #[test]
    fn a_server_is_ill_by_the_share_of_failures_and_comes_back() {
        let server = &application(1).servers[0];
        assert!((0..19).all(|_| !server.note(true, 0)), "a count alone says nothing");
        assert!(server.note(true, 100) && !server.is_well(1_099) && server.is_well(1_100));
        assert!(!server.note(false, 2_000), "well again");
        assert!((0..40).all(|number| !server.note(number % 3 == 0, 2_000)), "a third fails");
        (0..20).for_each(|_| _ = server.note(true, 3_000));
        let mut now_ms = 3_000;
        for ill_ms in [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] {
            assert!(!server.is_well(now_ms + ill_ms - 1) && server.is_well(now_ms + ill_ms), "{ill_ms}");
            // While it is ill, failures of those who were there before say nothing new.
            assert!(!server.note(true, now_ms + ill_ms - 1));
            now_ms += ill_ms;
            assert!(!server.note(true, now_ms), "one failure is enough behind an illness");
        }
    }

    #[test]
    fn a_server_that_checks_have_found_ill_is_asked_only_where_all_are() {
        let servers = application(2);
        let fails = || crate::proxy::verdict::Checked { has_passed: false, words: String::new() };
        (0..3).for_each(|_| _ = servers.servers[0].verdict.note(fails()));
        assert!((0..100).all(|draw| servers.choose(draw << 31, None, 0) == 1));
        assert_eq!(servers.choose(0, Some(1), 0), 0, "the only other one");
        (0..3).for_each(|_| _ = servers.servers[1].verdict.note(fails()));
        assert_eq!(servers.choose(0, None, 0), 0);
    }

    #[test]
    fn a_client_stays_with_a_server_unless_that_is_ill_or_full() {
        let config = ProxyConfig { limit: staunch_engine::PlacesLimit::Fixed(1), ..ProxyConfig::default() };
        let servers: Vec<_> = (0..3).map(address).collect();
        let servers = Application::new(&shop(servers), None, &config);
        let first = servers.choose_for(7, Standing::default(), None, 0).expect("a server");
        assert!((0..100).all(|_| servers.choose_for(7, Standing::default(), None, 0) == Some(first)));
        let second = servers.choose_for(7, Standing::default(), Some(first), 0).expect("another");
        (0..20).for_each(|_| _ = servers.servers[first].note(true, 0));
        assert_eq!(
            (servers.choose_for(7, Standing::default(), None, 0), second != first),
            (Some(second), true)
        );
        assert_eq!(servers.choose_for(7, Standing::default(), None, ILL_MS), Some(first), "it goes back");
        let asker = |slot| staunch_engine::Address {
            worker: 0,
            slot,
            generation: 0,
            stream: staunch_engine::StreamRef::ONLY,
        };
        (0..20).for_each(|slot| {
            _ = servers.servers[first].places.ask(asker(slot), Standing::default(), ILL_MS, &mut Vec::new())
        });
        assert_eq!(
            servers.choose_for(7, Standing::default(), None, ILL_MS),
            Some(second),
            "its line is full"
        );
    }

    #[test]
    fn the_server_with_less_before_it_is_chosen_and_an_ill_one_is_not() {
        let servers = application(2);
        let address = staunch_engine::Address {
            worker: 0,
            slot: 0,
            generation: 0,
            stream: staunch_engine::StreamRef::ONLY,
        };
        let _ = servers.servers[0].places.ask(address, Standing::default(), 0, &mut Vec::new());
        let draw = 1 << 32;
        assert_eq!((servers.choose(draw, None, 0), servers.choose(draw, Some(1), 0)), (1, 0));
        (0..20).for_each(|_| _ = servers.servers[1].note(true, 0));
        assert_eq!(servers.choose(draw, None, 0), 0);
        (0..20).for_each(|_| _ = servers.servers[0].note(true, 0));
        assert_eq!(servers.choose(draw, None, 0), 1, "where all are ill, all are asked");
    }
}
