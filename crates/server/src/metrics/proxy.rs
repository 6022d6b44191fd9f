//! The metrics of applications that requests are passed on to.

use super::exposition::Exposition;
use crate::proxy::{ProxyClassFigures, ProxyFigures, ProxyServerFigures};

/// Adds the metrics of the proxy in the text form of Prometheus, version 0.0.4.
pub fn proxy(figures: &ProxyFigures, text: &mut String) {
    let mut out = Exposition::default();
    out.gauge("staunch_proxy_held_bytes", "Bodies held for clients that send or take them slowly.")
        .sample(&[], figures.held_bytes);
    out.counter(
        "staunch_proxy_excess_total",
        "Requests refused because their client had its share, by the reason.",
    );
    for (reason, count) in [("connections", figures.excess_connections), ("line", figures.excess_line)] {
        out.sample(&[("reason", reason)], count);
    }
    gauges(&figures.servers, &mut out);
    counters(&figures.servers, &mut out);
    classes(&figures.servers, &mut out);
    checks(&figures.servers, &mut out);
    text.push_str(&out.finish());
}

type Server = ProxyServerFigures;

fn gauges(servers: &[Server], out: &mut Exposition) {
    let limit = |server: &Server| server.limit.map_or(f64::INFINITY, f64::from);
    let mut add = |name, help, value: &dyn Fn(&Server) -> f64| {
        out.gauge(name, help);
        servers.iter().for_each(|server| _ = out.sample(&labels(server), Number(value(server))));
    };
    add("staunch_proxy_limit", "Requests that a server is given at once.", &limit);
    add("staunch_proxy_in_work", "Requests that a server works on.", &|one| one.in_work.into());
    add("staunch_proxy_waiting", "Requests that wait for a server.", &|one| one.waiting.into());
    add(
        "staunch_proxy_rate",
        "Answers a second of a server at its limit; 0 while it was never full.",
        &|one| one.rate_per_s,
    );
    add("staunch_proxy_up", "1 unless requests go elsewhere: too many failed there, or checks.", &|one| {
        f64::from(u8::from(one.is_well))
    });
}

fn counters(servers: &[Server], out: &mut Exposition) {
    let mut add = |name, help, value: &dyn Fn(&Server) -> f64| {
        out.counter(name, help);
        servers.iter().for_each(|server| _ = out.sample(&labels(server), Number(value(server))));
    };
    add("staunch_proxy_answers_total", "Answers of a server.", &|one| one.answers as f64);
    add("staunch_proxy_errors_total", "Answers of a server with a status of 500 and above.", &|one| {
        one.errors as f64
    });
    add("staunch_proxy_answer_seconds_total", "Time that answers took, all together.", &|one| one.in_work_s);
    add("staunch_proxy_retries_total", "Requests that were tried once more.", &|one| one.retried as f64);
    add("staunch_proxy_connections_total", "Connections made to a server.", &|one| one.links_opened as f64);
    add(
        "staunch_proxy_refused_total",
        "Requests refused because they could not be answered in time.",
        &|one| one.refused as f64,
    );
    add(
        "staunch_proxy_unanswered_total",
        "Requests that a server was given and that no client got an answer to.",
        &|one| one.unanswered as f64,
    );
    out.counter("staunch_proxy_failures_total", "Requests that a server has failed, by the reason.");
    for server in servers {
        let reasons = [
            ("unreachable", server.unreachable),
            ("timeout", server.timed_out),
            ("broken", server.broken),
            ("short", server.short),
        ];
        for (reason, count) in reasons {
            let [application, address] = labels(server);
            out.sample(&[application, address, ("reason", reason)], count);
        }
    }
}

