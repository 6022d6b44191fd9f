//! The dashboard and the alerts that are shipped, asked of a real Prometheus that reads a real server.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use staunch_tests::process::is_installed;

use crate::peer::{PATIENCE, Seen, body, get, start};

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging").join(name)
}

/// A Prometheus of this test's own.
struct Prometheus {
    child: Child,
    address: String,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // Prometheus may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Prometheus {
    fn start(seen: &Seen) -> Self {
        let folder = seen.tree.root().join(".prometheus");
        std::fs::create_dir_all(&folder).expect("a folder");
        let settings = folder.join("prometheus.yml");
        let text = format!(
            "global: {{ scrape_interval: 100ms }}\nscrape_configs:\n  - job_name: staunch\n    \
             static_configs:\n      - targets: [\"{}\"]\n",
            seen.admin
        );
        std::fs::write(&settings, text).expect("a file");
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", settings.display()));
        command.arg(format!("--storage.tsdb.path={}", folder.join("data").display()));
        command.arg("--web.listen-address=127.0.0.1:0");
        let mut child = command.stderr(Stdio::piped()).spawn().expect("prometheus");
        let mut lines = BufReader::new(child.stderr.take().expect("its log")).lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains("Listening on")).expect("a line of where it listens");
        // Prometheus' further lines are read, so that it never waits for that.
        std::thread::spawn(move || lines.for_each(drop));
        let address = line.rsplit_once("address=").expect("an address").1.trim().to_owned();
        Self { child, address }
    }

    /// The values of an expression.
    fn ask(&self, expression: &str) -> Vec<Value> {
        let query = format!("query={expression}");
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--get", "--data-urlencode", &query]);
        let output = curl.arg(format!("http://{}/api/v1/query", self.address)).output().expect("curl");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        // Before it has begun there is no answer.
        if answer.is_null() {
            return Vec::new();
        }
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
        answer["data"]["result"].as_array().cloned().unwrap_or_default()
    }

    /// Waits until an expression gives something.
    fn await_result(&self, expression: &str) {
        let start = Instant::now();
        while self.ask(expression).is_empty() {
            assert!(start.elapsed() < PATIENCE, "`{expression}` gives nothing");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The expressions that graphs are drawn of, as Grafana would ask for it.
fn drawn() -> Vec<String> {
    let text = std::fs::read_to_string(shipped("grafana/staunch.json")).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().expect("targets").clone());
    let plain = |text: &str| text.replace("$instance", ".*").replace("$__rate_interval", "1m");
    targets.map(|target| plain(target["expr"].as_str().expect("an expression"))).collect()
}

/// The expressions that alerts compare, without what they compare it with.
fn watched() -> Vec<String> {
    let text = std::fs::read_to_string(shipped("prometheus/staunch.rules.yml")).expect("the rules");
    let compared = |line: &str| {
        let expression = line.trim().strip_prefix("expr: ")?;
        let at = [" > ", " < ", " == "].iter().filter_map(|sign| expression.rfind(sign)).max()?;
        Some(expression[..at].to_owned())
    };
    let found: Vec<String> = text.lines().filter_map(compared).collect();
    assert_eq!(found.len(), text.matches("- alert: ").count());
    found
}

/// The names of metrics in an expression.
fn names(expression: &str) -> BTreeSet<&str> {
    let words = expression.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("staunch_") || word.starts_with("process_")).collect()
}

#[test]
fn every_graph_and_every_alert_has_something_to_show() {
    if !is_installed("prometheus") || !is_installed("promtool") || !is_installed("curl") {
        return;
    }
    let rules = shipped("prometheus/staunch.rules.yml");
    let checked = Command::new("promtool").args(["check", "rules"]).arg(rules).output().expect("promtool");
    assert!(checked.status.success(), "{checked:?}");
    let secured = ["--tls", "local", "--tls-listen", "127.0.0.1:0", "--https-redirect", "off"];
    let seen = start(&[&["--live", "on", "--state-folder", "{}"][..], &secured].concat());
    assert!(get(seen.server.address(), "/ten", "").ends_with("0123456789"));
    let scraped = body(&seen.ask("/metrics")).to_owned();
    let has_samples = |name: &&str| {
        let is_sample =
            |line: &str| line.strip_prefix(*name).is_some_and(|rest| rest.starts_with(['{', ' ']));
        scraped.lines().any(is_sample)
    };
    let prometheus = Prometheus::start(&seen);
    let asked: Vec<String> = drawn().into_iter().chain(watched()).collect();
    let (shown, absent): (Vec<_>, Vec<_>) =
        asked.iter().partition(|expression| names(expression).iter().all(has_samples));
    for expression in &shown {
        assert!(!names(expression).is_empty(), "{expression}");
        prometheus.await_result(expression);
    }
    // Without a fabric and without names of an authority there is nothing of these.
    for expression in absent {
        let is_excused =
            |name: &&str| name.starts_with("staunch_fabric_") || name.starts_with("staunch_acme_");
        assert!(names(expression).iter().all(is_excused), "{expression} is about nothing that is told");
        prometheus.ask(expression);
    }
    // A canary: labels that do not match give nothing, which is what an empty graph is made of.
    let mismatched = "sum by (instance) (staunch_connections) / staunch_connections_max";
    assert!(prometheus.ask(mismatched).is_empty() && shown.len() > 40);
}
