//! Live data of all sites that have it, as the program and each worker's handler reach it.
//!
//! It owns the list, which stays as it was at the start: a site is found in it by its name, whatever tables
//! of sites come later. It must never let one site see anything of another.

use std::io::{self, BufWriter, Read, Write};
use std::sync::{Arc, mpsc};

use staunch_engine::{Notice, Post};
use staunch_live::{read_states, write_end, write_state};

use super::config::{LiveConfig, LiveError};
use super::counts::{LiveFigures, TRANSPORTS};
use super::follower::{Letters, LiveFollowed};
use super::hands::Carried;
use super::shared::{LiveShared, title};
use crate::mail::Mail;

/// The live data of all sites that have it.
pub struct LiveSites {
    pub(super) sites: Vec<Arc<LiveShared>>,
    letters: Arc<Letters>,
}

impl LiveSites {
    /// Live data of these sites for so many workers, with what their stores hold. What the process before
    /// held without a store comes by `carried`, written by its `lend`. `notice` logs a damaged store, a new
    /// epoch after a crash, and later failures of a store. No thread is started yet.
    ///
    /// # Errors
    /// A setting has no meaning, a store cannot be used, or what was carried ends too early.
    pub fn open(
        configs: Vec<LiveConfig>,
        workers: u16,
        carried: Option<&mut dyn Read>,
        notice: &Notice,
    ) -> Result<Arc<Self>, LiveError> {
        let carried = carried.map(|mut input| read_states(&mut input)).transpose();
        let mut carried = carried.map_err(LiveError::Carried)?.unwrap_or_default();
        let open = |(number, config): (u16, LiveConfig)| {
            let kept = carried.remove(&config.site);
            LiveShared::open(config, number, workers, kept, Arc::clone(notice))
        };
        let sites = (0..).zip(configs).map(open).collect::<Result<_, _>>()?;
        for (site, _) in carried.iter().filter(|(_, kept)| !kept.topics.is_empty()) {
            notice(&format!("{}: no site of that name has live data any more, it is dropped", title(site)));
        }
        Ok(Arc::new(Self { sites, letters: Arc::default() }))
    }

    /// Keeps letters of all sites for who follows them, who is woken by `wake`. To be called before `start`.
    pub fn follow(&self, wake: Arc<dyn Fn() + Send + Sync>) {
        self.letters.follow(wake);
        self.iter().for_each(|site| site.follow(&self.letters));
    }

    /// What happened next, for who follows. Who has heard all of it is told everything anew of sites of which
    /// letters found no room.
    pub fn next_followed(&self) -> Option<LiveFollowed> {
        let next = self.letters.next();
        if next.is_none() {
            self.letters
                .behind()
                .into_iter()
                .for_each(|site| self.sites[usize::from(site)].introduce_again());
        }
        next
    }

    /// The live data of the site with a number, as letters have it.
    pub fn site(&self, number: usize) -> Option<&LiveShared> {
        self.sites.get(number).map(|site| &**site)
    }

    /// Numbers nothing until `take_over`, because another process may still come back: publications wait. To
    /// be called before `start`.
    pub fn await_former(&self) {
        self.iter().for_each(LiveShared::await_former);
    }

    /// Begins to number: the process before is gone, or will never number again.
    pub fn take_over(&self) {
        self.iter().for_each(LiveShared::go_on);
    }

    /// Starts the threads behind it. To be called once.
    ///
    /// # Errors
    /// One cannot be started.
    pub fn start(&self, post: &Post<Mail>) -> Result<(), LiveError> {
        self.sites.iter().try_for_each(|site| site.start(post))
    }

    /// The live data of each site.
    pub fn iter(&self) -> impl Iterator<Item = &LiveShared> {
        self.sites.iter().map(|site| &**site)
    }

    /// Ends the writers' threads and waits until they have released their stores.
    pub fn end(&self) {
        self.iter().for_each(LiveShared::end);
    }

    /// Whether anything is held without a store, so that `lend` has something to write.
    pub fn has_unstored(&self) -> bool {
        self.iter().any(|site| site.state_folder().is_none())
    }

    /// Stops numbering for a new process, at the begin of an upgrade: stores are released, and what is held
    /// without one is written to `out` by a thread of its own. Publications wait until `take_back` or
    /// `hand_over`.
    ///
    /// # Errors
    /// The thread cannot be started; then `take_back` is due.
    pub fn lend(&self, out: impl Write + Send + 'static) -> io::Result<()> {
        let (carry, told) = mpsc::channel::<Carried>();
        self.iter().for_each(|site| site.lend(&carry));
        drop(carry);
        let write = move || {
            let mut out = BufWriter::new(out);
            let write = |(site, letter): Carried| write_state(&site, &letter, &mut out);
            // An error is a new process that is gone, of which whoever started it hears.
            let _ = told.into_iter().try_for_each(write).and_then(|()| write_end(&mut out));
        };
        std::thread::Builder::new().name("live carrier".into()).spawn(write).map(drop)
    }

    /// Goes on numbering, because the new process did not come to serve.
    pub fn take_back(&self) {
        self.iter().for_each(LiveShared::go_on);
    }

    /// Leaves the numbering to the new process, which serves now. Publications here get 503 from now on, so
    /// that publishers go to the new process.
    pub fn hand_over(&self) {
        self.iter().for_each(LiveShared::hand_over);
    }

    /// Readers are to leave, evenly within so many seconds.
    pub fn drain(&self, within_s: u64) {
        self.iter().for_each(|site| site.drain(within_s));
    }

    /// Readers at this moment, of all sites together.
    pub fn readers(&self) -> u64 {
        self.iter().map(LiveShared::readers).sum()
    }

    /// Readers of streams of events at this moment, of all sites together.
    pub fn streams(&self) -> u64 {
        self.figures()
            .readers
            .iter()
            .filter(|(transport, _)| transport == TRANSPORTS[0])
            .map(|(_, count)| count)
            .sum()
    }

    /// Everything that is counted, of all sites together.
    pub fn figures(&self) -> LiveFigures {
        let mut sum = LiveFigures::default();
        self.iter().for_each(|site| sum.add(&site.figures()));
        sum
    }
}
