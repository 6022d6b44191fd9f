//! The tables of a run's page. Each adds up where a reader can see it.
//!
//! It must never leave out a row that is not 0.
use std::fmt::Write;

use staunch_figures::escape;
use staunch_figures::words;

use crate::outcome::Counts;
use crate::report::document::{Document, Figures, Percentiles};
use crate::report::fields::{ENDS, is_error};

/// What was offered, and every end, by lane; a row below says whether it adds up.
pub(super) fn lanes(body: &mut String, document: &Document) {
    let columns: Vec<(String, Counts)> =
        document.lanes.iter().map(|lane| (escape(&lane.name), lane.figures.counts)).collect();
    body.push_str("<div class=\"wide\"><table><thead><tr><th scope=\"col\">Requests");
    for (name, _) in &columns {
        // Counts stand below their lane's name; shares have a column of their own.
        let _ = write!(body, "<th scope=\"col\" class=\"number\">{name}<td>");
    }
    body.push_str("</tr></thead><tbody>");
    row(body, "offered", "total", &columns, |counts| counts.offered);
    for end in ENDS.iter().filter(|end| columns.iter().any(|(_, counts)| end.get(counts) > 0)) {
        let class = if is_error(end) { "error" } else { "" };
        let key = format!("<i class=\"block {}\"></i>{}", end.name, end.words);
        row(body, &key, class, &columns, |counts| end.get(counts));
    }
    sum_row(body, &columns);
    held_row(body, document);
    body.push_str("</tbody></table></div>");
}

fn row(
    body: &mut String,
    name: &str,
    class: &str,
    columns: &[(String, Counts)],
    of: impl Fn(&Counts) -> u64,
) {
    let _ = write!(body, "<tr class=\"{class}\"><th scope=\"row\">{name}");
    for (_, counts) in columns {
        let count = of(counts);
        let share = if class == "total" { String::new() } else { words::share(count, counts.offered) };
        let count = words::count(count);
        let _ = write!(body, "<td class=\"number\">{count}<td class=\"number quiet\">{share}");
    }
    body.push_str("</tr>");
}

fn sum_row(body: &mut String, columns: &[(String, Counts)]) {
    body.push_str("<tr class=\"total\"><th scope=\"row\">sum of these");
    for (_, counts) in columns {
        let settled = counts.settled();
        let verdict = if settled == counts.offered {
            "<span class=\"pass\">as offered</span>".to_owned()
        } else {
            let difference = words::count(settled.abs_diff(counts.offered));
            format!("<span class=\"missed\">{difference} differ: a fault of the generator</span>")
        };
        let settled = words::count(settled);
        let _ = write!(body, "<td class=\"number\">{settled}<td>{verdict}");
    }
    body.push_str("</tr>");
}

/// Connections that lanes held at the end. Nothing when no lane holds any.
fn held_row(body: &mut String, document: &Document) {
    if document.lanes.iter().all(|lane| lane.held.is_none()) {
        return;
    }
    body.push_str("<tr><th scope=\"row\">connections held at the end");
    for lane in &document.lanes {
        let held = lane.held.map_or_else(|| "-".to_owned(), words::count);
        let _ = write!(body, "<td class=\"number\">{held}<td>");
    }
    body.push_str("</tr>");
}

