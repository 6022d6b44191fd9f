//! A block of fields, read (RFC 7541, sections 3 and 6).
//!
//! It owns what each byte of a block means. It must never fail because of what a field says: tables of both
//! ends go on alike, so even the fields of a request that is refused are read to their end.

use super::fault::HpackFault;
use super::huffman;
use super::integer;
use super::interned::InternedFields;
use super::static_table::STATIC;
use super::table::DynamicTable;
use crate::http2::field::{FieldLine, judge_name, judge_value};
use crate::limits::DECODED_BYTES_MAX;

/// Changes of the table's size at the start of a block, at most: the smallest since the last block, and the
/// last (RFC 7541, section 4.2).
const RESIZES_MAX: u8 = 2;

/// What a worker needs to read blocks of all its connections.
#[derive(Debug)]
pub(crate) struct FieldReader {
    fields: InternedFields,
    /// The line of a field that is spelled out.
    literal: Vec<u8>,
}

/// A field that a block names by its place in the dynamic table, and the mark that it has there.
#[derive(Debug)]
pub(crate) struct NamedField {
    place: u32,
    mark: u64,
}

impl FieldReader {
    /// See [`InternedFields::new`].
    pub(crate) fn new(secret: [u64; 2]) -> Self {
        Self { fields: InternedFields::new(secret), literal: Vec::new() }
    }

    /// The fields that tables hold.
    pub(crate) fn interned(&self) -> &InternedFields {
        &self.fields
    }

    /// Gives back what a table holds, before its connection ends.
    pub(crate) fn release(&mut self, table: &mut DynamicTable) {
        table.release(&mut self.fields);
    }

    /// Reads a block and gives its fields one by one.
    ///
    /// # Errors
    /// The connection must end: the tables are not the same any more.
    pub(crate) fn read(
        &mut self,
        block: &[u8],
        table: &mut DynamicTable,
        mut take: impl FnMut(FieldLine<'_>),
    ) -> Result<(), HpackFault> {
        let mut input = block;
        let (mut resizes_left, mut counted_bytes) = (RESIZES_MAX, 0);
        while let Some(&first) = input.first() {
            let field = match first {
                0x80.. => {
                    let index = integer::take(&mut input, 7)?;
                    lookup(index, table, &self.fields)?
                }
                0x20..=0x3f => {
                    resizes_left = resizes_left.checked_sub(1).ok_or(HpackFault::TableSize)?;
                    table.resize(integer::take(&mut input, 5)?, &mut self.fields)?;
                    continue;
                }
                _ => self.read_literal(first & 0x40 != 0, &mut input, table)?,
            };
            resizes_left = 0;
            counted_bytes += field.counted_bytes();
            if counted_bytes > DECODED_BYTES_MAX {
                return Err(HpackFault::TooLong);
            }
            take(field);
        }
        Ok(())
    }

    /// The fields that a block names in the table, in order; `None` if the block changes the table, or cannot
    /// be read.
    pub(crate) fn named(&self, block: &[u8], table: &DynamicTable) -> Option<Vec<NamedField>> {
        let (mut input, mut named) = (block, Vec::new());
        while let Some(&first) = input.first() {
            let index = match first {
                0x80.. => integer::take(&mut input, 7),
                0x20.. => return None,
                _ => integer::take(&mut input, 4),
            };
            let index = index.ok()?;
            let texts = if first >= 0x80 { 0 } else { 1 + usize::from(index == 0) };
            for _ in 0..texts {
                let length = integer::take(&mut input, 7).ok()?;
                input = input.get(length..)?;
            }
            if let Some(place) = index.checked_sub(STATIC.len() + 1) {
                named.push(NamedField { place: place as u32, mark: table.mark(place, &self.fields)? });
            }
        }
        Some(named)
    }

    /// Whether the table has that field at that place.
    #[inline]
    pub(crate) fn has(&self, table: &DynamicTable, named: &NamedField) -> bool {
        table.mark(named.place as usize, &self.fields) == Some(named.mark)
    }

    /// A field that is spelled out, or at least its value.
    fn read_literal(
        &mut self,
        is_added: bool,
        input: &mut &[u8],
        table: &mut DynamicTable,
    ) -> Result<FieldLine<'_>, HpackFault> {
        let index = integer::take(input, if is_added { 6 } else { 4 })?;
        self.literal.clear();
        let mut named = None;
        if index == 0 {
            read_text(input, &mut self.literal)?;
        } else {
            let entry = lookup(index, table, &self.fields)?;
            named = STATIC.get(index - 1).map(|entry| entry.named);
            self.literal.extend_from_slice(entry.name());
        }
        let name_bytes = self.literal.len();
        self.literal.extend_from_slice(b": ");
        read_text(input, &mut self.literal)?;
        self.literal.extend_from_slice(b"\r\n");
        let line = &self.literal[..];
        if is_added {
            table.add(line, name_bytes, &mut self.fields)?;
        }
        let (name, value) = (&line[..name_bytes], &line[name_bytes + 2..line.len() - 2]);
        let meaning = judge_value(named.unwrap_or_else(|| judge_name(name)), name, value);
        Ok(FieldLine { line, name_bytes, meaning })
    }
}

/// The entry with this index, in the static table or behind it in the dynamic one.
#[inline]
fn lookup<'f>(
    index: usize,
    table: &DynamicTable,
    fields: &'f InternedFields,
) -> Result<FieldLine<'f>, HpackFault> {
    let place = index.checked_sub(1).ok_or(HpackFault::Index)?;
    match STATIC.get(place) {
        Some(entry) => Ok(entry.field()),
        None => table.get(place - STATIC.len(), fields).ok_or(HpackFault::Index),
    }
}

/// Appends a text (RFC 7541, section 5.2).
fn read_text(input: &mut &[u8], text: &mut Vec<u8>) -> Result<(), HpackFault> {
    let is_coded = input.first().is_some_and(|first| first & 0x80 != 0);
    let length = integer::take(input, 7)?;
    let (bytes, rest) = input.split_at_checked(length).ok_or(HpackFault::Truncated)?;
    *input = rest;
    if is_coded {
        return huffman::decode(bytes, text);
    }
    text.extend_from_slice(bytes);
    Ok(())
}
