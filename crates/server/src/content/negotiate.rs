//! Which content coding a peer prefers (RFC 9110, section 12.5.3).
//!
//! It owns the reading of Accept-Encoding. It must never look at what is available before the choice: a
//! [`Preference`] depends on the field and the site's order alone, so a worker may remember the last one.

/// A content coding this server makes (RFC 9110, section 8.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// `br`, RFC 7932.
    Brotli,
    /// `zstd`, RFC 8878.
    Zstd,
    /// `gzip`, RFC 1952.
    Gzip,
}

impl Encoding {
    /// All of them, best ratio first.
    pub const ALL: [Self; 3] = [Self::Brotli, Self::Zstd, Self::Gzip];

    /// Its name in Content-Encoding.
    pub fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// What a prepared side file's name ends with, dot included.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Brotli => ".br",
            Self::Zstd => ".zst",
            Self::Gzip => ".gz",
        }
    }

    /// The coding of this name, as in `--encodings`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|encoding| encoding.name() == name)
    }

    /// Its place in tables of representations; place 0 is the identity.
    pub(crate) fn place(self) -> usize {
        match self {
            Self::Brotli => 1,
            Self::Zstd => 2,
            Self::Gzip => 3,
        }
    }
}

/// Places in a table of representations: the identity and every encoding.
pub(crate) const PLACES: usize = 4;
/// Place of the identity.
pub(crate) const IDENTITY: usize = 0;

/// The places acceptable to a peer, best first. The identity always stands at the end if nowhere else: when
/// nothing acceptable exists, sending it serves better than 406 (RFC 9110, section 12.4.1 allows either).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Preference {
    places: [u8; PLACES],
    count: u8,
}

impl Preference {
    /// What holds for a request without Accept-Encoding.
    pub(crate) const IDENTITY_ONLY: Self = Self { places: [0; PLACES], count: 1 };

    /// Reads all values of Accept-Encoding. `order` is the site's order among equals.
    pub(crate) fn read<'a>(values: impl Iterator<Item = &'a [u8]>, order: &[Encoding]) -> Self {
        let mut asked = Asked::default();
        for value in values {
            for element in value.split(|&byte| byte == b',') {
                asked.read(element.trim_ascii());
            }
        }
        asked.rank(order)
    }

    /// The best place for which `available` is true; the identity if there is none.
    #[inline]
    pub(crate) fn choose(&self, available: impl Fn(usize) -> bool) -> usize {
        let places = self.places.iter().take(usize::from(self.count)).map(|&place| usize::from(place));
        places.into_iter().find(|&place| available(place)).unwrap_or(IDENTITY)
    }
}

/// Weights in thousandths as the peer gave them.
#[derive(Debug, Default)]
struct Asked {
    weights: [Option<u16>; PLACES],
    others: Option<u16>,
}

impl Asked {
    /// Reads an element of the list. An element that cannot be understood counts as absent.
    fn read(&mut self, element: &[u8]) {
        let mut parts = element.split(|&byte| byte == b';');
        let coding = parts.next().unwrap_or_default().trim_ascii();
        let weight = parts.next().map_or(Some(1000), |parameter| weight(parameter.trim_ascii()));
        let Some(weight) = weight else { return };
        if coding == b"*" {
            self.others = Some(weight);
        } else if let Some(place) = place_of(coding) {
            self.weights[place] = Some(weight);
        }
    }

    fn rank(&self, order: &[Encoding]) -> Preference {
        let encodings = order.iter().map(|encoding| encoding.place());
        let mut ranked: [(u16, u8); PLACES] = [(0, 0); PLACES];
        let mut count = 0;
        for place in encodings.chain([IDENTITY]) {
            // Not named and no `*`: an encoding is not acceptable, the identity is, behind all that was asked
            // for.
            let unnamed = u16::from(place == IDENTITY);
            let weight = self.weights[place].or(self.others).unwrap_or(unnamed);
            if weight > 0 && count < PLACES {
                ranked[count] = (weight, place as u8);
                count += 1;
            }
        }
        ranked[..count].sort_by_key(|&(weight, _)| std::cmp::Reverse(weight));
        let mut places = [0; PLACES];
        for (place, (_, ranked)) in places.iter_mut().zip(ranked) {
            *place = ranked;
        }
        Preference { places, count: count as u8 }
    }
}

