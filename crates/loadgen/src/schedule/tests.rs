//! What holds of every schedule: order, rate, shares, changes on the way.

use proptest::prelude::*;

use super::*;

const SECOND_NS: f64 = 1e9;

fn steady(rate_per_s: f64) -> Profile {
    Profile::Steady { rate_per_s }
}

fn schedule(arrivals: &Arrivals, profile: &Profile, seed: u64) -> Schedule {
    share_of(arrivals, profile, seed, Share::WHOLE)
}

fn share_of(arrivals: &Arrivals, profile: &Profile, seed: u64, share: Share) -> Schedule {
    Schedule::new(arrivals, profile, seed, share).expect("arguments are right")
}

/// The next so many times.
fn take(schedule: &mut Schedule, number: usize) -> Vec<u64> {
    std::iter::from_fn(|| schedule.next_ns()).take(number).collect()
}

/// All times before `end_ns`; the next is not taken.
fn until(schedule: &mut Schedule, end_ns: u64) -> Vec<u64> {
    let mut times = Vec::new();
    while schedule.peek_ns().is_some_and(|next_ns| next_ns < end_ns) {
        times.extend(schedule.next_ns());
    }
    times
}

/// Arrivals that are due before `time_s` by the profile, by plain summing.
fn due(profile: &Profile, time_s: f64) -> f64 {
    match profile {
        Profile::Steady { rate_per_s } => rate_per_s * time_s,
        Profile::Ramp { from, to, over_s } => {
            let within = time_s.min(*over_s);
            from * within + (to - from) * within * within / over_s / 2.0 + to * (time_s - within)
        }
        Profile::Steps(steps) => {
            let (mut left, mut sum) = (time_s, 0.0);
            for (place, (rate, duration)) in steps.iter().enumerate() {
                let within = if place + 1 == steps.len() { left } else { left.min(*duration) };
                sum += rate * within;
                left -= within;
            }
            sum
        }
    }
}

fn profiles(rates: std::ops::Range<f64>) -> impl Strategy<Value = Profile> {
    let rate = move || rates.clone();
    prop_oneof![
        rate().prop_map(steady),
        (rate(), rate(), 0.01..20.0).prop_map(|(from, to, over_s)| Profile::Ramp { from, to, over_s }),
        (rate(), 0.01..20.0).prop_map(|(to, over_s)| Profile::Ramp { from: 0.0, to, over_s }),
        prop::collection::vec((rate(), 0.01..5.0), 1..5).prop_map(Profile::Steps),
        (rate(), rate()).prop_map(|(before, after)| Profile::Steps(vec![
            (before, 1.0),
            (0.0, 2.0),
            (after, 1.0)
        ])),
    ]
}

fn arrivals() -> impl Strategy<Value = Arrivals> {
    prop_oneof![
        Just(Arrivals::Constant),
        Just(Arrivals::Poisson),
        (0.55..0.95).prop_map(|hurst| Arrivals::SelfSimilar { hurst, sources: SOURCES_DEFAULT }),
        prop::collection::vec(0..100_000_000_000_u64, 1..200).prop_map(|mut times| {
            times.sort_unstable();
            Arrivals::Trace(times.into())
        }),
    ]
}

fn factors() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.001..1000.0]
}

fn shares() -> impl Strategy<Value = Share> {
    (1..9_u32).prop_flat_map(|parts| (0..parts).prop_map(move |part| Share { part, parts }))
}

