//! Whether a request accepts `dcz`.
//!
//! This module owns one question of Accept-Encoding (RFC 9110, section 12.5.3). It must never take `*` for a
//! consent: what decodes a difference says so by name.

/// Whether the values of Accept-Encoding name `dcz` with a weight above zero, and no other coding with a
/// higher one. An element that cannot be understood counts as absent.
pub fn accepts_dcz<'a>(values: impl Iterator<Item = &'a [u8]>) -> bool {
    let mut dcz = 0;
    let mut others = 0;
    for element in values.flat_map(|value| value.split(|&byte| byte == b',')) {
        let Some((coding, weight)) = read(element) else { continue };
        if coding.eq_ignore_ascii_case(b"dcz") {
            dcz = weight;
        } else {
            others = others.max(weight);
        }
    }
    dcz > 0 && dcz >= others
}

/// An element of the list: a coding, and its weight in thousandths.
fn read(element: &[u8]) -> Option<(&[u8], u16)> {
    let mut parts = element.split(|&byte| byte == b';');
    let coding = parts.next()?.trim_ascii();
    let weight = parts.next().map_or(Some(1000), |parameter| weight(parameter.trim_ascii()))?;
    (!coding.is_empty() && parts.next().is_none()).then_some((coding, weight))
}

/// A weight `q=0.123` in thousandths (RFC 9110, section 12.4.2).
fn weight(parameter: &[u8]) -> Option<u16> {
    let [b'q' | b'Q', b'=', whole @ (b'0' | b'1'), fraction @ ..] = parameter else { return None };
    let decimals = match fraction {
        [] => &[],
        [b'.', decimals @ ..] if decimals.len() <= 3 => decimals,
        _ => return None,
    };
    if !decimals.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = decimals.iter().copied().chain(std::iter::repeat(b'0')).take(3);
    let thousandths = digits.fold(0, |sum: u16, digit| sum * 10 + u16::from(digit - b'0'));
    let weight = u16::from(whole - b'0') * 1000 + thousandths;
    (weight <= 1000).then_some(weight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn table() {
        for (values, expected) in [
            (&["gzip, deflate, br, zstd, dcb, dcz"][..], true),
            (&["dcz"], true),
            (&["DCZ"], true),
            (&["gzip", "dcz"], true),
            (&["dcz ; q=1"], true),
            (&["dcz;q=0.5, br;q=0.5"], true),
            (&["dcz;q=0.5, br"], false),
            (&["dcz;q=0.001"], true),
            (&["dcz;q=0"], false),
            (&["dcz;q=0.000"], false),
            (&["dcz;q=2"], false),
            (&["dcz;q=1.001"], false),
            (&["dcz;level=1"], false),
            (&["dcz;q=1;q=1"], false),
            (&["dcb"], false),
            (&["*"], false),
            (&["*;q=0, dcz"], true),
            (&["dczz, xdcz"], false),
            (&[""], false),
            (&[], false),
        ] {
            let values = values.iter().map(|value| value.as_bytes());
            assert_eq!(accepts_dcz(values.clone()), expected, "{:?}", values.collect::<Vec<_>>());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(value in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = accepts_dcz([&value[..]].into_iter());
        }

        #[test]
        fn refused_is_never_accepted(before in "[a-z, ;=0-9.]{0,20}") {
            let value = format!("{before},dcz;q=0");
            prop_assert!(!accepts_dcz([value.as_bytes()].into_iter()));
        }
    }
}
