//! A file and those that it includes, as one table.
//!
//! This module owns the rule that an included file may hold sites alone. It must never know a key of a site.

use crate::node::{self, Misprint, Name, Node, ValueKind};
use crate::reader::{Fault, Origin};
use crate::sources::{File, INCLUDE};

/// The keys and values of a file outside of its tables, and its tables, in the order of the file.
type Table = Vec<(Name, Node)>;

/// The table that a file and those that it includes come to, and what an included one may not hold.
///
/// # Errors
/// The places in any of the files that are no TOML.
pub(crate) fn table(file: &File) -> Result<(Table, Vec<Fault>), Vec<Misprint>> {
    let (mut table, mut misprints, mut faults) = (Vec::new(), Vec::new(), Vec::new());
    for (start, part) in file.parts() {
        match node::parse(&part.text) {
            Err(found) => {
                let shifted = found.into_iter().map(|(place, text)| (place.map(|place| place + start), text));
                misprints.extend(shifted);
            }
            Ok(entries) if start == 0 => table = entries,
            Ok(mut entries) => {
                node::shift(&mut entries, start);
                entries.into_iter().for_each(|entry| join(&mut table, entry, &file.name, &mut faults));
            }
        }
    }
    if misprints.is_empty() { Ok((table, faults)) } else { Err(misprints) }
}

/// Joins an entry of an included file to the table, if it is of sites.
fn join(table: &mut Vec<(Name, Node)>, (name, node): (Name, Node), main: &str, faults: &mut Vec<Fault>) {
    let key = name.text.clone();
    let text = match (key.as_str(), node.kind) {
        ("site", ValueKind::List(mut sites)) => {
            match table.iter_mut().find(|(name, _)| name.text == "site") {
                Some((_, Node { kind: ValueKind::List(all), .. })) => all.append(&mut sites),
                // A value that is no list of sites is blamed when it is read.
                Some(_) => {}
                None => table.push((name, Node { kind: ValueKind::List(sites), place: node.place })),
            }
            return;
        }
        ("site", _) => "[site] has single brackets: write [[site]], there may be several".to_owned(),
        ("path", _) => {
            "[[path]] stands in an included file: write [[site.path]] below the site it is meant for"
                .to_owned()
        }
        (INCLUDE, _) => format!("an included file includes no other: write the name into {main}"),
        (key, _) => {
            format!(
                "`{key}` stands in an included file, which has [[site]] tables alone: write it into {main}"
            )
        }
    };
    let place = name.place;
    faults.push(Fault { key: String::new(), origin: Origin::File(place.unwrap_or(0)), place, text });
}