proptest! {
    #[test]
    fn times_never_decrease_whatever_is_changed(
        arrivals in arrivals(),
        profile in profiles(0.001..1e7),
        share in shares(),
        seed: u64,
        changes in prop::collection::vec((0..50_usize, 0.0..3.0, factors()), 0..8),
    ) {
        let mut schedule = share_of(&arrivals, &profile, seed, share);
        let mut last = 0;
        for (number, ahead_s, factor) in changes {
            for _ in 0..number {
                let peeked = schedule.peek_ns();
                let next = schedule.next_ns();
                prop_assert_eq!(next, peeked);
                prop_assert!(next.is_none_or(|next| next >= last));
                last = next.unwrap_or(last);
            }
            schedule.set_factor(last + (ahead_s * SECOND_NS) as u64, factor);
        }
    }

    #[test]
    fn constant_arrivals_are_the_inverse_of_the_integral(
        profile in profiles(1.0..1e5),
        number in 1..5000_usize,
    ) {
        let times = take(&mut schedule(&Arrivals::Constant, &profile, 0), number);
        for (place, time_ns) in times.iter().enumerate() {
            // Arrival k stands where k are due; at a pause, at its end. A nanosecond of rounding to either
            // side.
            let (low, high) = (time_ns.saturating_sub(1), time_ns + 1);
            let k = place as f64;
            let due_by = |time_ns| due(&profile, time_ns as f64 / SECOND_NS);
            prop_assert!(due_by(low) <= k * (1.0 + 1e-12) + 1e-6, "{k}: {time_ns}");
            prop_assert!(due_by(high) >= k * (1.0 - 1e-12) - 1e-6, "{k}: {time_ns}");
        }
    }

    #[test]
    fn all_shares_together_are_the_whole(
        arrivals in arrivals().prop_filter("drawn for each share", |arrivals| *arrivals != Arrivals::Poisson),
        profile in profiles(10.0..1000.0),
        parts in 1..9_u32,
        seed: u64,
        changes in prop::collection::vec((0..1_000_000_000_u64, 0.0..4.0), 0..4),
    ) {
        let times_of = |share| {
            let mut schedule = share_of(&arrivals, &profile, seed, share);
            let (mut now_ns, mut times) = (0, Vec::new());
            for (pause_ns, factor) in &changes {
                now_ns += pause_ns;
                times.extend(until(&mut schedule, now_ns));
                schedule.set_factor(now_ns, *factor);
            }
            times.extend(until(&mut schedule, now_ns + 1_000_000_000));
            times
        };
        let mut union: Vec<u64> = (0..parts).flat_map(|part| times_of(Share { part, parts })).collect();
        union.sort_unstable();
        prop_assert_eq!(union, times_of(Share::WHOLE));
    }

    #[test]
    fn a_change_of_rate_neither_loses_nor_bunches(
        rate in 1.0..10_000.0,
        factors in prop::collection::vec(0.1..10.0, 1..6),
        pause_s in 0.5..3.0,
        ahead: bool,
    ) {
        let mut schedule = schedule(&Arrivals::Constant, &steady(rate), 0);
        let (mut times, mut due, mut now_ns, mut factor_before) = (Vec::new(), 0.0, 0_u64, 1.0);
        for factor in factors.iter().chain([&1.0]) {
            let from_ns = now_ns;
            now_ns += (pause_s * SECOND_NS) as u64;
            times.extend(until(&mut schedule, now_ns));
            if ahead {
                // A time beyond now is taken already: the change begins with it.
                times.extend(schedule.next_ns());
                now_ns = times[times.len() - 1].max(now_ns);
            }
            schedule.set_factor(now_ns, *factor);
            due += (now_ns - from_ns) as f64 / SECOND_NS * rate * factor_before;
            // An arrival is under way; a nanosecond of rounding is a ten-thousandth arrival at most.
            prop_assert!((times.len() as f64 - due).abs() <= 1.0 + 1e-3, "{} for {due}", times.len());
            factor_before = *factor;
        }
        let fastest = factors.iter().copied().fold(1.0, f64::max) * rate;
        let slowest = factors.iter().copied().fold(1.0, f64::min) * rate;
        for pair in times.windows(2) {
            let gap_s = (pair[1] - pair[0]) as f64 / SECOND_NS;
            // A nanosecond of rounding at the fastest rate is more at the slowest.
            let rounding = 3e-9 * fastest / slowest;
            let right = 1.0 / fastest - rounding..=1.0 / slowest + rounding;
            prop_assert!(right.contains(&gap_s), "{gap_s} s at {}", pair[0]);
        }
    }

    #[test]
    fn the_mean_rate_of_poisson_arrivals_is_the_profiles(
        profile in profiles(100.0..5000.0),
        share in shares(),
        seed: u64,
    ) {
        // Five seconds into the profile or more: enough for thousands of arrivals.
        let end_s = 25.0;
        let right = due(&profile, end_s) / f64::from(share.parts);
        let mut schedule = share_of(&Arrivals::Poisson, &profile, seed, share);
        let found = until(&mut schedule, 25_000_000_000).len() as f64;
        prop_assert!((found - right).abs() < 6.0 * right.sqrt(), "{found} for {right}");
    }

    #[test]
    fn a_trace_is_given_as_it_is(mut times in prop::collection::vec(0..1_u64 << 53, 1..100)) {
        times.sort_unstable();
        let trace = Arrivals::Trace(times.clone().into());
        prop_assert_eq!(take(&mut schedule(&trace, &steady(1.0), 0), 200), times);
    }
}

