//! A fit for people: the host, the errors, measured beside predicted.
use std::fmt::Write;

use staunch_figures::table::{Align, lines};
use staunch_figures::words;

use super::expected::{percent, signed_percent, whole};
use super::fitted::{CurveFit, FitPoint};
use super::fitting::Fitted;
use super::host::patience_words;
use super::measured::Over;

/// The whole text of one curve.
pub(crate) fn text(fitted: &Fitted) -> String {
    let fit = &fitted.fit;
    let seen = fit.points.iter().filter(|point| point.fitted).count();
    let mut text = format!(
        "{}, over {}: fitted on the first {seen} of {} points\n\n",
        words::harmless(&fit.name),
        fit.over,
        fit.points.len()
    );
    let rows: Vec<Vec<String>> = parameters(fitted).into_iter().map(Vec::from).collect();
    for line in lines(&rows, &[Align::Left, Align::Right]) {
        let _ = writeln!(text, "  {line}");
    }
    let _ = writeln!(text, "\n  {}\n", errors(fit));
    points(&mut text, fitted.curve.over, &fit.points);
    if !fit.gated.is_empty() {
        text.push_str("\n  Behind the gate, all of it predicted:\n\n");
        points(&mut text, fitted.curve.over, &fit.gated);
    }
    text
}

/// Name, value, and what is to be known of it.
pub(crate) fn parameters(fitted: &Fitted) -> Vec<[String; 3]> {
    let (fit, host) = (&fitted.fit, &fitted.host);
    let known = |name: &str, meaning: &str| {
        let given = fit.given.iter().any(|given| given == name);
        let open = fit.undetermined.iter().any(|open| open == name);
        let how = if given {
            "; given"
        } else if open {
            "; the fitted points do not tell it"
        } else {
            ""
        };
        format!("{meaning}{how}")
    };
    let has_interrupts = fit.host.interrupt_s > 0.0;
    let row = |name: &str, value: String, meaning: &str| [name.to_owned(), value, known(name, meaning)];
    let mu1 = if has_interrupts {
        "SYN the kernel alone could receive, in large batches"
    } else {
        "SYN the kernel alone could receive"
    };
    let mut rows = vec![row("mu1", words::per_s(fit.host.mu1_per_s), mu1)];
    if has_interrupts {
        rows.push(row(
            "c0",
            words::time_ns(fit.host.interrupt_s * 1e9),
            "the kernel's work for an interrupt",
        ));
    }
    if fit.host.full_share < 1.0 {
        let meaning = "of a SYN's own cost, when it finds no place";
        rows.push(row("phi", words::percent(fit.host.full_share), meaning));
    }
    rows.extend([
        row("mu2", words::per_s(fit.host.mu2_per_s), "requests the application alone could answer"),
        row("K", words::count(u64::from(host.places)), "places before and in the application"),
        row("T", patience_words(host.patience_s), "patience of the clients"),
    ]);
    if host.retry_s > 0.0 {
        let meaning = "until who found no place tries again";
        rows.push(row("r", words::time_ns(host.retry_s * 1e9), meaning));
    }
    rows.push(row(
        "-mu2/mu1",
        format!("{:.4}", fit.slope),
        "slope of equation (7); the paper's server had -0.09",
    ));
    rows
}

/// How far the model was off, in a sentence.
pub(crate) fn errors(fit: &CurveFit) -> String {
    let mut words = format!("Error of the fitted points {}", percent(fit.error_fitted));
    if let Some((mean, most)) = fit.error_predicted.zip(fit.error_predicted_max) {
        let _ = write!(words, ", of the predicted ones {} (at most {})", percent(mean), percent(most));
    }
    words + "."
}

/// The names of the columns.
pub(crate) fn header(over: Over) -> Vec<String> {
    let load: &[&str] = if over == Over::Requests { &["offered/s"] } else { &["SYN/s", "offered/s"] };
    let rest = ["", "measured/s", "predicted/s", "error", "p50", "predicted", "p99", "predicted"];
    load.iter().chain(&rest).map(|name| (*name).to_owned()).collect()
}

/// A point as cells.
pub(crate) fn cells(over: Over, point: &FitPoint) -> Vec<String> {
    let load = match over {
        Over::Requests => vec![whole(point.requests_per_s)],
        Over::Flood => vec![whole(point.syn_per_s), whole(point.requests_per_s)],
    };
    let time = words::time_ms_or_dash;
    let rest = [
        if point.fitted { "fitted".to_owned() } else { String::new() },
        whole(point.goodput_per_s),
        whole(point.predicted.goodput_per_s),
        signed_percent(point.error),
        time(point.p50_ms),
        time(point.predicted.p50_ms),
        time(point.p99_ms),
        time(point.predicted.p99_ms),
    ];
    load.into_iter().chain(rest).collect()
}

fn points(text: &mut String, over: Over, points: &[FitPoint]) {
    let mut rows = vec![header(over)];
    rows.extend(points.iter().map(|point| cells(over, point)));
    for line in lines(&rows, &[Align::Right; 10]) {
        let _ = writeln!(text, "  {line}");
    }
}
