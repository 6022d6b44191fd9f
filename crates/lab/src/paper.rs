//! What was measured before us: the table of Dong (2012), its ranking and what it contradicts itself in.
//!
//! It owns the paper's words and figures, in English and in our words. It must never hold a figure of ours.
//!
//! The text that is left of the paper has lost the edges between its columns: a row reads
//! `100.0640049.040574000500010`. It can be taken apart in one way only if each time has at most six digits
//! that matter, as `printf("%g")` writes them, and a child asks more than once: 10 children, 0.064004 s,
//! 9.04057 s, 4000 bytes, 5000 connections a child, a pool of 10. A test puts every row together again.

use crate::results::{
    AskedBy, ClientReport, Measured, MeasuredOn, Protocol, Results, Round, Row, SCHEMA, Usage,
};

/// Where it stands.
pub const SOURCE: &str = "\
    Dong Kai: Comparing the performance of network servers on Linux (in Chinese), \
    Silicon Valley 2012, no. 22";

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PaperRow {
    /// The name our model of the kind has.
    pub model: &'static str,
    /// Processes of the client.
    pub children: usize,
    /// User time of the server, in seconds.
    pub user_s: f64,
    /// System time of the server, in seconds.
    pub system_s: f64,
    /// Bytes of an answer.
    pub bytes: usize,
    /// Connections of each child.
    pub loops: u64,
    /// Size of the pool; 0 where there is none.
    pub pool: usize,
}

impl PaperRow {
    /// Connections of all children together.
    pub fn connections(&self) -> u64 {
        self.children as u64 * self.loops
    }

    /// Processor time of the server for each connection, in seconds.
    pub fn cpu_s(&self) -> f64 {
        (self.user_s + self.system_s) / self.connections() as f64
    }
}

const fn row(
    model: &'static str,
    children: usize,
    user_s: f64,
    system_s: f64,
    bytes: usize,
    loops: u64,
    pool: usize,
) -> PaperRow {
    PaperRow { model, children, user_s, system_s, bytes, loops, pool }
}

/// The whole table, in its order.
pub const TABLE: &[PaperRow] = &[
    row("iterative", 1, 0.0, 0.728045, 4000, 5000, 0),
    row("iterative", 2, 0.004, 1.24008, 4000, 5000, 0),
    row("iterative", 4, 0.004, 2.43008, 4000, 5000, 0),
    row("iterative", 10, 0.020001, 5.85637, 4000, 5000, 0),
    row("iterative", 15, 0.032002, 8.94456, 4000, 5000, 0),
    row("iterative", 1, 0.0, 0.692043, 4, 5000, 0),
    row("iterative", 1, 0.0, 0.772048, 10_000, 5000, 0),
    row("iterative", 1, 0.028001, 7.78449, 4000, 50_000, 0),
    row("fork", 1, 0.0, 2.06413, 4000, 5000, 0),
    row("fork", 10, 0.0, 1.54409, 4000, 500, 0),
    row("fork", 2, 0.012, 4.60829, 4000, 5000, 0),
    row("fork", 4, 0.032001, 6.97644, 4000, 5000, 0),
    row("fork", 10, 0.048002, 16.501, 4000, 5000, 0),
    row("fork", 1, 0.100005, 21.3413, 4000, 50_000, 0),
    row("prefork", 1, 0.004, 0.824051, 4000, 5000, 15),
    row("prefork", 10, 0.016001, 8.92456, 4000, 5000, 15),
    row("prefork", 10, 0.008, 0.612038, 4000, 500, 2),
    row("prefork", 10, 0.020001, 5.89637, 4000, 5000, 2),
    row("prefork", 100, 0.024001, 8.77655, 4000, 500, 100),
    row("prefork", 100, 0.012, 5.81636, 4000, 500, 2),
    row("prefork", 100, 0.056003, 6.73242, 4000, 500, 20),
    row("thread", 1, 0.028, 1.00406, 4000, 5000, 0),
    row("thread", 10, 0.012, 1.28408, 4000, 500, 0),
    row("thread", 10, 0.16801, 12.1168, 4000, 5000, 0),
    row("prethread", 1, 0.0, 0.856053, 4000, 5000, 10),
    row("prethread", 10, 0.012, 0.884055, 4000, 500, 10),
    row("prethread", 10, 0.064004, 9.04057, 4000, 5000, 10),
    row("prethread", 10, 0.060003, 6.4724, 4000, 5000, 2),
    row("prethread-handover", 1, 0.0, 0.876054, 4000, 5000, 10),
    row("prethread-handover", 10, 0.0, 1.01206, 4000, 500, 10),
    row("prethread-handover", 10, 0.100006, 10.2766, 4000, 5000, 10),
    row("prethread-handover", 10, 0.036002, 7.68848, 4000, 5000, 2),
];

/// Its ranking by mean time for each connection, shortest first, with the place it gives. The two in the
/// second place are said to be comparable.
pub const RANKING: [(&str, usize); 6] = [
    ("iterative", 1),
    ("prethread-handover", 2),
    ("prethread", 2),
    ("thread", 4),
    ("prefork", 5),
    ("fork", 6),
];

