//! What is played on the plant, and what came of it. Values only; the seed decides everything that is by
//! chance.

use staunch_gate::controller::Settings;
use staunch_gate::observation::State;

/// A rate from a moment on, until the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phase {
    pub(crate) from_s: f64,
    pub(crate) per_s: f64,
}

/// How long a connection takes the server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Service {
    Fixed(f64),
    Exponential(f64),
}

/// The processor is taken away from the server now and then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stalls {
    pub(crate) every_s: f64,
    pub(crate) ms: (f64, f64),
    /// The whole machine, the gate's daemon too.
    pub(crate) whole: bool,
}

/// Clients of a share cannot send now and then, and after that send all at once: as of a machine that is many
/// clients, and stands still.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pauses {
    pub(crate) every_s: f64,
    pub(crate) ms: (f64, f64),
    pub(crate) share: f64,
}

/// A scenario; [`Default`] is an honest crowd at rest.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) seconds: f64,
    /// What is counted begins here.
    pub(crate) measure_s: f64,
    pub(crate) service: Service,
    pub(crate) backlog: usize,
    /// Whether the server accepts at once and reads late.
    pub(crate) eager: bool,
    /// The server keeps newcomers out itself from a line of so many seconds on, until half of it is left.
    pub(crate) valve_s: Option<f64>,
    /// RST a second for connections the server has forgotten: its listener drops them.
    pub(crate) stray_per_s: f64,
    pub(crate) arrivals: Vec<Phase>,
    /// Arrivals come in groups of this mean size (geometric).
    pub(crate) group: f64,
    pub(crate) known_share: f64,
    pub(crate) prefixes: u32,
    /// Share of arrivals that come from prefix 0.
    pub(crate) greedy_share: f64,
    /// Known clients that come again as soon as they were answered.
    pub(crate) closed: u32,
    pub(crate) patience_s: f64,
    pub(crate) flood: Vec<Phase>,
    pub(crate) syn_cost_ns: f64,
    pub(crate) shed_cost_ns: f64,
    /// Reception has a processor of its own.
    pub(crate) own_reception: bool,
    pub(crate) round_trip_ms: (f64, f64),
    /// Connections a second that are opened and never used, and how long they stay.
    pub(crate) silent_per_s: f64,
    pub(crate) silent_stay_s: f64,
    /// Such as are opened at the start and stay for ever.
    pub(crate) silent_ever: usize,
    /// Connections the tracker believes to wait, and which do not.
    pub(crate) phantoms: u64,
    /// Connections of a crowd before, which stand in line at the start; their clients have gone.
    pub(crate) left_behind: usize,
    /// Kernels go on asking for clients who have gone, and close the connection if they get it.
    pub(crate) ghosts: bool,
    /// The server is so many times slower from a moment until another.
    pub(crate) slow: Option<(f64, f64, f64)>,
    /// Share of clients that send late, by 100 to 300 ms.
    pub(crate) slow_share: f64,
    pub(crate) stalls: Option<Stalls>,
    /// Of each period of so many seconds a busy server has this share of its processor, and stands still for
    /// the rest: the quota of a container.
    pub(crate) quota: Option<(f64, f64)>,
    pub(crate) pauses: Option<Pauses>,
    pub(crate) tick_ms: f64,
    /// Share of ticks that are left out, and that come up to 20 ms late.
    pub(crate) lost_ticks: f64,
    pub(crate) late_ticks: f64,
    pub(crate) tracker: bool,
    /// Requests a second on standing connections, and the processor time of each.
    pub(crate) keep_alive: (f64, f64),
    pub(crate) settings: Settings,
    pub(crate) gated: bool,
}

