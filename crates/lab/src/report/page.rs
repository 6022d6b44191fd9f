//! A run as one page that explains itself and needs nothing else: rankings, plots, the paper beside ours.
//!
//! It owns the order of the page and its words. It must never judge, and never put words from outside into
//! markup as they are.

mod panels;
mod tables;
use std::fmt::Write as _;

use staunch_figures::escape;
use staunch_figures::{self as figures, words};

use crate::ranking::{ranking, spoken};
use crate::report::rows;
use crate::results::{Protocol, Results};
use crate::statistics::Rank;
use crate::{MODELS, Model};
use panels::Over;

/// Beside the style of every page: panels in columns, with letters that can be read at that size.
const STYLE: &str = "\
.panels { display: grid; grid-template-columns:
  repeat(auto-fill, minmax(min(100%, 22rem), 1fr)); gap: 0 1.5rem; }
.panels figure { margin: .75rem 0 1rem; }
.panels svg { font-size: 23px; }
.panels .line { stroke-width: 2.6; }
h3 { margin: 1.75rem 0 .25rem; font-size: 1.05rem; }
.shares td, .shares th { padding-right: .8rem; }
.shares .bar { width: 50%; padding-right: .8rem; }
.shares small { display: inline-block; min-width: 9.5rem; }
.part { display: grid; grid-template-columns: 7.5rem minmax(0, 1fr); margin: .6rem 0 0; }
.evidence { margin: .1rem 0 .4rem 7.5rem; padding: 0; list-style: none; font-size: .88rem; }
.evidence li { margin: .15rem 0; }
summary { cursor: pointer; margin: .5rem 0; }
.models { grid-template-columns: minmax(0, 11rem) minmax(0, 1fr); gap: .4rem 1rem; }
@media (max-width: 40rem) {
  .panels svg { font-size: 24px; }
  .part { grid-template-columns: minmax(0, 1fr); }
  .evidence { margin-left: 0; }
  .shares small { display: block; min-width: 0; }
  .models { grid-template-columns: minmax(0, 1fr); gap: 0; }
  .models dd { margin-bottom: .6rem; }
}
";

/// What a reader has to know before the figures.
const READING: &str = "\
<p>Each model is a whole server in its plainest form, one short file. One client asks all of them the same: \
so many <em>children</em>, processes of the client that each make one connection after the other, ask for so \
many bytes, read them, and close. Where rows say \"asked by epoll\" the children are states of one loop \
in one process, which takes less of its processor for an answer than processes do, so that it is the server \
that is measured.</p>\
<p>What counts is the <strong>processor time of the server for each answer</strong>, user and system \
together, of all its processes and threads: what a connection costs, however fast the client asks. Where \
nothing else is said a figure is the median of the rounds, with its range in brackets; strokes in plots show \
it. With up to five rounds it holds all of them. A model's place is one more than the \
number of models that are surely cheaper: their whole range lies below its own. Models that share a place \
(=) are tied, they cannot be told apart; nor can two of different places whose ranges overlap.</p>";

/// The whole page.
pub fn page(results: &Results) -> String {
    let mut body = String::new();
    let _ = write!(
        body,
        "<h1 id=\"models\">Server models compared</h1><p class=\"quiet\">{}, plan {}: {}</p>\
         <p class=\"headline\">{}</p>",
        escape(&results.machine.began),
        escape(&results.plan),
        escape(&rows::circumstances(results)),
        headline(results)
    );
    warnings(&mut body, &rows::faults(results));
    body.push_str("<h2>How to read it</h2>");
    body.push_str(READING);
    rankings(&mut body, results);
    for over in [Over::Children, Over::Pool, Over::Bytes] {
        section(&mut body, over.title(), over.note(), &panels::panels(results, over));
    }
    tables::paper(&mut body, results);
    tables::findings(&mut body, results);
    section(&mut body, panels::SPREAD_TITLE, panels::SPREAD_NOTE, &panels::spread(results));
    tables::spread(&mut body, results);
    body.push_str("<h2>Errors, and what was left behind</h2>");
    tables::faults(&mut body, results);
    tables::rows(&mut body, results);
    models(&mut body);
    body.push_str(&colophon(results));
    figures::page::whole("Server models compared - staunch lab", STYLE, &body)
}

/// The cheapest and the dearest of each way to speak that more than one model was asked in.
fn headline(results: &Results) -> String {
    let mut sentences = Vec::new();
    for protocol in [Protocol::Paper, Protocol::Http, Protocol::KeepAlive] {
        let Some(ranking) = ranking(&spoken(results, protocol)) else { continue };
        let (Some(first), Some(last)) = (ranking.places.first(), ranking.places.last()) else { continue };
        let tied: Vec<&Rank> = ranking.places.iter().filter(|place| place.place == first.place).collect();
        if protocol == Protocol::Http && sentences.len() == 1 {
            continue; // a connection for each answer once more
        }
        let way = match protocol {
            Protocol::KeepAlive => "With connections kept alive",
            Protocol::Paper | Protocol::Http => "With a connection for each answer",
        };
        if tied.len() == ranking.places.len() {
            sentences.push(format!("{way} no model can be told from the others."));
            continue;
        }
        let others = match tied.len() {
            1 => String::new(),
            2 => " and one tied with it".to_owned(),
            more => format!(" and {} of {} models tied with it", more - 1, ranking.places.len()),
        };
        sentences.push(format!(
            "{way} <strong>{}</strong>{others} cost least, {} of the processor each; {} costs {} times as \
             much.",
            escape(&first.name),
            words::unbroken(&rows::time(first.summary.median)),
            escape(&last.name),
            words::number(last.summary.median / first.summary.median)
        ));
    }
    if sentences.is_empty() { "No two models were asked the same.".to_owned() } else { sentences.join(" ") }
}

