//! The tables of the file, and the number of their layout.
//!
//! It must never change without another number.

use redb::TableDefinition;

/// What is written by this version; a higher number is refused.
pub(super) const FORMAT: u64 = 1;
/// Single numbers: the format, the epoch, the last number, and whether that is exact.
pub(super) const FACTS: TableDefinition<'_, &str, u64> = TableDefinition::new("facts");
/// By name: the kind, and the number of the last update that left the ring.
pub(super) const TOPICS: TableDefinition<'_, &str, (u8, u64)> = TableDefinition::new("topics");
/// Records by name of the topic and number.
pub(super) const UPDATES: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("updates");
