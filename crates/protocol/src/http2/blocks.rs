//! Blocks of fields that came before, on whatever connection, with the heads that were written of them.
//!
//! It owns nothing but speed: a crowd asks for the same with the same fields, which stand at the same places
//! of its tables, and to compare these costs a tenth of what reading does. It must never give a head but the
//! one that reading the block would write: only a block that changes no table is remembered, with marks of
//! the fields that it names in one, and no two fields ever have the same mark.

use super::head::HeadWriter;
use super::hpack::{DynamicTable, FieldReader, NamedField};

/// Longer blocks are not remembered: one whose fields the table knows is mostly numbers and a path.
const BLOCK_BYTES_MAX: usize = 512;
/// Longer heads are not remembered either, as in HTTP/1.1.
const HEAD_BYTES_MAX: usize = 2048;
/// So many blocks are remembered, for the browsers of a crowd.
const BLOCKS_MAX: usize = 8;
/// When all places are taken, so many unlike blocks make the last of them a remembered one. To remember each
/// would cost those more who all ask for something else.
const UNLIKE_COUNT: u32 = 64;

/// Remembers some blocks. One per worker serves all its connections.
#[derive(Debug, Default)]
pub(super) struct BlockMemory {
    blocks: Vec<Remembered>,
    /// The place of the one that came last; `None` if that was like none.
    recalled: Option<usize>,
    /// Blocks since the last was remembered that were like none.
    unlike: u32,
    /// The place that is looked at next when one is to be given away.
    hand: usize,
}

#[derive(Debug)]
struct Remembered {
    bytes: Vec<u8>,
    named: Vec<NamedField>,
    head: HeadWriter,
    /// Whether it came since the hand was here.
    came: bool,
}

impl BlockMemory {
    /// Whether the block is remembered, and names the same fields in this table: then [`Self::head`] is what
    /// reading it would write.
    #[inline]
    pub(super) fn recall(&mut self, block: &[u8], table: &DynamicTable, reader: &FieldReader) -> bool {
        self.recalled = self.blocks.iter().position(|remembered| {
            remembered.bytes == block && remembered.named.iter().all(|named| reader.has(table, named))
        });
        let Some(place) = self.recalled else { return false };
        self.blocks[place].came = true;
        true
    }

    /// The head of the block that was recalled last.
    #[inline]
    pub(super) fn head(&self) -> Option<&HeadWriter> {
        self.blocks.get(self.recalled?).map(|remembered| &remembered.head)
    }

    /// A block was read that is not remembered; it wrote this head, which is a good one.
    #[inline]
    pub(super) fn note(
        &mut self,
        block: &[u8],
        table: &DynamicTable,
        reader: &FieldReader,
        head: &HeadWriter,
    ) {
        self.unlike += 1;
        if self.blocks.len() < BLOCKS_MAX || self.unlike >= UNLIKE_COUNT {
            self.remember(block, table, reader, head);
        }
    }

