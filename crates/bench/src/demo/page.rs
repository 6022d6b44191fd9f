//! The page of the demonstration: the plot and what it was drawn from, which needs nothing else.
//!
//! It owns markup. Words from outside are escaped.

use std::fmt::Write;

use super::record::{Place, Record, Sides};
use crate::page::escape;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;\
    color:#1c2430}svg{width:100%;height:auto}table{border-collapse:collapse;margin:1rem 0}\
    th,td{padding:.2rem .8rem;text-align:right;border-bottom:1px solid #e2e6ec}th:first-child,\
    td:first-child{text-align:left}.quiet{color:#667085}.wide{overflow-x:auto}";

/// The whole page.
pub(super) fn html(record: &Record, svg: &str, notes: &[String]) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>Overload, with the gate and without</title><style>{STYLE}</style></head><body>\
         <h1>Overload, with the gate and without</h1>\
         <p>Clients come by the clock, each with a connection of its own, and wait one second. What counts \
         is how many are answered within it. The gate (<code>staunch gate</code>) was told nothing about the \
         servers.</p>{svg}"
    );
    table(&mut page, "More clients than can be served", "times the peak", &record.servers);
    table(&mut page, "Clients seen before, under a flood of forged SYN segments", "SYN/s", &record.floods);
    page.push_str("<h2>How it was measured</h2><ul>");
    for note in notes {
        let _ = write!(page, "<li>{}", escape(note));
    }
    let _ = write!(page, "<li>commit {}</ul><p class=\"quiet\">", escape(&record.commit));
    for (name, value) in record.machine.iter().chain(&record.versions) {
        let _ = write!(page, "{}: {}<br>", escape(name), escape(value));
    }
    page.push_str(
        "</p><p class=\"quiet\">One round: figures with rounds are those of \
                   <code>cargo xtask bench gate</code>.</p></body></html>\n",
    );
    page
}

fn table<X: Place>(page: &mut String, title: &str, axis: &str, sides: &[Sides<X>]) {
    let _ = write!(
        page,
        "<h2>{title}</h2><div class=\"wide\"><table><thead><tr><th>server<th>gate<th>{axis}<th>offered/s\
         <th>in time/s<th>p50 ms<th>p99 ms<th>refused<th>timed out</tr></thead><tbody>"
    );
    for server in sides {
        for (gate, points) in [("off", &server.gate_off), ("on", &server.gate_on)] {
            for point in points {
                let time = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"));
                let _ = write!(
                    page,
                    "<tr><td>{}<td>{gate}<td>{}<td>{:.0}<td>{:.0}<td>{}<td>{}<td>{}<td>{}</tr>",
                    escape(&server.name),
                    point.at.x(),
                    point.offered_per_s,
                    point.goodput_per_s,
                    time(point.p50_ms),
                    time(point.p99_ms),
                    point.refused,
                    point.timed_out
                );
            }
        }
    }
    page.push_str("</tbody></table></div>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_from_outside_cannot_become_markup() {
        let record = Record { commit: "<script>".to_owned(), ..Record::default() };
        let page = html(&record, "<svg></svg>", &["<b>note</b>".to_owned()]);
        assert!(page.contains("<svg></svg>") && page.contains("&lt;b&gt;note"));
        assert!(!page.contains("<script>") && !page.contains("<b>"));
    }
}
