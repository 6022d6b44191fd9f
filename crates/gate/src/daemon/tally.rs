//! What changed between two readings of the counters: the counted part of an observation.
//!
//! It must never take a counter that went back for a large number.

use crate::layout::{AGE_COUNT, CLASS_COUNT, Counters, Flows, age_ns};
use crate::observation::{Connections, Observation};

/// What was counted between two readings.
pub(super) fn between(before: &Counters, now: &Counters) -> Observation {
    let difference = |of: &dyn Fn(&Counters, usize) -> u64| -> [u64; CLASS_COUNT] {
        std::array::from_fn(|class| of(now, class).saturating_sub(of(before, class)))
    };
    Observation {
        syn: difference(&Counters::syn),
        passed: difference(&Counters::passed),
        shed: now.shed().saturating_sub(before.shed()),
        connections: now.flows.as_ref().map(|flows| connections(before.flows.as_ref(), flows)),
        ..Observation::default()
    }
}

/// Tells each port how many were let through to the others.
pub(super) fn tell_of_others(observations: &mut [Observation]) {
    let passed = |observation: &Observation| observation.passed.iter().sum::<u64>();
    let all: u64 = observations.iter().map(passed).sum();
    observations.iter_mut().for_each(|observation| observation.elsewhere = all - passed(observation));
}

fn connections(before: Option<&Flows>, now: &Flows) -> Connections {
    let since = |of: fn(&Flows) -> u64| of(now).saturating_sub(before.map_or(0, of));
    let ages = ages_since(before, now);
    Connections {
        established: since(|flows| flows.established),
        asked: since(|flows| flows.asked),
        begun: since(|flows| flows.begun),
        spoken: since(|flows| flows.spoken),
        ended: since(|flows| flows.ended),
        reads: since(|flows| flows.reads),
        waiting: now.waiting(),
        silent: now.silent(),
        // The youngest are counted with all below the first bound.
        wait_ns_min: ages
            .iter()
            .position(|count| *count > 0)
            .map(|age| if age == 0 { 0 } else { age_ns(age) }),
        wait_ns_p50: percentile_ns(&ages, 0.5),
        wait_ns_p99: percentile_ns(&ages, 0.99),
    }
}

/// Ages counted between two readings.
pub(super) fn ages_since(before: Option<&Flows>, now: &Flows) -> [u64; AGE_COUNT] {
    std::array::from_fn(|age| now.ages[age].saturating_sub(before.map_or(0, |before| before.ages[age])))
}

/// So many of those counted were at most this old: the upper bound of where they were counted.
pub(super) fn percentile_ns(ages: &[u64], share: f64) -> Option<u64> {
    let wanted = (ages.iter().sum::<u64>() as f64 * share).ceil() as u64;
    let mut below = 0;
    let reaches = |count: &u64| {
        below += count;
        below >= wanted
    };
    (wanted > 0).then(|| ages.iter().position(reaches)).flatten().map(|age| age_ns(age + 1))
}

/// How many prefixes came in the last whole window.
#[derive(Debug, Default)]
pub(super) struct Window {
    number: u32,
    began: u64,
    latest: u32,
}

impl Window {
    /// The program has this window, and has seen so many prefixes since its start.
    pub(super) fn prefixes(&mut self, number: u32, seen: u64) -> u32 {
        if number != self.number {
            self.latest = u32::try_from(seen.saturating_sub(self.began)).unwrap_or(u32::MAX);
            (self.number, self.began) = (number, seen);
        }
        self.latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flows(begun: u64, ages: &[(usize, u64)]) -> Flows {
        let mut all = [0; AGE_COUNT];
        ages.iter().for_each(|(age, count)| all[*age] = *count);
        let (left_silent, left_waiting) = (1, 2);
        let reads = begun * 2;
        Flows {
            established: 12,
            tracked: 12,
            asked: 11,
            begun,
            spoken: 0,
            left_silent,
            left_waiting,
            ended: 0,
            reads,
            ages: all,
        }
    }

    #[test]
    fn an_observation_is_what_changed() {
        let before = Counters {
            outcomes: [[5, 0, 0, 0, 0, 0], [0; 6], [1; 6]],
            flows: Some(flows(2, &[(4, 2)])),
            ..Counters::default()
        };
        let now = Counters {
            outcomes: [[9, 3, 0, 0, 0, 0], [0; 6], [2; 6]],
            flows: Some(flows(8, &[(4, 2), (8, 5), (12, 1)])),
            ..Counters::default()
        };
        let seen = between(&before, &now);
        assert_eq!((seen.syn, seen.passed, seen.shed), ([7, 0, 6], [4, 0, 3], 6));
        let connections = seen.connections.unwrap();
        assert_eq!((connections.begun, connections.reads, connections.waiting), (6, 12, 1));
        assert_eq!((connections.asked, connections.silent), (0, 0));
        assert_eq!(connections.wait_ns_min, Some(age_ns(8)));
        assert_eq!((connections.wait_ns_p50, connections.wait_ns_p99), (Some(age_ns(9)), Some(age_ns(13))));
        assert_eq!(between(&now, &now).connections.unwrap().wait_ns_p50, None);
    }

    #[test]
    fn each_port_is_told_of_the_others() {
        let mut seen =
            [[1, 2, 3], [0, 10, 0], [0; 3]].map(|passed| Observation { passed, ..Observation::default() });
        tell_of_others(&mut seen);
        assert_eq!(seen.map(|one| one.elsewhere), [10, 6, 16]);
    }

    #[test]
    fn prefixes_are_those_of_the_last_whole_window() {
        let mut window = Window::default();
        assert_eq!(
            [(0, 4), (1, 7), (1, 9), (2, 12), (2, 20)].map(|(number, seen)| window.prefixes(number, seen)),
            [0, 7, 7, 5, 5]
        );
    }
}
