//! The order of a line: the class of a request, and whether its client is known.
//!
//! A standing must never be found here: the owner of the requests judges, and this module orders.

/// How urgent a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub enum PlaceClass {
    /// Gives way first: a guess at what somebody will want, or work that can be done later.
    Low,
    /// Whatever nothing is said of.
    #[default]
    Normal,
    /// Goes before all others.
    High,
}

impl PlaceClass {
    /// The class as settings and figures name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
        }
    }
}

/// The standing of a request in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// The class of the request, which counts before everything else.
    pub class: PlaceClass,
    /// Whether the client was here before, which tells requests of one class apart.
    pub is_known: bool,
}

impl Standing {
    /// Every standing, in the order of a line.
    pub const ALL: [Self; 6] = [
        Self::of(PlaceClass::High, true),
        Self::of(PlaceClass::High, false),
        Self::of(PlaceClass::Normal, true),
        Self::of(PlaceClass::Normal, false),
        Self::of(PlaceClass::Low, true),
        Self::of(PlaceClass::Low, false),
    ];

    const fn of(class: PlaceClass, is_known: bool) -> Self {
        Self { class, is_known }
    }

    /// Whether such a request goes before others of the usual class, or of its own.
    pub fn has_precedence(self) -> bool {
        self.class == PlaceClass::High || self.is_known
    }

    /// This standing without what lets it go before others: the high class, or else that its client is known.
    pub fn without_precedence(self) -> Self {
        match self.class {
            PlaceClass::High => Self::of(PlaceClass::Normal, self.is_known),
            class => Self::of(class, false),
        }
    }

    /// How logs write it: the class, and behind it whether its client is known.
    pub fn name(self) -> &'static str {
        match (self.class, self.is_known) {
            (PlaceClass::High, true) => "high-known",
            (PlaceClass::High, false) => "high",
            (PlaceClass::Normal, true) => "normal-known",
            (PlaceClass::Normal, false) => "normal",
            (PlaceClass::Low, true) => "low-known",
            (PlaceClass::Low, false) => "low",
        }
    }

    /// The place in [`Standing::ALL`]: 0 goes first.
    pub fn rank(self) -> usize {
        let of_class = match self.class {
            PlaceClass::High => 0,
            PlaceClass::Normal => 2,
            PlaceClass::Low => 4,
        };
        of_class + usize::from(!self.is_known)
    }
}

/// Counts of the requests of one standing at a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StandingFigures {
    /// The standing of the requests that are counted.
    pub standing: Standing,
    /// Requests since the start that asked for a place.
    pub asked: u64,
    /// Requests that were refused, of those that asked.
    pub refused: u64,
    /// Requests in line.
    pub waiting: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_of_a_standing_is_its_place_among_all() {
        for (place, standing) in Standing::ALL.into_iter().enumerate() {
            assert_eq!(standing.rank(), place, "{standing:?}");
            let known = if standing.is_known { "-known" } else { "" };
            assert_eq!(standing.name(), format!("{}{known}", standing.class.name()));
        }
        assert_eq!(Standing::ALL[Standing::default().rank()], Standing::default());
    }
}