/// Lines of each class that a request has had.
fn classes(servers: &[Server], out: &mut Exposition) {
    let add = |out: &mut Exposition, value: fn(&ProxyClassFigures) -> u64| {
        for (server, figures) in servers.iter().flat_map(|one| one.classes.iter().map(move |of| (one, of))) {
            let [application, address] = labels(server);
            let client = if figures.is_known { "known" } else { "new" };
            out.sample(
                &[application, address, ("class", &figures.class), ("client", client)],
                value(figures),
            );
        }
    };
    add(
        out.counter("staunch_proxy_class_requests_total", "Requests for a place, by class and client."),
        |figures| figures.asked,
    );
    add(
        out.counter("staunch_proxy_class_refused_total", "Requests refused, by class and client."),
        |figures| figures.refused,
    );
    add(out.gauge("staunch_proxy_class_waiting", "Requests that wait, by class and client."), |figures| {
        figures.waiting.into()
    });
}

/// Lines of servers that are checked.
fn checks(servers: &[Server], out: &mut Exposition) {
    let checked: Vec<_> =
        servers.iter().filter_map(|server| Some((server, server.check.as_ref()?))).collect();
    if checked.is_empty() {
        return;
    }
    out.gauge("staunch_proxy_server_up", "1 unless checks find the server ill (proxy_check).");
    for (server, check) in &checked {
        out.sample(&labels(server), u8::from(check.is_well));
    }
    out.counter("staunch_proxy_checks_total", "Checks of a server, by their result.");
    for (server, check) in &checked {
        for (result, count) in [("passed", check.passed), ("failed", check.failed)] {
            let [application, address] = labels(server);
            out.sample(&[application, address, ("result", result)], count);
        }
    }
}

fn labels(server: &Server) -> [(&str, &str); 2] {
    [("application", &server.application), ("server", &server.server)]
}

/// A number as Prometheus writes it.
struct Number(f64);

impl std::fmt::Display for Number {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_infinite() { formatter.write_str("+Inf") } else { self.0.fmt(formatter) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::ProxyCheckFigures;

    #[test]
    fn each_server_has_its_lines() {
        let server = ProxyServerFigures {
            application: "127.0.0.1:1 127.0.0.1:2".into(),
            server: "127.0.0.1:1".into(),
            in_work: 3,
            is_well: true,
            answers: 7,
            timed_out: 2,
            in_work_s: 0.25,
            classes: vec![ProxyClassFigures {
                class: "low".into(),
                asked: 9,
                refused: 8,
                waiting: 1,
                ..ProxyClassFigures::default()
            }],
            check: Some(ProxyCheckFigures { failed: 4, ..ProxyCheckFigures::default() }),
            ..ProxyServerFigures::default()
        };
        let mut text = String::new();
        proxy(
            &ProxyFigures { servers: vec![server], held_bytes: 5, excess_line: 6, ..ProxyFigures::default() },
            &mut text,
        );
        let labels = "application=\"127.0.0.1:1 127.0.0.1:2\",server=\"127.0.0.1:1\"";
        for line in [
            "staunch_proxy_held_bytes 5".to_owned(),
            "staunch_proxy_excess_total{reason=\"line\"} 6".to_owned(),
            format!("staunch_proxy_limit{{{labels}}} +Inf"),
            format!("staunch_proxy_in_work{{{labels}}} 3"),
            format!("staunch_proxy_answers_total{{{labels}}} 7"),
            format!("staunch_proxy_answer_seconds_total{{{labels}}} 0.25"),
            format!("staunch_proxy_server_up{{{labels}}} 0"),
            format!("staunch_proxy_checks_total{{{labels},result=\"failed\"}} 4"),
            format!("staunch_proxy_class_requests_total{{{labels},class=\"low\",client=\"new\"}} 9"),
            format!("staunch_proxy_class_refused_total{{{labels},class=\"low\",client=\"new\"}} 8"),
            format!("staunch_proxy_class_waiting{{{labels},class=\"low\",client=\"new\"}} 1"),
            format!("staunch_proxy_failures_total{{{labels},reason=\"timeout\"}} 2"),
        ] {
            assert!(text.lines().any(|one| one == line), "{line}:\n{text}");
        }
    }
}
