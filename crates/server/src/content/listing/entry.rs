//! What a listing is made of, and in which order.
//!
//! Owns the order of entries and the words of the query that choose it. Never reads a folder, never writes a
//! page.

use std::cmp::Ordering;

/// A file or folder that a listing names.
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
    /// By name, numbers in it by their value, without regard to the case of ASCII letters.
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

/// Runs of digits by their number, so that 2 stands before 10. Names that differ in case or in zeros only
/// stand together, capitals first, so the order is the same each time.
fn compare_names(a: &[u8], b: &[u8]) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let order = match (left, right) {
            ([], []) => return a.cmp(b),
            ([x, ..], [y, ..]) if x.is_ascii_digit() && y.is_ascii_digit() => {
                let (x, y) = (take_number(&mut left), take_number(&mut right));
                x.len().cmp(&y.len()).then_with(|| x.cmp(y))
            }
            ([x, xs @ ..], [y, ys @ ..]) => {
                (left, right) = (xs, ys);
                x.to_ascii_lowercase().cmp(&y.to_ascii_lowercase())
            }
            (left, right) => left.len().cmp(&right.len()),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// The digits at the beginning, without leading zeros: however many, none is too large.
fn take_number<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    *text = rest;
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    &digits[zeros..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_stand_in_natural_order() {
        let names = [
            "",
            "01",
            "1",
            "2",
            "10",
            "A",
            "a",
            "a-1",
            "a1b2",
            "a01b10",
            "a1b10",
            "a2",
            "a99999999999999999999999",
            "a100000000000000000000000",
            "b",
            "File 1.txt",
            "file 1.txt",
            "file 2.txt",
            "file 10.txt",
            "\u{e9}",
        ];
        for (index, a) in names.iter().enumerate() {
            for (other, b) in names.iter().enumerate() {
                assert_eq!(compare_names(a.as_bytes(), b.as_bytes()), index.cmp(&other), "{a:?} {b:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn it_is_an_order(a in "[aB0-2-]{0,6}", b in "[aB0-2-]{0,6}", c in "[aB0-2-]{0,6}") {
            let compare = |x: &str, y: &str| compare_names(x.as_bytes(), y.as_bytes());
            prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
            prop_assert_eq!(compare(&a, &b) == Ordering::Equal, a == b);
            if compare(&a, &b).is_lt() && compare(&b, &c).is_lt() {
                prop_assert!(compare(&a, &c).is_lt(), "{a} {b} {c}");
            }
        }
    }
}