/// The table as if it were a run of ours, with one round, so that it can be asked what ours are asked.
pub fn as_results() -> Results {
    let measured = |row: &PaperRow| {
        let asked = Row {
            model: row.model.to_owned(),
            protocol: Protocol::Paper,
            children: row.children,
            loops: row.loops,
            bytes: row.bytes,
            pool: row.pool,
            client: AskedBy::Processes,
        };
        let connections = row.connections();
        let round = Round {
            server: Usage { user_s: row.user_s, system_s: row.system_s, ..Usage::default() },
            peak_memory_bytes: 0,
            served_by: Vec::new(),
            leaks: Vec::new(),
            client: ClientReport { answered: connections, connections, ..ClientReport::default() },
        };
        Measured { row: asked, rounds: vec![round] }
    };
    Results {
        schema: SCHEMA,
        plan: "paper".to_owned(),
        command: String::new(),
        scale: 1.0,
        machine: MeasuredOn {
            processor: String::new(),
            processors: 0,
            server_cpus: Vec::new(),
            client_cpus: Vec::new(),
            kernel: String::new(),
            version: String::new(),
            began: "2012".to_owned(),
        },
        rows: TABLE.iter().map(measured).collect(),
    }
}

/// Where the paper is silent, or says two things. A reader of its table has to know them.
pub const REMARKS: &[&str] = &[
    "It names no machine, no kernel, no number of rounds and no spread, and gives no time that passed: only \
     processor time of the server, most of it system time.",
    "It does not say of which rows the mean of its ranking is. Its own rows give another order: asked by one \
     child 5000 times, pre-forked processes cost 166 us a connection, less than both pools of threads (171 \
     and 175 us) and than a thread for each client (206 us); the ranking puts them fifth.",
    "Of the two pools of threads the ranking puts the one whose main thread accepts first; beneath the table \
     it is said to be slightly slower, and all four of its rows are.",
    "More children are said to make the iterative server 30 to 40 % quicker. Its rows say 25 %: 7.81 s for \
     50 000 connections of one child, 5.88 s of ten. Only the other way round, one child against ten, it is \
     33 % more.",
    "With more children a connection to pre-forked processes is said to cost a little more. It does with a \
     pool of 15 (8 %); with a pool of 2 it costs 6 % less.",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows as they are left, but for the units `(s)` that stand in two of them.
    const PRINTED: &str = "100.72804540005000 20.0041.2400840005000 40.0042.4300840005000 \
        100.0200015.8563740005000 150.0320028.9445640005000 100.69204345000 100.772048100005000 \
        10.0280017.78449400050000 \
        102.0641340005000 1001.544094000500 20.0124.6082940005000 40.0320016.9764440005000 \
        100.04800216.50140005000 10.10000521.3413400050000 \
        10.0040.8240514000500015 100.0160018.924564000500015 100.0080.61203840005002 \
        100.0200015.89637400050002 1000.0240018.776554000500100 1000.0125.8163640005002 \
        1000.0560036.73242400050020 \
        10.0281.0040640005000 100.0121.284084000500 100.1680112.116840005000 \
        100.8560534000500010 100.0120.884055400050010 100.0640049.040574000500010 100.0600036.4724400050002 \
        100.8760544000500010 1001.01206400050010 100.10000610.27664000500010 100.0360027.68848400050002";

    #[test]
    fn every_row_is_what_was_printed() {
        let printed: Vec<&str> = PRINTED.split_ascii_whitespace().collect();
        assert_eq!(printed.len(), TABLE.len());
        for (row, printed) in TABLE.iter().zip(printed) {
            let pool = if row.pool > 0 { row.pool.to_string() } else { String::new() };
            let together =
                format!("{}{}{}{}{}{pool}", row.children, row.user_s, row.system_s, row.bytes, row.loops);
            assert_eq!(together, printed, "{row:?}");
        }
    }

    #[test]
    fn the_remarks_are_what_the_rows_say() {
        let us = |model: &str, children, loops, pool| {
            let is_it = |row: &&PaperRow| {
                (row.model, row.children, row.loops, row.pool, row.bytes)
                    == (model, children, loops, pool, 4000)
            };
            TABLE.iter().find(is_it).map(|row| row.cpu_s() * 1e6).unwrap_or_else(|| panic!("{model}"))
        };
        let asked_once = [("prefork", 15), ("prethread", 10), ("prethread-handover", 10), ("thread", 0)];
        assert_eq!(
            asked_once.map(|(model, pool)| us(model, 1, 5000, pool).round()),
            [166.0, 171.0, 175.0, 206.0]
        );
        for (children, loops, pool) in [(1, 5000, 10), (10, 500, 10), (10, 5000, 10), (10, 5000, 2)] {
            let [each, handover] =
                ["prethread", "prethread-handover"].map(|model| us(model, children, loops, pool));
            assert!(each < handover, "{children} {loops} {pool}");
        }
        let (one, ten) = (us("iterative", 1, 50_000, 0), us("iterative", 10, 5000, 0));
        assert_eq!((((one - ten) / one * 100.0).round(), ((one - ten) / ten * 100.0).round()), (25.0, 33.0));
        let more = |from: f64, to: f64| ((to / from - 1.0) * 100.0).round();
        assert_eq!(more(us("prefork", 1, 5000, 15), us("prefork", 10, 5000, 15)), 8.0);
        assert_eq!(more(us("prefork", 10, 500, 2), us("prefork", 100, 500, 2)), -6.0);
    }

    #[test]
    fn the_ranking_names_the_six_models_that_say_they_are_of_the_paper() {
        let mut ours: Vec<&str> =
            crate::MODELS.iter().filter(|model| model.paper_row.is_some()).map(|model| model.name).collect();
        let mut theirs = RANKING.map(|(name, _)| name).to_vec();
        ours.sort_unstable();
        theirs.sort_unstable();
        assert_eq!(ours, theirs);
        assert!(TABLE.iter().all(|row| theirs.contains(&row.model)));
    }
}