/// Percentiles of each kind of time of the main lane, and the latency of the others.
pub(super) fn times(body: &mut String, document: &Document) {
    let main = &document.main;
    let mut rows: Vec<(String, Percentiles)> = Vec::new();
    let kinds = [
        ("latency", main.latency_ms),
        ("first byte", main.first_byte_ms),
        ("connect", main.connect_ms),
        ("TLS handshake", main.handshake_ms),
        ("drift", main.drift_ms),
    ];
    let kinds = kinds.into_iter().filter(|(name, times)| *name != "TLS handshake" || times.max.is_some());
    rows.extend(kinds.map(|(name, percentiles)| (name.to_owned(), percentiles)));
    let beside = document.lanes.iter().skip(1);
    rows.extend(beside.map(|lane| (format!("latency, {}", escape(&lane.name)), lane.figures.latency_ms)));
    body.push_str("<div class=\"wide\"><table><thead><tr><th scope=\"col\">Times");
    for name in ["p50", "p90", "p99", "p99.9", "longest", "mean"] {
        let _ = write!(body, "<th scope=\"col\" class=\"number\">{name}");
    }
    body.push_str("</tr></thead><tbody>");
    for (name, Percentiles { p50, p90, p99, p999, max, mean }) in rows {
        let _ = write!(body, "<tr><th scope=\"row\">{name}");
        for time in [p50, p90, p99, p999, max, mean] {
            let _ = write!(body, "<td class=\"number\">{}", words::time_ms_or_dash(time));
        }
        body.push_str("</tr>");
    }
    body.push_str("</tbody></table></div>");
}

/// The main lane's answers by status, with bars of their shares. Nothing when there was no answer.
pub(super) fn statuses(body: &mut String, document: &Document) {
    let statuses = &document.main.statuses;
    let total: u64 = statuses.values().sum();
    if total == 0 {
        return;
    }
    body.push_str("<div class=\"wide\"><table class=\"shares\"><thead><tr><th scope=\"col\">Status");
    for name in ["Answers", "Share"] {
        let _ = write!(body, "<th scope=\"col\" class=\"number\">{name}");
    }
    body.push_str("<td></tr></thead><tbody>");
    for (status, count) in statuses {
        let class = match status.as_bytes().first() {
            Some(b'2' | b'3') => "in_time",
            Some(b'5') => "timed_out",
            _ => "late",
        };
        let width = *count as f64 * 100.0 / total as f64;
        let (count, share) = (words::count(*count), words::share(*count, total));
        let _ = write!(
            body,
            "<tr><th scope=\"row\">{}<td class=\"number\">{count}<td class=\"number quiet\">{share}\
             <td class=\"bar\"><i class=\"{class}\" style=\"width:{width:.2}%\"></i></tr>",
            escape(status)
        );
    }
    body.push_str("</tbody></table></div>");
}

/// The main lane's connections, SYN segments and bytes.
pub(super) fn network(body: &mut String, document: &Document) {
    let main = &document.main;
    let per_s = |bytes: u64| words::bytes(bytes as f64 / document.seconds.max(f64::MIN_POSITIVE));
    let mut rows = vec![
        ("connections begun", words::count(main.connections_begun)),
        ("connections made", words::count(main.connections_made)),
        ("idle connections ended by the server", words::count(main.connections_ended)),
        ("SYN segments sent", words::count(main.syn_sent)),
        ("of them sent again", words::count(main.syn_retransmitted)),
        (
            "received",
            format!("{} ({}/s)", words::bytes(main.received_bytes as f64), per_s(main.received_bytes)),
        ),
        ("sent", format!("{} ({}/s)", words::bytes(main.sent_bytes as f64), per_s(main.sent_bytes))),
    ];
    rows.extend(handshakes(main));
    body.push_str("<div class=\"wide\"><table><tbody>");
    for (name, value) in rows {
        let _ = write!(body, "<tr><th scope=\"row\">{name}<td class=\"number\">{value}</tr>");
    }
    body.push_str("</tbody></table></div>");
}

/// Handshakes of TLS; nothing without it.
fn handshakes(main: &Figures) -> Vec<(&'static str, String)> {
    if main.handshakes + main.handshakes_failed == 0 {
        return Vec::new();
    }
    let suites = main.tls.suites.keys().map(|suite| escape(suite)).collect::<Vec<String>>().join(", ");
    vec![
        ("TLS handshakes", words::count(main.handshakes)),
        ("of them resumed", words::count(main.handshakes_resumed)),
        ("TLS handshakes failed", words::count(main.handshakes_failed)),
        ("TLS", suites),
    ]
}
