//! How clients are spread over the processes or threads of a pool: each is counted, and counted once.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use staunch_lab::{MODELS, PoolUse, meter};

use crate::model::{PATIENCE, POOL, Running, tell};

/// Clients of each model, one after the other.
const CLIENT_COUNT: u64 = 30;

#[test]
fn every_client_is_counted_once() {
    for model in MODELS {
        let mut running = Running::start_with(model, "true", &["--cpus", &first_cpu()]);
        for _ in 0..CLIENT_COUNT {
            assert_eq!(running.ask(1000).ok(), Some(1000), "{}", model.name);
        }
        tell(running.server.process_id(), Signal::TERM);
        let status = running.server.end().unwrap_or_else(|| panic!("{}: it does not end", model.name));
        assert!(status.success(), "{}: {status}", model.name);
        let said = running.server.last_words();
        let counts = meter::parse(&said);
        let takers = match model.pool {
            PoolUse::None if model.name == "epoll-per-core" => 1,
            PoolUse::None => 0,
            PoolUse::Processes | PoolUse::Threads => POOL,
        };
        assert_eq!(counts.len(), takers, "{}: {said}", model.name);
        if takers > 0 {
            assert_eq!(counts.iter().sum::<u64>(), CLIENT_COUNT, "{}: {said}", model.name);
        }
    }
}

/// A child that died is not forgotten: its successor counts on.
#[test]
fn a_successor_counts_on() {
    for name in ["prefork", "prefork-flock", "prefork-mutex"] {
        let model = MODELS.iter().find(|model| model.name == name).expect("a model");
        let mut running = Running::start(model);
        assert_eq!(running.ask(1000).ok(), Some(1000), "{name}");
        let children = all_children(&running);
        for &child in &children {
            tell(child, Signal::KILL);
        }
        running.assert_gone(&children);
        running.assert_serves();
        tell(running.server.process_id(), Signal::TERM);
        running.server.end().unwrap_or_else(|| panic!("{name}: it does not end"));
        let said = running.server.last_words();
        assert_eq!(meter::parse(&said).len(), POOL, "{name}: {said}");
        assert_eq!(meter::parse(&said).iter().sum::<u64>(), 2, "{name}: {said}");
    }
}

/// The children of a pool. It says where it listens before it makes them.
fn all_children(running: &Running) -> Vec<u32> {
    let start = Instant::now();
    loop {
        match running.children() {
            children if children.len() == POOL => return children,
            children if start.elapsed() > PATIENCE => panic!("{}: {children:?}", running.model.name),
            _ => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// A processor this test may use.
fn first_cpu() -> String {
    let cpus = staunch_netio::host::cpu::available_cpus().expect("processors");
    cpus[0].to_string()
}