/// What went wrong, before anything that it may make worthless.
fn warnings(body: &mut String, faults: &[String]) {
    if !faults.is_empty() {
        let _ = write!(
            body,
            "<ul class=\"warnings\" role=\"alert\"><li><strong>Warning:</strong> not all went well, see \
             <a href=\"#faults\">below</a>: {}.</ul>",
            if faults.len() == 1 { "a fault".to_owned() } else { format!("{} faults", faults.len()) }
        );
    }
}

fn section(body: &mut String, title: &str, note: &str, content: &str) {
    if !content.is_empty() {
        let _ = write!(
            body,
            "<h2>{title}</h2><p class=\"quiet\">{note}</p><div class=\"panels\">{content}</div>"
        );
    }
}

fn rankings(body: &mut String, results: &Results) {
    body.push_str("<h2>Ranking: what an answer costs</h2>");
    for protocol in rows::PROTOCOLS {
        let Some(ranking) = ranking(&spoken(results, protocol)) else { continue };
        let _ = write!(
            body,
            "<h3>{}</h3><p class=\"quiet\">Asked of all: {}.</p>",
            rows::spoken(protocol),
            words::unbroken(&rows::questions(&ranking)).replace(";\u{a0}", "; ")
        );
        bars(body, &ranking.places);
    }
}

/// A bar for each model, as long as its cost.
fn bars(body: &mut String, places: &[Rank]) {
    let most = places.iter().map(|place| place.summary.median).fold(0.0, f64::max);
    body.push_str("<div class=\"wide\"><table class=\"shares\"><tbody>");
    for place in places {
        let class = if place.name.starts_with("staunch-") { "in_time" } else { "unfinished" };
        let _ = write!(
            body,
            "<tr><td class=\"number\">{}<th scope=\"row\">{}<td class=\"bar\"><i class=\"{class}\" \
             style=\"width:{:.1}%\"></i><td class=\"number\">{}<small class=\"quiet\">{} to {}</small>",
            rows::place_words(place, places),
            escape(&place.name),
            if most > 0.0 { place.summary.median / most * 100.0 } else { 0.0 },
            words::unbroken(&rows::time(place.summary.median)),
            words::unbroken(&rows::time(place.summary.low)),
            words::unbroken(&rows::time(place.summary.high)),
        );
    }
    body.push_str("</tbody></table></div>");
}

fn models(body: &mut String) {
    body.push_str("<h2>The models</h2><dl class=\"models\">");
    for Model { name, title, lesson, paper_row, .. } in MODELS {
        let paper = paper_row.map(|row| format!(" Model {row} of the paper.")).unwrap_or_default();
        let _ = write!(body, "<dt>{name}<dd><strong>{}.</strong> {}{paper}", escape(title), escape(lesson));
    }
    body.push_str("</dl>");
}

/// The command that measures the same again, and where this was measured.
fn colophon(results: &Results) -> String {
    let machine = &results.machine;
    let facts = [
        ("Processor", format!("{}, {} of them", machine.processor, machine.processors)),
        ("Server", rows::cpus(&machine.server_cpus)),
        ("Client", rows::cpus(&machine.client_cpus)),
        ("Kernel", machine.kernel.clone()),
        ("Version", format!("staunch {}", machine.version)),
        ("Began", machine.began.clone()),
    ];
    figures::page::colophon(&results.command, facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::made_up;

    #[test]
    fn the_page_has_every_section_and_escapes_what_comes_from_outside() {
        let mut results = made_up::results();
        results.command.push_str(" --plan <b>");
        results.rows[0].rounds[0].leaks.push("<b>left".into());
        let page = page(&results);
        for words in [
            "With a connection for each answer <strong>iterative</strong> cost least",
            "With connections kept alive <strong>staunch-epoll</strong> cost least",
            "<h2>What an answer costs as children grow</h2>",
            "<h2>What an answer costs as the pool grows</h2>",
            "<h2>What an answer costs as the answer grows</h2>",
            "<figure id=\"children-iterative\">",
            "<figure id=\"spread-prefork\">",
            "&lt;b&gt;left",
            "The paper&#39;s ranking",
            "6. Pre-threaded, the main thread accepts",
        ] {
            assert!(page.contains(words), "no {words:?}");
        }
        assert!(!page.contains("<b>") && !page.contains("NaN") && !page.contains("<script"));
        for model in MODELS {
            assert!(page.contains(&format!("<dt>{}<dd>", model.name)));
        }
    }

    #[test]
    fn a_run_without_rows_has_a_page() {
        let nothing = Results { rows: Vec::new(), ..made_up::results() };
        let page = page(&nothing);
        assert!(page.contains("No two models were asked the same.") && !page.contains("NaN"));
    }
}
