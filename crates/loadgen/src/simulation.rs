//! The generator on the simulated network: any lane, any server, any fault, and every request accounted for.
//!
//! `STAUNCH_SEEDS=100000` runs more, `STAUNCH_SEED=17` one. A failing seed is printed with how to run it
//! again. It must never assert a time measured by the clock: time is the simulator's.

mod judge;
mod scenarios;
mod script;
mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use staunch_netio::simulated::Simulated;
use staunch_netio::{Capacity, Io};

use crate::fitting;
use crate::network_side::NetworkSide;
use crate::outcome::Counts;
use crate::tally::{Report, Span};
use crate::worker::{GRACE_NS, RunControl, Times, Worker};
use world::World;

/// No run of the worlds drawn here needs as many turns: one that does spins.
const TURNS_MAX: u64 = 200_000;

/// What a run came to: the same for the same seed.
#[derive(Debug, Default, PartialEq)]
struct Sums {
    /// In the order of the lanes.
    lanes: Vec<Counts>,
    /// Of the main lane.
    span: Span,
    statuses: BTreeMap<u16, u64>,
    turns: u64,
}

impl Sums {
    fn add(&mut self, report: Report) {
        self.lanes.resize(report.tallies.len(), Counts::default());
        self.span.merge(&report.tallies[0].span);
        for (sum, tally) in self.lanes.iter_mut().zip(&report.tallies) {
            *sum += tally.counts;
            for (status, count) in &tally.statuses {
                *self.statuses.entry(*status).or_default() += count;
            }
        }
        report.give_back();
    }
}

/// A plan with an open lane, for tests of what is said of a run.
pub(crate) fn open_plan() -> crate::Plan {
    let kind = crate::plan::LaneKind::Open {
        arrivals: crate::schedule::Arrivals::Constant,
        profile: crate::schedule::Profile::Steady { rate_per_s: 10.0 },
        slots: crate::plan::SlotPlan::PerRequest,
    };
    world::plain(kind, std::time::Duration::from_secs(1), None, Vec::new()).plan
}

/// A run under way.
struct Run {
    worker: Worker<Simulated>,
    control: RunControl,
    send: Sender<Report>,
    reports: Receiver<Report>,
    sums: Sums,
}

impl Run {
    fn new(world: &World) -> Self {
        let mut io = Simulated::new(world.seed, world.faults, Capacity::connecting(world.capacity));
        for script in &world.scripts {
            io.listener(script.clone());
        }
        let plan = &world.plan;
        let began_ns = io.now_ns();
        let ns = |duration: std::time::Duration| duration.as_nanos() as u64;
        let until_ns = plan.duration.map_or(u64::MAX, |duration| began_ns + ns(duration));
        let patience_ns = plan.lanes.iter().filter_map(|lane| lane.patience).max().map_or(0, ns);
        let times = Times { began_ns, until_ns, grace_ns: patience_ns.max(GRACE_NS), spin_ns: 0 };
        let lanes = fitting::fit(plan, world.thread, None)
            .expect("a plan that can be carried out")
            .begin(began_ns, until_ns);
        let worker = Worker::new(NetworkSide::new(io, world.thread as u32), lanes, times);
        let (send, reports) = channel();
        let lanes = vec![Counts::default(); plan.lanes.len()];
        let sums = Sums { lanes, ..Sums::default() };
        Self { worker, control: RunControl::default(), send, reports, sums }
    }

    /// Milliseconds since the begin.
    fn now_ms(&self) -> u64 {
        (self.worker.net.io.now_ns() - self.worker.times.began_ns) / 1_000_000
    }

    /// Runs a turn. Returns whether there is another.
    fn turn(&mut self) -> bool {
        self.sums.turns += 1;
        assert!(self.sums.turns < TURNS_MAX, "the worker spins, or never ends");
        let more = self.worker.turn(&self.control, &self.send).expect("the simulator does not fail");
        self.reports.try_iter().for_each(|report| self.sums.add(report));
        more
    }
}

/// Runs one seed, and looks at the worker after each turn. In turn `spoil_at` a request is counted too much.
fn run(seed: u64, spoil_at: u64) -> Sums {
    let world = world::draw(seed);
    let mut run = Run::new(&world);
    loop {
        let now_ms = run.now_ms();
        world.factors.iter().filter(|(at_ms, _)| *at_ms <= now_ms).for_each(|(_, factor)| {
            run.control.set_factor(*factor);
        });
        if world.stop_ms.is_some_and(|at_ms| at_ms <= now_ms) {
            run.control.stop();
        }
        if run.sums.turns == spoil_at {
            run.worker.lanes[0].client().tally.counts.offered += 1;
        }
        if !run.turn() {
            break;
        }
        judge::turn(&mut run.worker, &run.sums.lanes, world.keeps_time());
    }
    judge::end(&mut run.worker, &run.sums.lanes, &run.sums.statuses, &world);
    run.sums
}

/// Runs these seeds, some of them twice, and gives all their counts.
fn try_seeds(seeds: impl Iterator<Item = u64>) -> Counts {
    let mut all = Counts::default();
    for seed in seeds {
        let again = format!("STAUNCH_SEED={seed} cargo test --profile fast -p staunch-loadgen simulation");
        let Ok(sums) = catch_unwind(AssertUnwindSafe(|| run(seed, u64::MAX))) else {
            panic!("seed {seed} fails; again with: {again}")
        };
        if seed % 10 == 0 {
            assert_eq!(sums, run(seed, u64::MAX), "seed {seed} is not the same again; {again}");
        }
        sums.lanes.into_iter().for_each(|counts| all += counts);
    }
    all
}

#[test]
fn every_seed_accounts_for_every_request() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("STAUNCH_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("STAUNCH_SEEDS").unwrap_or(1_000),
    };
    let count = seeds.end - seeds.start;
    let mut all = Counts::default();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|first| seeds.clone().skip(first).step_by(threads))
            .map(|seeds| scope.spawn(|| try_seeds(seeds)))
            .collect();
        for part in parts {
            all += part.join().unwrap_or_else(|_| panic!("a seed has failed, see above"));
        }
    });
    println!("{count} seeds: {all:?}");
    if count >= 1_000 {
        assert!(all.in_time > 0 && all.late > 0 && all.wrong_answer > 0, "{all:?}");
        assert!(all.refused > 0 && all.reset > 0 && all.timed_out > 0 && all.failed > 0, "{all:?}");
        assert!(all.unsent > 0 && all.unfinished > 0 && all.connections_ended > 0, "{all:?}");
        assert!(all.syn_retransmitted > 0, "{all:?}");
    }
}

#[test]
fn canary_a_request_counted_too_much_is_found() {
    let long: Vec<u64> = (0..20).filter(|seed| run(*seed, u64::MAX).turns > 10).collect();
    assert!(long.len() > 10, "most runs are longer than ten turns");
    for seed in long {
        let spoilt = catch_unwind(AssertUnwindSafe(|| run(seed, 5)));
        assert!(spoilt.is_err(), "seed {seed}: the judge does not see a wrong account");
    }
}
