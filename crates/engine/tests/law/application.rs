//! Applications as the law meets them: how long a request takes, how many are served at once, and what goes
//! wrong.

/// Numbers that chance draws (SplitMix64: Steele, Lea and Flood, 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Between 0 and 1, neither of them.
    pub(crate) fn part(&mut self) -> f64 {
        ((self.draw() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Exponentially distributed.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -self.part().ln() * mean
    }
}

/// A server of an application, and what it does to requests.
#[derive(Clone, Copy)]
pub(crate) struct Application {
    pub(crate) name: &'static str,
    /// Seconds that one request takes.
    pub(crate) service_s: fn(&mut Random) -> f64,
    /// How many are served at once, by the time.
    pub(crate) places: fn(f64) -> usize,
    /// By how much all are slower while so many are in work.
    pub(crate) slowness: fn(usize) -> f64,
    /// Every so many seconds it stands still for so many.
    pub(crate) pause: Option<(f64, f64)>,
    /// Answers a second at its best.
    pub(crate) peak: f64,
}

impl Application {
    /// Seconds from the beginning of a request's service to its end.
    pub(crate) fn serve(&self, now_s: f64, in_work: usize, random: &mut Random) -> f64 {
        let service_s = (self.service_s)(random) * (self.slowness)(in_work);
        match self.pause {
            Some((every_s, pause_s)) if now_s % every_s + service_s > every_s => service_s + pause_s,
            _ => service_s,
        }
    }
}

const PLAIN: Application =
    Application { name: "", service_s: |_| 0.01, places: |_| 1, slowness: |_| 1.0, pause: None, peak: 100.0 };

pub(crate) const ONE_PLACE: Application = Application { name: "1 x 10 ms", ..PLAIN };
pub(crate) const EIGHT_PLACES: Application =
    Application { name: "8 x 200 ms", service_s: |_| 0.2, places: |_| 8, peak: 40.0, ..PLAIN };
pub(crate) const TWO_KINDS: Application = Application {
    name: "4 x 5 ms, a tenth 250 ms",
    service_s: |random| if random.part() < 0.9 { 0.005 } else { 0.25 },
    places: |_| 4,
    peak: 4.0 / 0.0295,
    ..PLAIN
};
pub(crate) const SIXTEEN_PLACES: Application = Application {
    name: "16 x 20 ms, exponential",
    service_s: |random| random.exponential(0.02),
    places: |_| 16,
    peak: 800.0,
    ..PLAIN
};
pub(crate) const MANY_PLACES: Application = Application {
    name: "64 x 10 ms, exponential",
    service_s: |random| random.exponential(0.01),
    places: |_| 64,
    peak: 6400.0,
    ..PLAIN
};
pub(crate) const COLLECTOR: Application = Application {
    name: "4 x 10 ms, 0.2 s of 5 s still",
    service_s: |random| random.exponential(0.01),
    places: |_| 4,
    pause: Some((5.0, 0.2)),
    peak: 400.0 * 0.96,
    ..PLAIN
};
pub(crate) const SLOW: Application =
    Application { name: "1 x 500 ms", service_s: |_| 0.5, peak: 2.0, ..PLAIN };
/// From 24 in work on it is slower by the square.
pub(crate) const THRASHING: Application = Application {
    name: "64 x 20 ms, slower above 24",
    service_s: |random| random.exponential(0.02),
    places: |_| 64,
    slowness: |in_work| (in_work as f64 / 24.0).powi(2).max(1.0),
    peak: 1200.0,
    ..PLAIN
};
/// Eight places, from the 10th second on two, from the 20th on sixteen.
pub(crate) const CHANGING: Application = Application {
    name: "8, 2, 16 x 200 ms",
    service_s: |_| 0.2,
    places: |now_s| match now_s {
        ..10.0 => 8,
        10.0..20.0 => 2,
        _ => 16,
    },
    peak: 40.0,
    ..PLAIN
};
