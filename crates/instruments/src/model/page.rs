//! Pages: a fit with its figures, or a plot alone. They work without a script.
//!
//! It must never put words from outside into markup as they are.
use std::fmt::Write;

use staunch_figures::escape;
use staunch_figures::plot::{Plot, figure};
use staunch_figures::{page, words};
use staunch_queueing::{Gate, Host};

use super::chart;
use super::fitted::FitPoint;
use super::fitting::Fitted;
use super::host::{gate_sentence, sentence};
use super::measured::Over;
use super::table::{cells, errors, header, parameters};

/// A page of all that was fitted in a file.
pub(crate) fn html(source: &str, fitted: &[Fitted]) -> String {
    let mut body = format!(
        "<h1>What the model says of {}</h1><p class=\"quiet\">A host is fitted on the lowest loads of \
         each curve; all other points are predicted.</p>",
        escape(source)
    );
    for (at, one) in fitted.iter().enumerate() {
        section(&mut body, at, one);
    }
    let _ = write!(body, "<p class=\"quiet\">staunch {}</p>", env!("CARGO_PKG_VERSION"));
    page::whole(&format!("{source} - staunch model fit"), "", &body)
}

/// A page of one plot.
pub(crate) fn of_plot(host: &Host, gate: &Gate, plot: &Plot) -> String {
    let body = format!(
        "<h1>{}</h1><p class=\"quiet\">{}</p><p class=\"quiet\">Gate: {}</p>{}",
        escape(&plot.title),
        escape(&sentence(host)),
        escape(&gate_sentence(gate)),
        figure("goodput", plot)
    );
    page::whole(&format!("{} - staunch model plot", plot.title), "", &body)
}

fn section(body: &mut String, at: usize, fitted: &Fitted) {
    let fit = &fitted.fit;
    let _ = write!(
        body,
        "<h2>{}, over {}</h2><p class=\"headline\">{}</p>",
        escape(&fit.name),
        fit.over,
        escape(&words::unbroken(&errors(fit)).replace(",\u{a0}", ", ").replace("\u{a0}(", " ("))
    );
    let name = if at == 0 { "goodput".to_owned() } else { format!("goodput-{}", at + 1) };
    body.push_str(&figure(&name, &chart::plot(&fitted.chart())));
    body.push_str("<h3>The host</h3><div class=\"wide\"><table><tbody>");
    for [name, value, meaning] in parameters(fitted) {
        let _ = write!(
            body,
            "<tr><th scope=\"row\">{}<td class=\"number\">{}<td>{}",
            // A minus, which no line ends behind.
            name.replace('-', "\u{2212}"),
            words::unbroken(&value),
            escape(&meaning)
        );
    }
    body.push_str("</tbody></table></div>");
    points(body, "Without a gate", fitted.curve.over, &fit.points);
    if !fit.gated.is_empty() {
        points(body, "Behind the gate, all of it predicted", fitted.curve.over, &fit.gated);
    }
}

fn points(body: &mut String, title: &str, over: Over, points: &[FitPoint]) {
    let rows = points.iter().map(|point| cells(over, point));
    let _ = write!(body, "<h3>{title}</h3>{}", page::table(&header(over), rows));
}
