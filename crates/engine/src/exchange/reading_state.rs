//! What is known of a request that is read before it is answered.
//!
//! It owns what came of the body and was not taken yet. It must never take more of the body while any of that
//! is left.

/// What is known of a request that is read.
#[derive(Debug, Default)]
pub(crate) struct ReadingState {
    /// The end of the piece given last, of which its handler has taken the beginning.
    pub(crate) rest: Vec<u8>,
    /// The handler wants no more of the body at present.
    pub(crate) is_held: bool,
    /// The handler wants to be asked again.
    pub(crate) is_woken: bool,
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
        let rest = || b"left".to_vec();
        let cases = [
            (Vec::new(), false, true),
            (rest(), false, false),
            (Vec::new(), true, false),
            (rest(), true, false),
        ];
        for (rest, is_held, expected) in cases {
            let state = ReadingState { rest, is_held, is_woken: true };
            assert_eq!(state.takes_body(), expected, "{state:?}");
        }
    }
}
