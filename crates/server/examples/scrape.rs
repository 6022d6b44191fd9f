//! How long a scrape of a large server takes: the figures of 64 workers, and their text.
//!
//! `scrape [WORKERS]` does it a thousand times and says the mean and the longest in microseconds. It is for
//! people: no test depends on a time.

use std::sync::Arc;
use std::time::Instant;

use staunch_engine::Stats;
use staunch_server::About;
use staunch_server::log::{AccessLog, ErrorLog};
use staunch_server::metrics::{self, ContentFigures, SiteFigures, Sources};

const TIMES: u32 = 1000;

fn main() {
    let workers = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(64);
    let stats = (0..workers).map(|_| Arc::new(Stats::default())).collect();
    let about = About { version: "0", io: "epoll", stats };
    let site = SiteFigures { name: "a.example".to_owned(), ..SiteFigures::default() };
    let content = move || ContentFigures { sites: vec![site.clone()], ..ContentFigures::default() };
    let log = AccessLog::new(Arc::new(|_| {}));
    // tidy: allow(clock): an example that measures.
    let sources = Sources::new(
        about,
        1000,
        Instant::now(),
        Box::new(content),
        (log, ErrorLog::new().expect("a descriptor")),
        false,
    );
    let (mut total_us, mut longest_us, mut bytes) = (0, 0, 0);
    for _ in 0..TIMES {
        // tidy: allow(clock): an example that measures.
        let start = Instant::now();
        bytes = metrics::text(&sources.snapshot()).len();
        let us = start.elapsed().as_micros();
        (total_us, longest_us) = (total_us + us, longest_us.max(us));
    }
    let mean_us = total_us / u128::from(TIMES);
    println!("{workers} workers, {bytes} bytes: mean {mean_us} us, longest {longest_us} us");
}
