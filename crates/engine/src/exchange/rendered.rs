//! Whole answers as they go over the wire, for blocks that are asked for again within one second.
//!
//! A response begins with a date, so a prepared block cannot be sent as it stands: it is copied behind a new
//! beginning each time. What is asked for twice in a second is kept with its beginning until the date
//! changes, and sent from where it stands. It must never hold more than [`RENDERED_COUNT`] answers, and never
//! give one of another second.

use std::sync::Arc;

use crate::limits::RENDERED_COUNT;

/// The answers of one worker.
#[derive(Debug)]
pub(crate) struct Rendered {
    kept: Vec<Option<Kept>>,
}

#[derive(Debug)]
struct Kept {
    /// Held, so that its address is not used again for another.
    block: Arc<[u8]>,
    second: u64,
    answer: Option<Arc<[u8]>>,
}

/// What is known of a block.
#[derive(Debug)]
pub(crate) enum Found {
    /// The block is asked for the first time in this second.
    Nothing,
    /// The block was asked for before: it is worth keeping as it goes out now.
    Wanted,
    /// The whole answer of this second.
    Answer(Arc<[u8]>),
}

impl Default for Rendered {
    fn default() -> Self {
        Self { kept: (0..RENDERED_COUNT).map(|_| None).collect() }
    }
}

impl Rendered {
    /// What is known of a block in this second (any number that changes with the date).
    #[inline]
    pub(crate) fn find(&mut self, block: &Arc<[u8]>, second: u64) -> Found {
        let kept = &mut self.kept[index_of(block)];
        match kept {
            Some(kept) if Arc::ptr_eq(&kept.block, block) && kept.second == second => match &kept.answer {
                Some(answer) => Found::Answer(Arc::clone(answer)),
                None => Found::Wanted,
            },
            _ => {
                *kept = Some(Kept { block: Arc::clone(block), second, answer: None });
                Found::Nothing
            }
        }
    }

    /// Keeps the answer of a block that was found wanted.
    pub(crate) fn keep(&mut self, block: &Arc<[u8]>, answer: &Arc<[u8]>) {
        if let Some(kept) = &mut self.kept[index_of(block)] {
            kept.answer = Some(Arc::clone(answer));
        }
    }
}

/// Where what is known of a block is kept, among [`RENDERED_COUNT`] places. Blocks lie at least some hundred
/// bytes apart.
#[inline]
pub(super) fn index_of(block: &Arc<[u8]>) -> usize {
    let address = block.as_ptr() as usize;
    (address >> 4 ^ address >> 12) % RENDERED_COUNT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_lives_for_its_second() {
        let mut rendered = Rendered::default();
        let block: Arc<[u8]> = Arc::from(&b"block"[..]);
        let answer: Arc<[u8]> = Arc::from(&b"date block"[..]);
        assert!(matches!(rendered.find(&block, 1), Found::Nothing));
        assert!(matches!(rendered.find(&block, 1), Found::Wanted));
        rendered.keep(&block, &answer);
        assert!(matches!(rendered.find(&block, 1), Found::Answer(found) if Arc::ptr_eq(&found, &answer)));
        assert!(matches!(rendered.find(&block, 2), Found::Nothing));
        assert!(matches!(rendered.find(&block, 2), Found::Wanted));
    }

    #[test]
    fn equal_bytes_are_not_the_same_block() {
        let mut rendered = Rendered::default();
        let blocks: Vec<Arc<[u8]>> = (0..1000).map(|_| Arc::from(&b"block"[..])).collect();
        for block in &blocks {
            assert!(matches!(rendered.find(block, 1), Found::Nothing));
        }
    }
}