fn place_of(coding: &[u8]) -> Option<usize> {
    // x-gzip is the same as gzip (RFC 9110, section 8.4.1.3).
    let names: [(&[u8], usize); 5] =
        [(b"br", 1), (b"zstd", 2), (b"gzip", 3), (b"x-gzip", 3), (b"identity", IDENTITY)];
    names.iter().find(|(name, _)| name.eq_ignore_ascii_case(coding)).map(|&(_, place)| place)
}

/// A weight `q=0.123` in thousandths (RFC 9110, section 12.4.2), or `None` if it is none.
pub(crate) fn weight(parameter: &[u8]) -> Option<u16> {
    let [b'q' | b'Q', b'=', whole, fraction @ ..] = parameter else { return None };
    let decimals = match fraction {
        [] => &[],
        [b'.', decimals @ ..] if decimals.len() <= 3 => decimals,
        _ => return None,
    };
    let mut thousandths: u16 = 0;
    for index in 0..3 {
        let digit = decimals.get(index).copied().unwrap_or(b'0');
        if !digit.is_ascii_digit() {
            return None;
        }
        thousandths = thousandths * 10 + u16::from(digit - b'0');
    }
    match (whole, thousandths) {
        (b'0', _) => Some(thousandths),
        (b'1', 0) => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chosen(value: &str, available: [bool; PLACES]) -> usize {
        Preference::read([value.as_bytes()].into_iter(), &Encoding::ALL).choose(|place| available[place])
    }

    #[test]
    fn table() {
        let all = [true; PLACES];
        let table = [
            ("gzip, deflate, br, zstd", all, 1),
            ("gzip, deflate", all, 3),
            ("GZip", all, 3),
            ("x-gzip", all, 3),
            ("zstd, gzip", all, 2),
            ("gzip;q=1.0, br;q=0.9", all, 3),
            ("gzip;q=0.5, identity", all, 0),
            ("gzip;q=0.5", all, 3),
            ("br;q=0, *", all, 2),
            ("*", all, 1),
            ("*;q=0", all, 0),
            ("identity;q=0, br;q=0.001", all, 1),
            ("br, gzip", [true, false, false, true], 3),
            ("br", [true, false, false, true], 0),
            ("", all, 0),
            (",,", all, 0),
            ("deflate", all, 0),
            ("br;q=x, gzip;q=0.1", all, 3),
            ("br;q=1.001, gzip;q=0.1", all, 3),
            ("br;q=0.000", all, 0),
            ("br ; q=0.3 , gzip ;q=0.31", all, 3),
        ];
        for (value, available, place) in table {
            assert_eq!(chosen(value, available), place, "{value:?}");
        }
        assert_eq!(Preference::IDENTITY_ONLY.choose(|_| true), IDENTITY);
    }

    #[test]
    fn encodings_switched_off_are_never_chosen() {
        let preference = Preference::read([&b"br, gzip"[..]].into_iter(), &[Encoding::Gzip]);
        assert_eq!(preference.choose(|_| true), 3);
    }

    #[test]
    fn weights() {
        for (text, expected) in [
            ("q=1", Some(1000)),
            ("q=1.000", Some(1000)),
            ("q=0.", Some(0)),
            ("Q=0.5", Some(500)),
            ("q=0.1234", None),
            ("q=2", None),
            ("q=", None),
            ("q", None),
            ("level=1", None),
        ] {
            assert_eq!(weight(text.as_bytes()), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_picks_what_is_refused(
            weights in prop::collection::vec((0_usize..3, 0_u16..3), 0..6),
            available in prop::array::uniform4(any::<bool>()),
        ) {
            let list: Vec<String> = weights
                .iter()
                .map(|&(which, weight)| format!("{};q=0.{weight}", Encoding::ALL[which].name()))
                .collect();
            let place = chosen(&list.join(", "), available);
            if place != IDENTITY {
                let given = weights.iter().rev().find(|(which, _)| Encoding::ALL[*which].place() == place);
                prop_assert!(given.is_some_and(|&(_, weight)| weight > 0));
                prop_assert!(available[place]);
            }
        }

        #[test]
        fn any_bytes_are_read(value in prop::collection::vec(any::<u8>(), 0..60)) {
            let place = Preference::read([&value[..]].into_iter(), &Encoding::ALL).choose(|_| true);
            prop_assert!(place < PLACES);
        }
    }
}
