//! What was measured as words that the table and the page share: one row, one ranking, one comparison.
//!
//! It must never judge: verdicts come from the laboratory.
use staunch_figures::statistics::{Summary, median};
use staunch_figures::words;

use crate::evidence::{ClaimVerdict, Evidence, asked, asked_by};
use crate::findings::comparison;
use crate::paper::{self, RANKING};
use crate::ranking::{Ranking, cost};
use crate::results::{Measured, MeasuredOn, Protocol, Results, Round};
use crate::statistics::Rank;

/// All ways the client speaks, in the order of the report.
pub(super) const PROTOCOLS: [Protocol; 3] = [Protocol::Paper, Protocol::Http, Protocol::KeepAlive];

/// How the client spoke.
pub(super) fn spoken(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Paper => "The paper's protocol, a connection for each answer",
        Protocol::Http => "HTTP, a connection for each request",
        Protocol::KeepAlive => "HTTP, a connection for each child, kept alive",
    }
}

/// The columns of a row.
pub(super) const HEADER: [&str; 14] = [
    "model", "asked", "bytes", "pool", "CPU each", "least", "most", "user s", "system s", "wall s",
    "switches", "faults", "memory", "failed",
];

/// A row. Times and counts are medians of its rounds; switches and faults are for each answer.
pub(super) fn cells(measured: &Measured) -> Vec<String> {
    let row = &measured.row;
    let of = |value: fn(&Round) -> f64| median(&measured.rounds.iter().map(value).collect::<Vec<f64>>());
    let number = |value: fn(&Round) -> f64| of(value).map_or_else(dash, words::number);
    let costs = cost(&[measured])
        .map_or([(); 3].map(|()| dash()), |cost| [cost.median, cost.low, cost.high].map(time));
    let pool = if row.pool > 0 { row.pool.to_string() } else { String::new() };
    let failed: u64 = measured.rounds.iter().map(|round| round.client.failed()).sum();
    let mut cells = vec![
        row.model.clone(),
        format!("{} x {}", row.children, words::count(row.loops)),
        words::count(row.bytes as u64),
        pool,
    ];
    cells.extend(costs);
    cells.extend([
        number(|round| round.server.user_s),
        number(|round| round.server.system_s),
        number(|round| round.client.wall_s),
        number(|round| each(round, round.server.voluntary_switches + round.server.involuntary_switches)),
        number(|round| each(round, round.server.minor_faults + round.server.major_faults)),
        of(|round| round.peak_memory_bytes as f64).map_or_else(dash, words::bytes),
        words::count(failed),
    ]);
    cells
}

fn each(round: &Round, count: u64) -> f64 {
    count as f64 / round.client.answered.max(1) as f64
}

fn dash() -> String {
    "-".to_owned()
}

/// Seconds of a connection in the unit that suits them.
pub(super) fn time(seconds: f64) -> String {
    words::time_ns(seconds * 1e9)
}

/// A cost with its range.
pub(super) fn cost_words(cost: &Summary) -> String {
    if cost.low == cost.high {
        return time(cost.median);
    }
    format!("{} ({} to {})", time(cost.median), time(cost.low), time(cost.high))
}

/// How connections were spread over processes or threads, of all rounds: `15: 5.2 % to 8.1 %, 2 with none`.
pub(super) fn spread(measured: &Measured) -> Option<String> {
    let shares = shares(measured)?;
    let (most, least) = (shares.first()?, shares.last()?);
    let idle = shares.iter().filter(|share| **share == 0.0).count();
    let idle = if idle > 0 { format!(", {idle} with none") } else { String::new() };
    Some(format!("{}: {:.1} % to {:.1} %{idle}", shares.len(), least * 100.0, most * 100.0))
}

/// The share of each process or thread, largest first, as the mean of the rounds.
pub(super) fn shares(measured: &Measured) -> Option<Vec<f64>> {
    let rounds: Vec<&[u64]> =
        measured.rounds.iter().map(|round| &*round.served_by).filter(|served| served.len() > 1).collect();
    let length = rounds.iter().map(|served| served.len()).max()?;
    let share = |served: &[u64], place: usize| {
        served.get(place).copied().unwrap_or(0) as f64 / served.iter().sum::<u64>().max(1) as f64
    };
    let mean = |place| rounds.iter().map(|served| share(served, place)).sum::<f64>() / rounds.len() as f64;
    Some((0..length).map(mean).collect())
}

/// What went wrong: failed connections by what was said of them, and what was left behind. A sentence each.
pub(super) fn faults(results: &Results) -> Vec<String> {
    let mut faults = Vec::new();
    for measured in &results.rows {
        let name = format!("{}, {}", measured.row.model, asked(&measured.row));
        if measured.rounds.is_empty() {
            faults.push(format!("{name}: was not measured"));
        }
        for (number, round) in (1..).zip(&measured.rounds) {
            for (error, count) in &round.client.errors {
                faults.push(format!("{name}, round {number}: {} failed: {error}", words::count(*count)));
            }
            faults.extend(round.leaks.iter().map(|leak| format!("{name}, round {number}: {leak}")));
        }
    }
    faults
}

/// What there is to be said when nothing went wrong.
pub(super) fn faultless(results: &Results) -> String {
    let rounds = || results.rows.iter().flat_map(|one| &one.rounds);
    let answered: u64 = rounds().map(|round| round.client.answered).sum();
    format!(
        "No connection failed, and nothing was left behind: no process, no thread, no descriptor. {} answers \
         in {} rounds.",
        words::count(answered),
        words::count(rounds().count() as u64)
    )
}

