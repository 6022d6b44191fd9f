//! Slices that are about to be sent on a connection.
//!
//! It must never copy one: they are shared.

/// Bytes that are shared and never change.
pub(crate) type SharedBytes = std::sync::Arc<[u8]>;

/// Slices that are to be sent, in order.
#[derive(Debug, Default)]
pub(crate) enum Pending {
    #[default]
    Nothing,
    One(SharedBytes),
    /// From the end: the last of the list is sent first.
    Several(Vec<SharedBytes>),
}

impl Pending {
    /// These slices.
    pub(crate) fn of(slices: &[SharedBytes]) -> Self {
        match slices {
            [] => Self::Nothing,
            [one] => Self::One(one.clone()),
            several => Self::Several(several.iter().rev().cloned().collect()),
        }
    }

    /// The next slice.
    pub(crate) fn next(&mut self) -> Option<SharedBytes> {
        match std::mem::take(self) {
            Self::Nothing => None,
            Self::One(one) => Some(one),
            Self::Several(mut several) => {
                let next = several.pop();
                *self = if several.is_empty() { Self::Nothing } else { Self::Several(several) };
                next
            }
        }
    }

    /// All pieces that are left, from the end.
    #[inline]
    pub(crate) fn slices(&self) -> &[SharedBytes] {
        match self {
            Self::Nothing => &[],
            Self::One(one) => std::slice::from_ref(one),
            Self::Several(several) => several,
        }
    }

    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_sent_in_their_order() {
        let slices: Vec<SharedBytes> = [&b"a"[..], b"b", b"c"].map(SharedBytes::from).to_vec();
        for count in 0..=3 {
            let mut pending = Pending::of(&slices[..count]);
            for slice in &slices[..count] {
                assert_eq!(pending.next().as_ref(), Some(slice));
            }
            assert!(pending.next().is_none() && pending.is_nothing());
        }
    }
}