impl Default for Scenario {
    fn default() -> Scenario {
        Scenario {
            seed: 1,
            seconds: 10.0,
            measure_s: 0.0,
            service: Service::Exponential(300e-6),
            backlog: 4096,
            eager: false,
            valve_s: None,
            stray_per_s: 0.0,
            arrivals: Vec::new(),
            group: 1.0,
            known_share: 0.0,
            prefixes: 1,
            greedy_share: 0.0,
            closed: 0,
            patience_s: 1.0,
            flood: Vec::new(),
            syn_cost_ns: 5_000.0,
            shed_cost_ns: 160.0,
            own_reception: false,
            round_trip_ms: (0.0, 0.0),
            silent_per_s: 0.0,
            silent_stay_s: 3.0,
            silent_ever: 0,
            phantoms: 0,
            left_behind: 0,
            ghosts: false,
            slow: None,
            slow_share: 0.0,
            stalls: None,
            quota: None,
            pauses: None,
            tick_ms: 5.0,
            lost_ticks: 0.0,
            late_ticks: 0.0,
            tracker: true,
            keep_alive: (0.0, 0.0),
            settings: Settings::default(),
            gated: true,
        }
    }
}

impl Service {
    /// The mean, in seconds.
    pub(crate) fn mean_s(self) -> f64 {
        match self {
            Service::Fixed(mean) | Service::Exponential(mean) => mean,
        }
    }
}

impl Scenario {
    /// Connections a second the server can do.
    pub(crate) fn capacity(&self) -> f64 {
        let share = self.quota.map_or(1.0, |(_, share)| share);
        share / (self.service.mean_s() + if self.gated { self.syn_cost_ns / 1e9 } else { 0.0 })
    }

    /// This scenario with these multiples of capacity offered, each from a moment on.
    pub(crate) fn offered(mut self, phases: &[(f64, f64)]) -> Scenario {
        let capacity = self.capacity();
        self.arrivals =
            phases.iter().map(|&(from_s, times)| Phase { from_s, per_s: times * capacity }).collect();
        self
    }
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// Answered within patience, and all answered, from `measure_s` on.
    pub(crate) good: u64,
    pub(crate) answered: u64,
    /// From the SYN that was let in to the answer, in seconds, sorted.
    pub(crate) admitted_s: Vec<f64>,
    /// SYN of honest clients that were shed by the gate.
    pub(crate) shed_honest: u64,
    pub(crate) shed_forged: u64,
    /// Answered of prefix 0.
    pub(crate) good_greedy: u64,
    /// Time the server had nothing to do, from `measure_s` on.
    pub(crate) idle_s: f64,
    pub(crate) measured_s: f64,
    pub(crate) changes: Vec<(f64, State, String)>,
    /// Every tick: when, and how long one who comes then has to wait in truth.
    pub(crate) waits: Vec<(f64, f64)>,
    /// First and last moment at which unknown sources had to show that they are there.
    pub(crate) verified_s: Option<(f64, f64)>,
    pub(crate) hints: u64,
    /// SYN shed though the server had nothing to do, and nobody had come in, for a second.
    pub(crate) outages: u64,
    pub(crate) last_rate: f64,
}

impl Outcome {
    pub(crate) fn good_per_s(&self) -> f64 {
        self.good as f64 / self.measured_s
    }

    pub(crate) fn percentile_s(&self, share: f64) -> f64 {
        let last = self.admitted_s.len().saturating_sub(1);
        self.admitted_s.get((last as f64 * share) as usize).copied().unwrap_or(0.0)
    }

    /// Seconds from `step_s` to the first change to `state` after it.
    pub(crate) fn until(&self, state: State, step_s: f64) -> Option<f64> {
        let found = self.changes.iter().find(|(at, to, _)| *to == state && *at >= step_s);
        found.map(|(at, ..)| at - step_s)
    }

    /// Seconds from `step_s` to when the wait was above `bound_s` last.
    pub(crate) fn settled(&self, step_s: f64, end_s: f64, bound_s: f64) -> f64 {
        let inside = self.waits.iter().filter(|(at, _)| (step_s..end_s).contains(at));
        inside.filter(|(_, wait)| *wait > bound_s).map(|(at, _)| at - step_s).fold(0.0, f64::max)
    }

    /// The most changes of state within any minute.
    pub(crate) fn changes_a_minute(&self) -> usize {
        let at: Vec<f64> = self.changes.iter().map(|change| change.0).collect();
        at.iter()
            .map(|first| at.iter().filter(|t| (*first..first + 60.0).contains(*t)).count())
            .max()
            .unwrap_or(0)
    }

    pub(crate) fn busy_share(&self) -> f64 {
        1.0 - self.idle_s / self.measured_s
    }
}