/// Gaps in units of the mean gap, from times of a steady rate.
fn gaps(times: &[u64], rate: f64) -> Vec<f64> {
    times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / SECOND_NS * rate).collect()
}

/// Largest distance between the distribution of `values` and the exponential one of mean 1 (Kolmogorov,
/// Smirnov), times the root of their number: above 1.63 in one of a hundred.
fn distance_from_exponential(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let number = values.len() as f64;
    let distance = |(place, value): (usize, &f64)| {
        let right = 1.0 - (-value).exp();
        (right - place as f64 / number).abs().max((right - (place + 1) as f64 / number).abs())
    };
    values.iter().enumerate().map(distance).fold(0.0, f64::max) * number.sqrt()
}

/// Variance of the counts over their mean: 1 for Poisson arrivals, at any length of the bins.
fn index_of_dispersion(times: &[u64], bin_ns: u64) -> f64 {
    let mut counts = vec![0.0; (times[times.len() - 1] / bin_ns) as usize];
    for time_ns in times {
        if let Some(count) = counts.get_mut((time_ns / bin_ns) as usize) {
            *count += 1.0;
        }
    }
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    counts.iter().map(|count: &f64| (count - mean).powi(2)).sum::<f64>() / counts.len() as f64 / mean
}

#[test]
fn gaps_of_poisson_arrivals_are_exponential_and_independent() {
    for seed in 1..=5 {
        for share in [Share::WHOLE, Share { part: 2, parts: 3 }] {
            let rate = 1000.0 / f64::from(share.parts);
            let times = take(&mut share_of(&Arrivals::Poisson, &steady(1000.0), seed, share), 20_001);
            let distance = distance_from_exponential(gaps(&times, rate));
            assert!(distance < 1.63, "seed {seed}: {distance}");
            for (bin_ns, width) in [(10_000_000, 0.15), (100_000_000, 0.25)] {
                let index = index_of_dispersion(&times, bin_ns);
                assert!((index - 1.0).abs() < width, "seed {seed}, bins of {bin_ns} ns: {index}");
            }
        }
    }
    // The test finds what is not exponential.
    let even = take(&mut schedule(&Arrivals::Constant, &steady(1000.0), 0), 1000);
    assert!(distance_from_exponential(gaps(&even, 1000.0)) > 10.0);
    assert!(index_of_dispersion(&even, 100_000_000) < 0.1);
}

#[test]
fn poisson_arrivals_of_all_shares_are_poisson_again() {
    let share = |part| share_of(&Arrivals::Poisson, &steady(1000.0), 9, Share { part, parts: 4 });
    let mut times: Vec<u64> = (0..4).flat_map(|part| until(&mut share(part), 20_000_000_000)).collect();
    times.sort_unstable();
    let distance = distance_from_exponential(gaps(&times, 1000.0));
    assert!(distance < 1.63, "{distance}");
    assert!((index_of_dispersion(&times, 50_000_000) - 1.0).abs() < 0.2);
    assert_ne!(take(&mut share(0), 100), take(&mut share(1), 100));
}

#[test]
fn poisson_arrivals_of_a_ramp_are_exponential_once_the_ramp_is_taken_out() {
    let profile = Profile::Ramp { from: 0.0, to: 2000.0, over_s: 20.0 };
    let times = until(&mut schedule(&Arrivals::Poisson, &profile, 5), 20_000_000_000);
    let units: Vec<f64> = times.iter().map(|time_ns| due(&profile, *time_ns as f64 / SECOND_NS)).collect();
    let distance = distance_from_exponential(units.windows(2).map(|pair| pair[1] - pair[0]).collect());
    assert!(distance < 1.63, "{distance}");
}

