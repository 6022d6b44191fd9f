//! The part of the front that an exchange belongs to, as the engine brings it back with each event.

use staunch_engine::Owner;

/// A part of the front: it begins exchanges, and answers them to their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnerPart {
    /// Any site: mail of the crew says which one.
    Sites,
    /// The live data with this number among that of all sites.
    Live(u16),
}

impl OwnerPart {
    /// The part that the engine names.
    pub(crate) fn of(owner: Owner) -> Self {
        owner.0.checked_sub(1).map_or(Self::Sites, Self::Live)
    }
}

impl From<OwnerPart> for Owner {
    fn from(part: OwnerPart) -> Self {
        match part {
            OwnerPart::Sites => Self(0),
            OwnerPart::Live(number) => Self(number + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_known_again() {
        for part in [OwnerPart::Sites, OwnerPart::Live(0), OwnerPart::Live(7), OwnerPart::Live(u16::MAX - 1)]
        {
            assert_eq!(OwnerPart::of(part.into()), part);
        }
        assert_eq!(OwnerPart::of(Owner::default()), OwnerPart::Sites);
    }
}
