//! A run with all that is around it: signals, keys, the live view, files, the summary, thresholds.
//!
//! It must never show anything on standard output but a result.

use std::process::ExitCode;
use std::sync::Arc;

use console::Term;
use staunch_loadgen::plan::LaneKind;
use staunch_loadgen::threshold::Threshold;
use staunch_loadgen::view::{Facts, View};
use staunch_loadgen::{Moment, Plan, RunControl, RunOutcome, describe, report, run};
use staunch_program::output;

use super::arguments::Results;
use super::files::Files;
use super::keys;

/// Exit code when a threshold was crossed or a comparison found worse.
pub(crate) const CROSSED: u8 = 3;

/// What the keys do, for the view's last line.
const KEYS: &str = "up/down: rate, 0: as planned, q: end";

/// Carries a plan out and says what came of it.
///
/// # Errors
/// What keeps it from being carried out, a file that cannot be written, a server that is not there at all,
/// and one that gave no right answer.
pub(crate) fn offer(plan: &Plan, results: &Results) -> Result<ExitCode, String> {
    let thresholds = &results.fail_if;
    warn_of_reversed(thresholds);
    let mut files = Files::open(results)?;
    let control = Arc::new(RunControl::default());
    keys::end_on_signal(&control)?;
    let mut lost = None;
    let mut view = (!results.quiet).then(|| View::new(facts(plan)));
    if view.is_some() {
        keys::follow(&control);
    }
    let outcome = run(plan, &control, &mut |moment| {
        show(&mut view, &control, moment);
        if let Err(error) = files.step(moment) {
            lost.get_or_insert(error);
            control.stop();
        }
    });
    if let Some(view) = &mut view {
        view.finish();
    }
    let outcome = outcome.map_err(|fault| fault.to_string())?;
    let to_stdout = files.to_stdout;
    files.finish(&outcome)?;
    summarise(&outcome, results, to_stdout);
    match lost {
        Some(error) => Err(error),
        None if nothing_is_secured(&outcome) => {
            Err(format!("no handshake of TLS with {} succeeded, see the warning", plan.target))
        }
        None if nobody_is_there(&outcome) => Err(format!("no connection to {} could be made", plan.target)),
        None if crossed(thresholds, &outcome) => Ok(ExitCode::from(CROSSED)),
        None => nothing_right(plan, &outcome).map_or(Ok(ExitCode::SUCCESS), Err),
    }
}

/// Shows a step, and the rate's factor that keys have set.
pub(crate) fn show(view: &mut Option<View>, control: &RunControl, moment: &Moment) {
    if let Some(view) = view {
        view.set_factor(control.factor());
        view.observe(moment);
    }
}

/// What the view shows of a plan.
pub(crate) fn facts(plan: &Plan) -> Facts {
    Facts {
        title: plan.lanes.iter().map(describe::lane).collect::<Vec<_>>().join("; "),
        target: plan.target.clone(),
        duration: plan.duration,
        keys: KEYS.into(),
    }
}

/// Says which thresholds hold for a good run: in other tools a threshold says what must hold.
fn warn_of_reversed(thresholds: &[Threshold]) {
    for threshold in thresholds.iter().filter(|threshold| threshold.is_met_by_good_runs()) {
        output::remark(&format!(
            "staunch: --fail-if '{threshold}' fails a run that is good: it says what must not hold\n"
        ));
    }
}

fn summarise(outcome: &RunOutcome, results: &Results, to_stdout: bool) {
    if results.quiet && to_stdout {
        return;
    }
    let terminal = if to_stdout { Term::stderr() } else { Term::stdout() };
    let colour = terminal.features().colors_supported();
    let width = usize::from(terminal.size().1);
    let text = report::summary(outcome, colour, width);
    if to_stdout {
        output::remark(&text);
    } else {
        output::print(&text);
    }
}

/// Says which thresholds were crossed, and whether any was.
fn crossed(thresholds: &[Threshold], outcome: &RunOutcome) -> bool {
    let failed = thresholds.iter().map(|threshold| threshold.judge(outcome)).filter(|judged| judged.failed);
    let count = failed.inspect(|judged| {
        output::remark(&format!("staunch: failed: {} (measured {})\n", judged.expression, judged.measured));
    });
    count.count() > 0
}

/// What is said when answers came and not one was right: then something else was measured than was meant. A
/// slow client waits for no answer, so it is not judged by any.
fn nothing_right(plan: &Plan, outcome: &RunOutcome) -> Option<String> {
    let counts = outcome.counts();
    let asks = matches!(plan.lanes.first()?.kind, LaneKind::Closed { .. } | LaneKind::Open { .. });
    if !asks || counts.wrong_answer == 0 || counts.in_time + counts.late > 0 {
        return None;
    }
    let statuses = outcome.main()?.statuses.iter().map(|(status, count)| format!("{status}: {count}"));
    let statuses = match statuses.collect::<Vec<String>>().join(", ") {
        none if none.is_empty() => "none of them was HTTP".to_owned(),
        some => format!("status {some}"),
    };
    Some(format!(
        "not one answer was right, {} were wrong ({statuses}); --expect-status and --expect-body say what is \
         right",
        counts.wrong_answer
    ))
}

/// Handshakes of TLS failed and not one succeeded.
fn nothing_is_secured(outcome: &RunOutcome) -> bool {
    let counts = outcome.counts();
    counts.handshakes_failed > 0 && counts.handshakes == 0
}

/// Connections were begun and not one was made.
fn nobody_is_there(outcome: &RunOutcome) -> bool {
    let counts = outcome.counts();
    counts.connections_begun > 0 && counts.connections_made == 0 && counts.refused + counts.failed > 0
}
