//! The state of an exchange whose request is read before it is answered.
//!
//! The state owns the bytes of the body that came and that the handler has not taken yet. It must never let
//! more of the body come while any of them are left.

/// The state of an exchange between the first piece of its body and its answer.
#[derive(Debug, Default)]
pub(crate) struct ReadingState {
    /// Bytes of the last piece that the handler has not taken.
    pub(crate) rest: Rest,
    /// The handler wants no more of the body at present.
    pub(crate) is_held: bool,
    /// The handler wants to be asked again.
    pub(crate) is_woken: bool,
}

/// The end of a piece of which the beginning was taken. However little is taken at a time, its bytes stay
/// where they are.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    bytes: Vec<u8>,
    taken_bytes: usize,
}

impl Rest {
    /// The last bytes of a piece.
    pub(crate) fn of(piece: &[u8], left_bytes: usize) -> Self {
        Self { bytes: piece[piece.len() - left_bytes..].to_vec(), taken_bytes: 0 }
    }

    /// The last bytes of this rest, which is not copied again.
    pub(crate) fn keep_last(self, left_bytes: usize) -> Self {
        match left_bytes {
            0 => Self::default(),
            _ => Self { taken_bytes: self.bytes.len() - left_bytes, ..self },
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.taken_bytes..]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// Memory that the rest holds, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

impl ReadingState {
    /// Whether more of the body may be given to the handler.
    pub(crate) fn takes_body(&self) -> bool {
        !self.is_held && self.rest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_taken_while_something_is_left_or_the_handler_holds() {
        let cases = [(0, false, true), (4, false, false), (0, true, false), (4, true, false)];
        for (left_bytes, is_held, expected) in cases {
            let rest = Rest::of(b"is left", left_bytes);
            let state = ReadingState { rest, is_held, is_woken: true };
            assert_eq!(state.takes_body(), expected, "{state:?}");
        }
    }

    #[test]
    fn what_is_left_is_copied_once_and_given_back_with_its_last_byte() {
        let rest = Rest::of(b"0123456789", 8);
        let place = rest.bytes().as_ptr_range().end;
        let rest = rest.keep_last(8).keep_last(5).keep_last(1);
        assert_eq!((rest.bytes(), rest.bytes().as_ptr_range().end), (&b"9"[..], place));
        assert!(rest.held_bytes() >= 8);
        let rest = rest.keep_last(0);
        assert!(rest.is_empty() && rest.held_bytes() == 0);
    }
}
