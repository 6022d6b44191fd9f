//! Fields of prepared blocks as HTTP/2 sends them, for blocks that are asked for again.
//!
//! To spell fields costs more than all else of an answer, and those of a block never change. It must never
//! hold more than [`RENDERED_COUNT`] blocks, nor a large one.

use std::sync::Arc;

use staunch_protocol::Fields;
use staunch_protocol::http2::PreparedFields;

use super::rendered::index_of;
use crate::limits::{COPIED_BYTES_MAX, RENDERED_COUNT};

/// The fields of one worker.
#[derive(Debug)]
pub(crate) struct Spelled {
    kept: Vec<Option<Kept>>,
}

#[derive(Debug)]
struct Kept {
    /// Held, so that its address is not used again for another.
    block: Arc<[u8]>,
    /// Nothing while it was asked for once.
    fields: Option<PreparedFields>,
}

impl Default for Spelled {
    fn default() -> Self {
        Self { kept: (0..RENDERED_COUNT).map(|_| None).collect() }
    }
}

impl Spelled {
    /// The fields of a block that was asked for before: its first so many bytes.
    pub(crate) fn find(&mut self, block: &Arc<[u8]>, fields_bytes: usize) -> Option<&PreparedFields> {
        if block.len() > COPIED_BYTES_MAX {
            return None;
        }
        let place = &mut self.kept[index_of(block)];
        if !place.as_ref().is_some_and(|kept| Arc::ptr_eq(&kept.block, block)) {
            *place = Some(Kept { block: Arc::clone(block), fields: None });
            return None;
        }
        let spell = || PreparedFields::new(Fields::new(&block[..fields_bytes]));
        place.as_mut().map(|kept| &*kept.fields.get_or_insert_with(spell))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_twice_is_spelled_once() {
        let mut spelled = Spelled::default();
        let block: Arc<[u8]> = Arc::from(&b"Content-Length: 1\r\n\r\nx"[..]);
        let large: Arc<[u8]> = vec![b'x'; COPIED_BYTES_MAX + 1].into();
        assert!(spelled.find(&block, 19).is_none());
        let fields = spelled.find(&block, 19).expect("it was asked for before").clone();
        assert_eq!(fields, PreparedFields::new(Fields::new(b"Content-Length: 1\r\n")));
        assert_eq!(spelled.find(&block, 19), Some(&fields));
        assert!((0..2).all(|_| spelled.find(&large, 0).is_none()));
    }
}
