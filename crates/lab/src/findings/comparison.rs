//! The paper's ranking and table beside ours.
//!
//! It must never rank the paper's models by rows that not all of them have.
use staunch_figures::statistics::Summary;

use crate::evidence::{Evidence, Figures, judge};
use crate::paper::{PaperRow, RANKING, TABLE};
use crate::ranking::{Ranking, as_the_paper_asked, cost, ranking};
use crate::results::{Measured, Results};

/// The paper's six models in our order.
pub fn six(results: &Results) -> Option<Ranking> {
    let is_one = |one: &&Measured| RANKING.iter().any(|(model, _)| *model == one.row.model);
    ranking(&as_the_paper_asked(results).into_iter().filter(is_one).collect::<Vec<_>>())
}

/// Every two models of which the paper puts one before the other: whether it is so here.
pub fn order(ours: &Ranking) -> Vec<Evidence> {
    let find = |model: &str| ours.places.iter().find(|place| place.name == model).map(|place| place.summary);
    let mut order = Vec::new();
    for (index, (before, place)) in RANKING.iter().enumerate() {
        for (after, later) in &RANKING[index + 1..] {
            if place == later {
                continue;
            }
            if let (Some(first), Some(second)) = (find(before), find(after)) {
                let verdict = judge(&first, &second, &super::MORE);
                let what = format!("{before} before {after}");
                order.push(Evidence { what, figures: Figures::Costs(first, second), verdict });
            }
        }
    }
    order
}

/// Each row of the paper with what the same row cost here, in seconds of the processor for each connection.
pub fn table(results: &Results) -> Vec<(&'static PaperRow, Option<Summary>)> {
    let rows = as_the_paper_asked(results);
    let ours = |row: &PaperRow| {
        let loops = (row.loops as f64 * results.scale).max(1.0);
        let is_same = |one: &&&Measured| {
            let ours = &one.row;
            (&*ours.model, ours.children, ours.bytes, ours.pool)
                == (row.model, row.children, row.bytes, row.pool)
                && (ours.loops as f64 - loops).abs() <= 1.0
        };
        cost(&[rows.iter().find(is_same)?])
    };
    TABLE.iter().map(|row| (row, ours(row))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::ClaimVerdict;
    use crate::made_up::{measured, results};
    use crate::paper;

    #[test]
    fn the_papers_rows_do_not_give_the_papers_order() {
        let ranking = six(&paper::as_results()).expect("a ranking");
        let names: Vec<&str> = ranking.places.iter().map(|place| place.name.as_str()).collect();
        assert_eq!(
            names,
            ["iterative", "prefork", "prethread", "prethread-handover", "thread", "fork"],
            "{ranking:?}"
        );
        assert_eq!(ranking.questions.len(), 2);
        let order = order(&ranking);
        let refuted: Vec<&str> = order
            .iter()
            .filter(|case| case.verdict == ClaimVerdict::Refuted)
            .map(|case| case.what.as_str())
            .collect();
        assert_eq!(order.len(), 14);
        let [handover, each, thread] =
            ["prethread-handover", "prethread", "thread"].map(|model| format!("{model} before prefork"));
        assert_eq!(refuted, [handover, each, thread]);
    }

    #[test]
    fn a_row_stands_beside_the_one_of_the_scaled_plan() {
        let mut ours = results(vec![
            measured("prefork", (100, 19, 4000, 2), &[10.0, 11.0, 12.0]),
            measured("prefork", (10, 500, 4000, 2), &[99.0]),
        ]);
        ours.scale = 0.037;
        let table = table(&ours);
        assert_eq!(table.len(), TABLE.len());
        let found: Vec<_> = table.iter().filter_map(|(row, ours)| Some((row, (*ours)?))).collect();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].0.children, found[0].0.loops, found[0].0.pool), (100, 500, 2));
        assert!((found[0].1.median - 11e-6).abs() < 1e-12);
    }
}
