//! The dynamic table of one connection (RFC 7541, sections 2.3.2 and 4).
//!
//! It owns the order of its fields, as numbers of interned ones: four bytes each. It must be emptied before
//! it is dropped, so that the worker's fields are given back.

use super::fault::HpackFault;
use super::interned::InternedFields;
use crate::http2::field::FieldLine;
use crate::limits::FIELD_TABLE_BYTES_MAX;

/// The fields that a peer may name by their numbers.
#[derive(Debug)]
pub(crate) struct DynamicTable {
    /// The oldest first. Exactly as long as it must be, for it is what a connection at rest holds.
    numbers: Box<[u32]>,
    counted_bytes: u16,
    counted_bytes_max: u16,
}

const _: () = assert!(FIELD_TABLE_BYTES_MAX <= u16::MAX as usize);

impl DynamicTable {
    /// Empty, and as large as it may become.
    pub(crate) fn new() -> Self {
        let max = FIELD_TABLE_BYTES_MAX as u16;
        Self { numbers: Box::default(), counted_bytes: 0, counted_bytes_max: max }
    }

    /// The entry of this place; the newest has 0.
    #[inline]
    pub(super) fn get<'f>(&self, place: usize, fields: &'f InternedFields) -> Option<FieldLine<'f>> {
        let at = self.numbers.len().checked_sub(place + 1)?;
        self.numbers.get(at).map(|number| fields.get(*number))
    }

    /// The mark of the entry of this place; see [`InternedFields::mark`].
    #[inline]
    pub(super) fn mark(&self, place: usize, fields: &InternedFields) -> Option<u64> {
        let at = self.numbers.len().checked_sub(place + 1)?;
        self.numbers.get(at).map(|number| fields.mark(*number))
    }

    /// Adds a field, given as a line. A field larger than the table empties it (section 4.4).
    pub(super) fn add(
        &mut self,
        line: &[u8],
        name_bytes: usize,
        fields: &mut InternedFields,
    ) -> Result<(), HpackFault> {
        let field = FieldLine { line, name_bytes, meaning: crate::http2::field::Meaning::Plain };
        let counted_bytes = field.counted_bytes();
        let Some(others_max) = usize::from(self.counted_bytes_max).checked_sub(counted_bytes) else {
            self.evict(0, fields);
            return Ok(());
        };
        self.evict(others_max, fields);
        let number = fields.take(line, name_bytes)?;
        let mut numbers = std::mem::take(&mut self.numbers).into_vec();
        numbers.reserve_exact(1);
        numbers.push(number);
        self.numbers = numbers.into();
        self.counted_bytes += counted_bytes as u16;
        Ok(())
    }

    /// The peer changes the size of the table.
    pub(super) fn resize(&mut self, bytes: usize, fields: &mut InternedFields) -> Result<(), HpackFault> {
        if bytes > FIELD_TABLE_BYTES_MAX {
            return Err(HpackFault::TableSize);
        }
        self.counted_bytes_max = bytes as u16;
        self.evict(bytes, fields);
        Ok(())
    }

    /// Drops the oldest fields until no more than so many bytes are left.
    fn evict(&mut self, bytes_max: usize, fields: &mut InternedFields) {
        let mut count = 0;
        while usize::from(self.counted_bytes) > bytes_max
            && let Some(number) = self.numbers.get(count)
        {
            self.counted_bytes -= fields.get(*number).counted_bytes() as u16;
            fields.release(*number);
            count += 1;
        }
        if count > 0 {
            self.numbers = self.numbers.get(count..).unwrap_or_default().into();
        }
    }

    /// Gives back all it holds.
    pub(crate) fn release(&mut self, fields: &mut InternedFields) {
        self.evict(0, fields);
    }

    /// The share of the connection in what the tables of the worker hold, in bytes.
    pub(crate) fn share_bytes(&self, fields: &InternedFields) -> usize {
        self.numbers.iter().map(|number| fields.share_bytes(*number)).sum()
    }

    /// What the connection makes the worker hold at most: the letters count as if nobody shared them.
    pub(crate) fn held_bytes(&self) -> usize {
        usize::from(self.counted_bytes) + self.numbers.len() * size_of::<u32>()
    }
}
