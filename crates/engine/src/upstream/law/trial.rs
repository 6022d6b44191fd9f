//! Which limit is tried beside the limit itself, and when.

/// Windows from one trial upwards to the next: at first, and at most.
const UP_WINDOWS: [u32; 2] = [2, 64];
/// Seconds after which more is tried at the latest, if it was not in the last windows.
const UP_S_MAX: f64 = 2.0;
/// Trials upwards that may leave it in doubt what they bring.
const IN_DOUBT_MAX: u32 = 8;
/// Windows from one trial downwards to the next: at first, and at most.
const DOWN_WINDOWS: [u32; 2] = [4, 128];

/// A kind of window: of the limit itself, or of a trial of more or less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitTrial {
    Up,
    UpFine,
    Down,
    DownFine,
    /// The limit itself.
    None,
}

impl LimitTrial {
    /// Trials, but for that of the limit itself.
    pub(super) const COUNT: usize = Self::None as usize;

    /// The limit that such a window has, where the limit itself is this.
    pub(super) fn limit(self, limit: f64) -> f64 {
        match self {
            Self::Up => (limit * 1.5).max(limit + 1.0),
            Self::UpFine => (limit * 1.2).max(limit + 1.0),
            Self::Down => (limit * 0.7).min(limit - 1.0).max(1.0),
            Self::DownFine => (limit * 0.85).min(limit - 1.0).max(1.0),
            Self::None => limit,
        }
    }

    pub(super) fn is_down(self) -> bool {
        matches!(self, Self::Down | Self::DownFine)
    }
}

/// Trials of one direction: how many windows there are from one to the next.
#[derive(Debug, Clone, Copy)]
struct Rhythm {
    distance: u32,
    windows: u32,
    seconds: f64,
    /// Trials since it was last known what they bring.
    in_doubt: u32,
    /// Whether the next trial is the fine one: they alternate once the coarse one is known to bring nothing.
    is_fine: bool,
    alternates: bool,
}

impl Rhythm {
    fn new(distance: u32) -> Self {
        Self { distance, windows: 0, seconds: 0.0, in_doubt: 0, is_fine: false, alternates: false }
    }

    fn begin(&mut self) -> bool {
        let is_fine = self.is_fine;
        (self.windows, self.seconds) = (0, 0.0);
        self.in_doubt += 1;
        self.is_fine = self.alternates && !is_fine;
        is_fine
    }

    fn put_off(&mut self, most: u32) {
        self.distance = (2 * self.distance).min(most);
        self.in_doubt = 0;
        self.is_fine |= !self.alternates;
        self.alternates = true;
    }
}

/// When each trial is due.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrialsDue {
    up: Rhythm,
    down: Rhythm,
}

impl Default for TrialsDue {
    fn default() -> Self {
        Self { up: Rhythm::new(UP_WINDOWS[0]), down: Rhythm::new(DOWN_WINDOWS[0]) }
    }
}

impl TrialsDue {
    /// A window of so many seconds is over.
    pub(super) fn count(&mut self, seconds: f64) {
        for rhythm in [&mut self.up, &mut self.down] {
            rhythm.windows += 1;
            rhythm.seconds += seconds;
        }
    }

    pub(super) fn is_up(&self) -> bool {
        let Rhythm { distance, windows, seconds, .. } = self.up;
        windows >= distance || windows >= UP_WINDOWS[0] && seconds >= UP_S_MAX
    }

    pub(super) fn is_up_long_ago(&self) -> bool {
        self.up.windows >= UP_WINDOWS[1]
    }

    pub(super) fn is_up_in_doubt(&self) -> bool {
        self.up.in_doubt >= IN_DOUBT_MAX
    }

    pub(super) fn is_down(&self) -> bool {
        self.down.windows >= self.down.distance
    }

    pub(super) fn begin_up(&mut self) -> LimitTrial {
        if self.up.begin() { LimitTrial::UpFine } else { LimitTrial::Up }
    }

    pub(super) fn begin_down(&mut self) -> LimitTrial {
        if self.down.begin() { LimitTrial::DownFine } else { LimitTrial::Down }
    }

    /// A trial is known to bring nothing: those of its direction become rarer.
    pub(super) fn put_off(&mut self, trial: LimitTrial) {
        match trial.is_down() {
            true => self.down.put_off(DOWN_WINDOWS[1]),
            false => self.up.put_off(UP_WINDOWS[1]),
        }
    }
}
