//! The tables of the file, and the number of their layout.
//!
//! It must never change without a higher `FORMAT`.

use redb::TableDefinition;

use crate::topic::Kind;

/// Format of the file that this version writes; a file with a higher one is refused.
pub(super) const FORMAT: u64 = 1;
/// Numbers by name: `format`, `epoch`, `number` (the last one), `is_exact`, 1 if that is surely the last one
/// that was given out, and maybe `owner`, for a file whose name does not tell whose it is.
pub(super) const FACTS: TableDefinition<'_, &str, u64> = TableDefinition::new("facts");
/// Topics by name: the kind, and the number of the last update that left the ring, or 0.
pub(super) const TOPICS: TableDefinition<'_, &str, (u8, u64)> = TableDefinition::new("topics");
/// Updates by topic and number: one record (`record.rs`) for each topic of an update.
pub(super) const UPDATES: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("updates");

/// Kinds by their code in the table of topics.
const KINDS: [Kind; 3] = [Kind::Value, Kind::Log, Kind::Json];

/// The code of a kind.
pub(crate) fn kind_code(kind: Kind) -> u8 {
    KINDS.iter().position(|known| *known == kind).map_or(u8::MAX, |code| code as u8)
}

/// The kind of a code; `None` if no kind has it.
pub(crate) fn kind_of(code: u8) -> Option<Kind> {
    KINDS.get(usize::from(code)).copied()
}