#[test]
fn self_similar_arrivals_follow_a_ramp() {
    // Mean over many seeds, because one run of bursts says little.
    let profile = Profile::Ramp { from: 0.0, to: 400.0, over_s: 10.0 };
    let bursts = Arrivals::SelfSimilar { hurst: 0.7, sources: SOURCES_DEFAULT };
    let (mut early, mut all) = (0, 0);
    for seed in 0..400 {
        let times = until(&mut schedule(&bursts, &profile, seed), 10_000_000_000);
        early += times.iter().filter(|time_ns| **time_ns < 5_000_000_000).count();
        all += times.len();
    }
    assert!((all as f64 / 400.0 / 2000.0 - 1.0).abs() < 0.02, "{all}");
    assert!((early as f64 / all as f64 - 0.25).abs() < 0.01, "{early} of {all}");
}

#[test]
fn the_same_seed_gives_the_same_times_and_another_does_not() {
    for arrivals in [Arrivals::Poisson, Arrivals::SelfSimilar { hurst: 0.8, sources: 8 }] {
        let times = |seed| take(&mut schedule(&arrivals, &steady(100.0), seed), 1000);
        assert_eq!(times(1), times(1));
        assert_ne!(times(1), times(2));
    }
}

#[test]
fn constant_times_are_exact_for_days_at_any_rate() {
    // Ten days, without going through them: constant points are counted.
    for (rate, k, right_ns) in [
        (0.001, 864_u64, 864_000_000_000_000_u64),
        (3.0, 2_592_000, 864_000_000_000_000),
        (1000.0, 864_000_123, 864_000_123_000_000),
        (1e7, 8_640_000_000_007, 864_000_000_000_700),
        (1e9, 864_000_000_000_001, 864_000_000_000_001),
    ] {
        let mut schedule = schedule(&Arrivals::Constant, &steady(rate), 0);
        schedule.points = Points::Constant { next: k, step: 1 };
        assert_eq!(schedule.next_ns(), Some(right_ns), "{rate}/s");
    }
    // Beyond 2^64 ns there is no time.
    let mut schedule = schedule(&Arrivals::Constant, &steady(0.001), 0);
    schedule.points = Points::Constant { next: 18_000_000, step: 1_000_000 };
    assert_eq!(schedule.next_ns(), Some(18_000_000_000_000_000_000));
    assert_eq!(schedule.next_ns(), None);
}

#[test]
fn poisson_keeps_its_gaps_after_days() {
    let mut schedule = schedule(&Arrivals::Poisson, &steady(1e6), 4);
    let Points::Poisson { now, .. } = &mut schedule.points else { panic!("Poisson") };
    *now = 10.0 * 86_400.0 * 1e6;
    let times = take(&mut schedule, 20_001);
    assert!(times[0] >= 864_000_000_000_000);
    // Rounded to whole nanoseconds, a thousandth of the mean gap.
    let distance = distance_from_exponential(gaps(&times, 1e6));
    assert!(distance < 1.63, "{distance}");
}

#[test]
fn steps_change_at_their_time_and_a_pause_is_one() {
    let profile = Profile::Steps(vec![(2.0, 1.0), (0.0, 5.0), (4.0, 0.5), (1.0, 7.0)]);
    let times = take(&mut schedule(&Arrivals::Constant, &profile, 0), 7);
    let half_ns = 500_000_000;
    assert_eq!(
        times,
        [0, half_ns, 12 * half_ns, 12 * half_ns + half_ns / 2, 13 * half_ns, 15 * half_ns, 17 * half_ns]
    );
    let ends = Profile::Steps(vec![(2.0, 1.0), (0.0, 1.0)]);
    assert_eq!(take(&mut schedule(&Arrivals::Constant, &ends, 0), 9), [0, half_ns]);
    let fades = Profile::Ramp { from: 10.0, to: 0.0, over_s: 2.0 };
    assert_eq!(take(&mut schedule(&Arrivals::Constant, &fades, 0), 99).len(), 10);
}

