//! Fields that connections of a worker keep in their tables: each once, however many keep it.
//!
//! It owns the letters, and what they mean. A thousand browsers of one make send one `User-Agent`: their
//! tables hold its number. It must never hold a field that no table holds, nor more bytes than its bound.
//! Fields are found by a hash with a secret, so that nobody can make two of them meet.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use siphasher::sip::SipHasher13;

use super::fault::HpackFault;
use crate::http2::field::{FieldLine, Meaning, judge_name, judge_value};
use crate::limits::INTERNED_BYTES_MAX;

/// The fields of one worker.
#[derive(Debug)]
pub(crate) struct InternedFields {
    entries: Vec<Interned>,
    free: Vec<u32>,
    by_hash: HashMap<u64, u32, BuildHasherDefault<Hashed>>,
    hasher: SipHasher13,
    held_bytes: usize,
    /// The mark of the field that was taken last.
    mark: u64,
}

#[derive(Debug)]
struct Interned {
    /// Empty: the place is free.
    line: Box<[u8]>,
    hash: u64,
    uses: u32,
    name_bytes: u32,
    meaning: Meaning,
    /// Tells it from every field that ever had or will have its number.
    mark: u64,
}

/// What an entry takes beside its line: its places in both lists, and what the allocator and the spare room
/// of the lists add, as measured.
const ENTRY_BYTES: usize = size_of::<Interned>() + size_of::<(u64, u32)>() + 40;

/// What is hashed already.
#[derive(Debug, Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash << 8 | u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

impl InternedFields {
    /// None yet. The secret must be one that no peer can guess.
    pub(super) fn new(secret: [u64; 2]) -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            by_hash: HashMap::default(),
            hasher: SipHasher13::new_with_keys(secret[0], secret[1]),
            held_bytes: 0,
            mark: 0,
        }
    }

    /// The number of a field, given as a line, which is used once more from now on.
    pub(super) fn take(&mut self, line: &[u8], name_bytes: usize) -> Result<u32, HpackFault> {
        let mut hasher = self.hasher;
        hasher.write(line);
        hasher.write_usize(name_bytes);
        let hash = hasher.finish();
        let known = self.by_hash.get(&hash).copied();
        if let Some(number) = known
            && let Some(entry) = self.entries.get_mut(number as usize)
            && *entry.line == *line
            && entry.name_bytes as usize == name_bytes
        {
            entry.uses += 1;
            return Ok(number);
        }
        if self.held_bytes + line.len() + ENTRY_BYTES > INTERNED_BYTES_MAX {
            return Err(HpackFault::TooMuchHeld);
        }
        let name = line.get(..name_bytes).unwrap_or_default();
        let value = line.get(name_bytes + 2..line.len().saturating_sub(2)).unwrap_or_default();
        let meaning = judge_value(judge_name(name), name, value);
        self.mark += 1;
        let (name_bytes, mark) = (name_bytes as u32, self.mark);
        let entry = Interned { line: line.into(), hash, uses: 1, name_bytes, meaning, mark };
        let number = self.place(entry);
        self.held_bytes += line.len() + ENTRY_BYTES;
        if known.is_none() {
            self.by_hash.insert(hash, number);
        }
        Ok(number)
    }

    fn place(&mut self, entry: Interned) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.entries[number as usize] = entry;
                number
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        }
    }

    /// The field of this number.
    #[inline]
    pub(super) fn get(&self, number: u32) -> FieldLine<'_> {
        let entry = &self.entries[number as usize];
        FieldLine { line: &entry.line, name_bytes: entry.name_bytes as usize, meaning: entry.meaning }
    }

    /// What tells the field of this number from all that ever had it.
    #[inline]
    pub(super) fn mark(&self, number: u32) -> u64 {
        self.entries[number as usize].mark
    }

    /// The field of this number is used once less.
    pub(super) fn release(&mut self, number: u32) {
        let entry = &mut self.entries[number as usize];
        entry.uses -= 1;
        if entry.uses > 0 {
            return;
        }
        let line = std::mem::take(&mut entry.line);
        self.held_bytes -= line.len() + ENTRY_BYTES;
        if self.by_hash.get(&entry.hash) == Some(&number) {
            self.by_hash.remove(&entry.hash);
        }
        self.free.push(number);
    }

    /// The share of a table in the memory of a field that it holds, in bytes.
    pub(super) fn share_bytes(&self, number: u32) -> usize {
        let entry = &self.entries[number as usize];
        (entry.line.len() + ENTRY_BYTES) / entry.uses.max(1) as usize
    }

    /// Memory of all fields, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_held_once_and_as_long_as_it_is_used() {
        let mut fields = InternedFields::new([1, 2]);
        let first = fields.take(b"a: b\r\n", 1).expect("room");
        let held_bytes = fields.held_bytes();
        assert_eq!(fields.take(b"a: b\r\n", 1), Ok(first));
        assert_eq!(fields.held_bytes(), held_bytes);
        let other = fields.take(b"a: c\r\n", 1).expect("room");
        assert_ne!(other, first);
        fields.release(first);
        assert_eq!((fields.get(first).name(), fields.get(first).value()), (&b"a"[..], &b"b"[..]));
        fields.release(first);
        fields.release(other);
        assert_eq!(fields.held_bytes(), 0);
        assert!(fields.by_hash.is_empty());
        assert!(fields.take(b"x: y\r\n", 1).expect("room") < 2, "places are used again");
    }

    #[test]
    fn one_line_may_be_two_fields() {
        let mut fields = InternedFields::new([1, 2]);
        let first = fields.take(b"a: : b\r\n", 1).expect("room");
        let second = fields.take(b"a: : b\r\n", 3).expect("room");
        assert_ne!(first, second);
        assert_eq!(
            (fields.get(second).name(), fields.get(second).meaning),
            (&b"a: "[..], Meaning::Malformed)
        );
    }

    #[test]
    fn the_bound_holds() {
        let mut fields = InternedFields::new([1, 2]);
        let line = |number: usize| format!("a: {number:04000}\r\n").into_bytes();
        let taken: Vec<u32> = (0..).map_while(|number| fields.take(&line(number), 1).ok()).collect();
        assert!(fields.held_bytes() <= INTERNED_BYTES_MAX);
        assert_eq!(fields.take(&line(taken.len()), 1), Err(HpackFault::TooMuchHeld));
        taken.iter().for_each(|number| fields.release(*number));
        assert_eq!(fields.held_bytes(), 0);
    }
}