/// Where and how, in a line.
pub(super) fn circumstances(results: &Results) -> String {
    let MeasuredOn { processor, server_cpus, client_cpus, kernel, .. } = &results.machine;
    let rounds = results.rows.iter().map(|one| one.rounds.len()).max().unwrap_or(0);
    format!(
        "{rounds} rounds, loops x {}; {processor}, server on {}, client on {}; Linux {kernel}",
        words::number(results.scale),
        cpus(server_cpus),
        cpus(client_cpus),
    )
}

/// Processors in words: `CPU 0`, `CPU 0, 2`.
pub(super) fn cpus(cpus: &[usize]) -> String {
    let numbers: Vec<String> = cpus.iter().map(usize::to_string).collect();
    format!("CPU {}", numbers.join(", "))
}

/// A place as a number, with `=` in front if others share it.
pub(super) fn place_words(place: &Rank, places: &[Rank]) -> String {
    let shared = places.iter().filter(|other| other.place == place.place).count() > 1;
    format!("{}{}", if shared { "=" } else { "" }, place.place)
}

/// The order of places, those who share one joined: `iterative; prethread = thread; fork`.
pub(super) fn order_words(places: &[Rank]) -> String {
    let groups = places.chunk_by(|a, b| a.place == b.place);
    let names =
        |group: &[Rank]| group.iter().map(|place| place.name.as_str()).collect::<Vec<&str>>().join(" = ");
    groups.map(names).collect::<Vec<String>>().join("; ")
}

/// The paper's ranking beside ours, in sentences. Nothing if not two of its models were asked the same.
pub(super) fn agreement(results: &Results) -> Option<Vec<String>> {
    let ours = comparison::six(results)?;
    let order = comparison::order(&ours);
    let is = |verdict| order.iter().filter(move |case: &&Evidence| case.verdict == verdict);
    let groups = RANKING.chunk_by(|a, b| a.1 == b.1);
    let theirs = groups.map(|group| group.iter().map(|one| one.0).collect::<Vec<&str>>().join(" = "));
    let mut sentences = vec![
        format!("The paper's ranking: {}.", theirs.collect::<Vec<String>>().join("; ")),
        format!("Ours, on {}: {}.", questions(&ours), order_words(&ours.places)),
    ];
    if let Some(own) = comparison::six(&paper::as_results()) {
        let words = order_words(&own.places);
        sentences.push(format!("What the paper's own rows give, taken in the same way: {words}."));
    }
    sentences.push(format!(
        "Of the {} pairs the paper puts in order, so here: {}; the other way round: {}; not told \
         apart: {}.",
        order.len(),
        is(ClaimVerdict::Confirmed).count(),
        is(ClaimVerdict::Refuted).count(),
        is(ClaimVerdict::NotSeparable).count()
    ));
    for (verdict, words) in
        [(ClaimVerdict::Refuted, "Not so here"), (ClaimVerdict::NotSeparable, "Not told apart")]
    {
        sentences.extend(is(verdict).map(|case| format!("{words}: {} ({}).", case.what, case.figures)));
    }
    Some(sentences)
}

/// What all models of a ranking were asked.
pub(super) fn questions(ranking: &Ranking) -> String {
    let asked = ranking.questions.iter().map(|one| {
        let (loops, bytes) = (words::count(one.loops), words::count(one.bytes as u64));
        let by = match asked_by(one.client) {
            "" => String::new(),
            by => format!(", {by}"),
        };
        format!("{} x {loops}, {bytes} B{by}", one.children)
    });
    asked.collect::<Vec<String>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::made_up;

    #[test]
    fn a_row_has_a_cell_a_column() {
        let results = made_up::results();
        for measured in &results.rows {
            assert_eq!(cells(measured).len(), HEADER.len());
        }
        let empty = Measured { row: results.rows[0].row.clone(), rounds: Vec::new() };
        assert_eq!(cells(&empty)[4..13], ["-"; 9]);
    }

    #[test]
    fn a_spread_counts_all_rounds_and_names_the_idle() {
        let mut measured = made_up::results().rows[0].clone();
        measured.rounds.truncate(2);
        measured.rounds[0].served_by = vec![6, 4, 0, 0];
        measured.rounds[1].served_by = vec![10, 5, 5, 0];
        assert_eq!(spread(&measured).as_deref(), Some("4: 0.0 % to 55.0 %, 1 with none"));
        measured.rounds.iter_mut().for_each(|round| round.served_by.clear());
        assert_eq!(spread(&measured), None);
    }

    #[test]
    fn faults_are_named_with_their_row_and_round() {
        let mut results = made_up::results();
        assert_eq!(faults(&results), Vec::<String>::new());
        let round = &mut results.rows[0].rounds[1];
        round.client.errors = vec![("connection refused".into(), 3)];
        round.leaks = vec!["a process is left".into()];
        results.rows[1].rounds.clear();
        let faults = faults(&results);
        assert_eq!(faults.len(), 3);
        assert_eq!(faults[0], "iterative, 1 x 5000, 4000 B, round 2: 3 failed: connection refused");
        assert!(faults[1].ends_with("round 2: a process is left") && faults[2].ends_with("was not measured"));
    }

    #[test]
    fn agreement_and_disagreement_are_said() {
        let words = agreement(&made_up::results()).expect("six models").join("\n");
        assert!(words.contains("The paper's ranking: iterative; prethread-handover = prethread; thread;"));
        assert!(words.contains("the paper's own rows give, taken in the same way: iterative; prefork;"));
        assert!(
            words.contains("Of the 14 pairs the paper puts in order, so here: 11; the other way round: 3;"),
            "{words}"
        );
        assert!(words.contains("Not so here: thread before prefork ("), "{words}");
        let nothing = Results { rows: Vec::new(), ..made_up::results() };
        assert_eq!(agreement(&nothing), None);
    }
}
