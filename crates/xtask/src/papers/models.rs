//! The table of server models: the paper's user and system time beside ours, row by row.
//!
//! The table fills the place for it in `docs/server-models.md`. The paper's figures have one copy, the table
//! of `crates/lab/src/paper.rs`, which is read here as text. It must never change what stands around its
//! place.

use serde_json::Value;

use super::reading::{LabRow, lab_rounds};
use super::words::{number, table};

/// Where the paper's table stands.
pub(super) const SOURCE: &str = "crates/lab/src/paper.rs";
/// The document with the place.
pub(super) const DOCUMENT: &str = "docs/server-models.md";
const BEGIN: &str = "<!-- The table is made by cargo xtask papers. -->\n";
const END: &str = "<!-- Its end. -->\n";
const HEAD: [&str; 9] =
    ["model", "asked", "bytes", "pool", "user", "system", "our user", "our system", "ours / paper"];
const US_PER_S: f64 = 1e6;

/// A row of the paper's table.
#[derive(Debug, PartialEq)]
struct Printed<'a> {
    row: LabRow<'a>,
    user_us: f64,
    system_us: f64,
}

/// The document with the table of this run in its place.
///
/// # Errors
/// A table that cannot be read, a row that was not asked, a document without the place.
pub(super) fn filled(document: &str, source: &str, lab: &Value) -> Result<String, String> {
    let printed = printed(source)?;
    let rows = printed.iter().map(|row| cells(row, lab)).collect::<Result<Vec<_>, String>>()?;
    let right = [false, true, true, true, true, true, true, true, true];
    let missing = || format!("{DOCUMENT}: no place for the table");
    let (before, rest) = document.split_once(BEGIN).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    Ok(format!("{before}{BEGIN}\n{}\n{END}{after}", table(&HEAD, &right, &rows)))
}

/// The rows `row("model", children, user_s, system_s, bytes, loops, pool),` of the source.
fn printed(source: &str) -> Result<Vec<Printed<'_>>, String> {
    let lines = source.lines().filter_map(|line| line.trim().strip_prefix("row(\"")?.strip_suffix("),"));
    let rows = lines.map(|line| one(line).ok_or_else(|| format!("{SOURCE}: not understood: {line}")));
    let rows = rows.collect::<Result<Vec<_>, String>>()?;
    if rows.is_empty() { Err(format!("{SOURCE}: no row")) } else { Ok(rows) }
}

fn one(line: &str) -> Option<Printed<'_>> {
    let words: Vec<&str> = line.split(", ").collect();
    let [model, children, user, system, bytes, loops, pool] = words[..] else { return None };
    let whole = |word: &str| word.replace('_', "").parse::<u64>().ok();
    let (children, loops) = (whole(children)?, whole(loops)?);
    let each = |word: &str| Some(word.parse::<f64>().ok()? / (children * loops) as f64 * US_PER_S);
    let row = LabRow {
        model: model.trim_end_matches('"'),
        children,
        loops,
        bytes: whole(bytes)?,
        pool: whole(pool)?,
    };
    Some(Printed { row, user_us: each(user)?, system_us: each(system)? })
}

fn cells(printed: &Printed, lab: &Value) -> Result<Vec<String>, String> {
    let rounds = lab_rounds(lab, &printed.row)?;
    let (user, system) =
        (median(rounds.iter().map(|round| round.0)), median(rounds.iter().map(|round| round.1)));
    let whole = median(rounds.iter().map(|round| round.0 + round.1));
    let row = &printed.row;
    let pool = if row.pool == 0 { String::new() } else { row.pool.to_string() };
    Ok(vec![
        row.model.to_owned(),
        format!("{} x {}", row.children, row.loops),
        row.bytes.to_string(),
        pool,
        number(printed.user_us),
        number(printed.system_us),
        number(user),
        number(system),
        number(whole / (printed.user_us + printed.system_us)),
    ])
}

/// The middle one; rounds are odd in number.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TABLE: &str = "const fn row(\n    row(\"fork\", 2, 0.01, 0.03, 4000, 50_000, 15),\n";

    #[test]
    fn the_place_alone_is_filled() {
        let round = json!({"server": {"user_s": 0.01, "system_s": 0.02}, "client": {"answered": 100_000}});
        let lab = json!({"scale": 1.0, "rows": [{"row": {"model": "fork", "protocol": "paper", "children": 2,
            "loops": 50_000, "bytes": 4000, "pool": 15}, "rounds": [round]}]});
        let document = format!("before\n{BEGIN}old\n{END}after\n");
        let new = filled(&document, TABLE, &lab).expect("a table");
        assert!(new.starts_with("before\n") && new.ends_with("after\n") && !new.contains("old"), "{new}");
        let cells: Vec<&str> = new.lines().nth(5).expect("a row").split('|').map(str::trim).collect();
        assert_eq!(
            cells[1..10],
            ["fork", "2 x 50000", "4000", "15", "0.100", "0.300", "0.100", "0.200", "0.750"]
        );
        assert_eq!(filled(&new, TABLE, &lab).as_ref(), Ok(&new));
    }

    #[test]
    fn what_is_missing_is_told() {
        let lab = json!({"rows": []});
        assert!(filled("", TABLE, &lab).is_err_and(|error| error.contains("no row of")));
        assert!(printed("").is_err_and(|error| error.contains("no row")));
        let bad = TABLE.replace("4000", "many");
        assert!(printed(&bad).is_err_and(|error| error.contains("not understood")));
        let one = json!({"rows": [{"row": {"model": "fork", "protocol": "paper", "children": 2,
            "loops": 50_000, "bytes": 4000, "pool": 15}, "rounds": []}]});
        assert!(filled("", TABLE, &one).is_err_and(|error| error.contains("no place")));
    }
}
