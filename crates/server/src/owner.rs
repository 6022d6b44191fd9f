//! The part of the front that an exchange belongs to, as the engine brings it back with each event.

use staunch_engine::Owner;

/// A part of the front: it begins exchanges, and answers them to their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnerPart {
    /// Any site: mail of the crew says which one.
    Sites,
    /// The proxy of all sites.
    Proxy,
    /// The live data with this number among that of all sites.
    Live(u16),
}

impl OwnerPart {
    /// The part that the engine names.
    pub(crate) fn of(owner: Owner) -> Self {
        match owner.0 {
            0 => Self::Sites,
            1 => Self::Proxy,
            number => Self::Live(number - 2),
        }
    }
}

impl From<OwnerPart> for Owner {
    fn from(part: OwnerPart) -> Self {
        match part {
            OwnerPart::Sites => Self(0),
            OwnerPart::Proxy => Self(1),
            OwnerPart::Live(number) => Self(number + 2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_known_again() {
        let live = [0, 7, u16::MAX - 2].map(OwnerPart::Live);
        for part in [OwnerPart::Sites, OwnerPart::Proxy].into_iter().chain(live) {
            assert_eq!(OwnerPart::of(part.into()), part);
        }
        assert_eq!(OwnerPart::of(Owner::default()), OwnerPart::Sites);
    }
}
