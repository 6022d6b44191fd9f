//! What a listing is made of, and in which order.
//!
//! Owns the order of entries and the words of the query that choose it. Never reads a folder, never writes a
//! page.

use std::cmp::Ordering;

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name as the file system has it: any bytes but NUL and `/`.
    pub name: Vec<u8>,
    /// Folder or file, of the target if the entry is a symbolic link.
    pub kind: Kind,
    /// Length in bytes; of no meaning for a folder.
    pub size_bytes: u64,
    /// Time of the last change, in seconds since 1970 (UTC).
    pub modified_unix_s: i64,
}

/// What an entry is. Nothing else is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A folder: listed first, its links end with `/`.
    Folder,
    /// A regular file.
    File,
}

/// By what a listing is sorted. Folders always stand before files, and equal entries in the order of their
/// names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Order {
    /// By name, without regard to the case of ASCII letters.
    #[default]
    Name,
    /// By length in bytes; folders by name.
    Size,
    /// By time of the last change.
    Time,
}

impl Order {
    /// Every order, in the order of the columns.
    pub(super) const ALL: [Order; 3] = [Order::Name, Order::Size, Order::Time];

    /// The word for it in a query: `sort=name`.
    pub(super) fn word(self) -> &'static str {
        match self {
            Order::Name => "name",
            Order::Size => "size",
            Order::Time => "time",
        }
    }
}

/// Finds `sort=name|size|time` and `order=asc|desc` in a query (without its `?`); says the order and whether
/// it is descending. What is not understood is passed over, of repeated words the last counts.
pub fn parse_order(query: &[u8]) -> (Order, bool) {
    let mut order = Order::default();
    let mut descending = false;
    for word in query.split(|&byte| byte == b'&') {
        match word {
            b"order=asc" => descending = false,
            b"order=desc" => descending = true,
            _ => {
                let value = word.strip_prefix(b"sort=").unwrap_or_default();
                order =
                    Order::ALL.into_iter().find(|order| order.word().as_bytes() == value).unwrap_or(order);
            }
        }
    }
    (order, descending)
}

/// The entries in order. The entries themselves stay where they are.
pub(super) fn sorted(entries: &[Entry], order: Order, descending: bool) -> Vec<&Entry> {
    let mut rows: Vec<&Entry> = entries.iter().collect();
    rows.sort_unstable_by(|a, b| {
        let wanted = compare(a, b, order);
        let wanted = if descending { wanted.reverse() } else { wanted };
        a.kind.cmp(&b.kind).then(wanted).then_with(|| compare_names(&a.name, &b.name))
    });
    rows
}

fn compare(a: &Entry, b: &Entry, order: Order) -> Ordering {
    match order {
        Order::Name => compare_names(&a.name, &b.name),
        Order::Size if a.kind == Kind::Folder && b.kind == Kind::Folder => Ordering::Equal,
        Order::Size => a.size_bytes.cmp(&b.size_bytes),
        Order::Time => a.modified_unix_s.cmp(&b.modified_unix_s),
    }
}

/// Names that differ in case only stand together, capitals first, so the order is the same each time.
fn compare_names(a: &[u8], b: &[u8]) -> Ordering {
    let lower = |byte: &u8| byte.to_ascii_lowercase();
    a.iter().map(lower).cmp(b.iter().map(lower)).then_with(|| a.cmp(b))
}