    /// Gives the block a place: a free one, or that of one that did not come since the hand was there last
    /// (the clock algorithm).
    #[cold]
    fn remember(&mut self, block: &[u8], table: &DynamicTable, reader: &FieldReader, head: &HeadWriter) {
        self.unlike = 0;
        if block.len() > BLOCK_BYTES_MAX || head.text().len() > HEAD_BYTES_MAX {
            return;
        }
        let Some(named) = reader.named(block, table) else { return };
        let remembered = Remembered { bytes: block.to_vec(), named, head: head.clone(), came: false };
        if self.blocks.len() < BLOCKS_MAX {
            self.blocks.push(remembered);
            return;
        }
        while std::mem::take(&mut self.blocks[self.hand].came) {
            self.hand = (self.hand + 1) % BLOCKS_MAX;
        }
        self.blocks[self.hand] = remembered;
        self.hand = (self.hand + 1) % BLOCKS_MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A worker, and a connection of it.
    struct Side {
        reader: FieldReader,
        blocks: BlockMemory,
    }

    impl Side {
        fn new() -> Self {
            Self { reader: FieldReader::new([1, 2]), blocks: BlockMemory::default() }
        }

        /// Takes a block as a session does: what it writes, and whether it was recalled.
        fn take(&mut self, block: &[u8], table: &mut DynamicTable) -> (Vec<u8>, bool) {
            if self.blocks.recall(block, table, &self.reader) {
                return (self.blocks.head().expect("recalled").text().to_vec(), true);
            }
            let mut head = HeadWriter::default();
            head.clear(false);
            self.reader.read(block, table, |field| head.take(field)).expect("a good block");
            head.finish().expect("a good head");
            self.blocks.note(block, table, &self.reader, &head);
            (head.text().to_vec(), false)
        }
    }

    /// GET / of `a`, and a field `x` that is added to the table.
    fn adding(value: &[u8; 1]) -> Vec<u8> {
        [b"\x82\x84\x87\x01\x01a\x40\x01x\x01", &value[..]].concat()
    }

    /// The head of `adding`, where `x` is named by the number of the newest field in the table.
    const AGAIN: &[u8] = b"\x82\x84\x87\x01\x01a\xbe";

    fn head(value: &str) -> Vec<u8> {
        format!("GET / HTTP/1.1\r\nhost: a\r\nx: {value}\r\n\r\n").into_bytes()
    }

    #[test]
    fn a_block_is_recalled_where_it_names_the_same_fields() {
        let mut side = Side::new();
        let [mut one, mut other, mut third] = [(); 3].map(|()| DynamicTable::new());
        for (table, value, text) in [(&mut one, b"1", "1"), (&mut other, b"1", "1"), (&mut third, b"2", "2")]
        {
            assert_eq!(side.take(&adding(value), table), (head(text), false), "it adds to the table");
        }
        assert_eq!(side.take(AGAIN, &mut one), (head("1"), false));
        assert_eq!(side.take(AGAIN, &mut other), (head("1"), true));
        assert_eq!(side.take(AGAIN, &mut third), (head("2"), false));
        assert_eq!(side.take(AGAIN, &mut third), (head("2"), true));
        for table in [&mut one, &mut other, &mut third] {
            side.reader.release(table);
        }
    }

    #[test]
    fn a_field_that_takes_the_place_of_another_is_not_taken_for_it() {
        let mut side = Side::new();
        let mut table = DynamicTable::new();
        side.take(&adding(b"1"), &mut table);
        side.take(AGAIN, &mut table);
        assert!(side.take(AGAIN, &mut table).1);
        side.reader.release(&mut table);
        let mut next = DynamicTable::new();
        side.take(&adding(b"2"), &mut next);
        assert_eq!(side.take(AGAIN, &mut next), (head("2"), false));
        side.reader.release(&mut next);
    }

    #[test]
    fn a_block_that_changes_a_table_changes_it_each_time() {
        let mut side = Side::new();
        let mut table = DynamicTable::new();
        for _ in 0..3 {
            assert!(!side.take(&adding(b"1"), &mut table).1);
            assert!(!side.take(b"\x20\x82\x84\x87\x01\x01a", &mut table).1, "it empties the table");
            assert!(!side.take(b"\x3f\xe1\x1f\x82\x84\x87\x01\x01a", &mut table).1);
        }
    }

    #[test]
    fn places_are_given_to_those_who_come() {
        let mut side = Side::new();
        let mut table = DynamicTable::new();
        let block = |number: usize| {
            let path = format!("/{number:06}");
            [b"\x82\x87\x01\x01a\x04\x07", path.as_bytes()].concat()
        };
        for number in 0..BLOCKS_MAX {
            side.take(&block(number), &mut table);
        }
        assert!(side.take(&block(0), &mut table).1);
        for number in 0..UNLIKE_COUNT as usize {
            assert!(!side.take(&block(1000 + number), &mut table).1);
        }
        assert!(side.take(&block(999 + UNLIKE_COUNT as usize), &mut table).1);
        assert!(side.take(&block(0), &mut table).1, "it came since");
        assert!(!side.take(&block(1), &mut table).1);
    }
}