#[test]
fn a_pause_by_factor_holds_all_and_then_goes_on() {
    let mut schedule = schedule(&Arrivals::Constant, &steady(10.0), 0);
    assert_eq!(until(&mut schedule, 250_000_000), [0, 100_000_000, 200_000_000]);
    schedule.set_factor(250_000_000, 0.0);
    assert_eq!(schedule.next_ns(), None);
    schedule.set_factor(1_000_000_000, 2.0);
    assert_eq!(take(&mut schedule, 2), [1_025_000_000, 1_075_000_000]);
}

#[test]
fn a_time_that_was_looked_at_may_come_before_a_pause_once_the_rate_rises() {
    let profile = Profile::Steps(vec![(1.0, 3.0), (0.0, 5.0), (1.0, 1.0)]);
    let mut schedule = schedule(&Arrivals::Constant, &profile, 0);
    schedule.set_factor(0, 0.5);
    assert_eq!(take(&mut schedule, 2), [0, 2_000_000_000]);
    assert_eq!(schedule.peek_ns(), Some(9_000_000_000));
    schedule.set_factor(2_500_000_000, 2.0);
    assert_eq!(schedule.next_ns(), Some(2_875_000_000));
}

#[test]
fn what_was_due_before_a_change_stays_due() {
    // The generator is behind: it takes what was due before the change only afterwards.
    let mut schedule = schedule(&Arrivals::Constant, &steady(10.0), 0);
    schedule.set_factor(250_000_000, 10.0);
    schedule.set_factor(300_000_000, 0.1);
    let times = take(&mut schedule, 9);
    let right_ms = [0, 100, 200, 255, 265, 275, 285, 295, 800];
    assert_eq!(times, right_ms.map(|time_ms| time_ms * 1_000_000));
}

#[test]
fn a_trace_can_be_played_faster() {
    let trace = parse_trace("0.1\n0.2\n0.4\n").expect("a trace");
    let mut schedule = schedule(&Arrivals::Trace(trace), &steady(1.0), 0);
    schedule.set_factor(150_000_000, 2.0);
    assert_eq!(take(&mut schedule, 9), [100_000_000, 175_000_000, 275_000_000]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let whole = |arrivals: &Arrivals, profile: &Profile| Schedule::new(arrivals, profile, 0, Share::WHOLE);
    let rates = [f64::NAN, f64::INFINITY, -1.0, 0.0, 1.1e9];
    for profile in rates.map(steady).iter().chain(&[Profile::Steps(vec![])]) {
        assert!(whole(&Arrivals::Constant, profile).is_err(), "{profile:?}");
    }
    for over_s in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let profile = Profile::Ramp { from: 1.0, to: 2.0, over_s };
        assert!(whole(&Arrivals::Poisson, &profile).is_err(), "{profile:?}");
    }
    assert!(whole(&Arrivals::SelfSimilar { hurst: 1.0, sources: 32 }, &steady(1.0)).is_err());
    assert!(whole(&Arrivals::Trace([].into()), &steady(1.0)).is_err());
    for (part, parts) in [(0, 0), (2, 2)] {
        assert!(Schedule::new(&Arrivals::Constant, &steady(1.0), 0, Share { part, parts }).is_err());
    }
}

#[test]
fn only_a_trace_is_over() {
    let steady = Profile::Steady { rate_per_s: 1.0 };
    let trace = Arrivals::Trace([1, 2].into());
    let mut schedule = Schedule::new(&trace, &steady, 1, Share::WHOLE).unwrap();
    assert_eq!([schedule.next_ns(), schedule.next_ns()], [Some(1), Some(2)]);
    assert_eq!(schedule.peek_ns(), None);
    assert!(schedule.is_over());
    let mut schedule = Schedule::new(&Arrivals::Constant, &steady, 1, Share::WHOLE).unwrap();
    schedule.set_factor(0, 0.0);
    assert_eq!(schedule.peek_ns(), None);
    assert!(!schedule.is_over(), "it is a pause");
}
