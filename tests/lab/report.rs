//! `staunch lab report` with runs made up: what it says and refuses, and what a browser says of its page.

use std::fs;
use std::process::Command;

use staunch_lab::results::{
    AskedBy, ClientReport, Measured, MeasuredOn, Protocol, Results, Round, Row, SCHEMA, Usage,
};
use staunch_lab::{MODELS, Model, PoolUse};
use staunch_tests::process::{Finished, binary, finish};
use staunch_tests::tree::Tree;

use crate::chromium::{browser, pictures, repository};

/// What each round differs by.
const ROUNDS: [f64; 3] = [0.98, 1.0, 1.03];

/// A run of every model at every size, in which nothing went wrong.
fn made_up() -> Results {
    let mut rows = Vec::new();
    for (number, model) in MODELS.iter().enumerate() {
        for protocol in [Protocol::Paper, Protocol::Http, Protocol::KeepAlive] {
            if protocol == Protocol::Paper && !model.speaks_paper {
                continue;
            }
            for children in [1, 10, 100] {
                rows.push(measured(model, number, protocol, (children, 5000 / children as u64, 4000, 10)));
            }
            rows.push(measured(model, number, protocol, (10, 500, 10_000, 10)));
            for pool in [2, 100].into_iter().filter(|_| model.pool != PoolUse::None) {
                rows.push(measured(model, number, protocol, (10, 500, 4000, pool)));
            }
        }
    }
    Results {
        schema: SCHEMA,
        plan: "made up".into(),
        command: "staunch lab run --plan paper --scale 0.1 --html lab.html".into(),
        scale: 0.1,
        machine: MeasuredOn {
            processor: "A processor with a name as long as they are @ 2.10GHz".into(),
            processors: 4,
            server_cpus: vec![0],
            client_cpus: vec![1],
            kernel: "6.1.0".into(),
            version: "0.1.0".into(),
            began: "2026-01-01T00:00:00Z".into(),
        },
        rows,
    }
}

fn measured(model: &Model, number: usize, protocol: Protocol, asked: (usize, u64, usize, usize)) -> Measured {
    let (children, loops, bytes, pool) = asked;
    let pool = if model.pool == PoolUse::None { 0 } else { pool };
    let client = if protocol == Protocol::Paper { AskedBy::Processes } else { AskedBy::Epoll };
    let row = Row { model: model.name.into(), protocol, children, loops, bytes, pool, client };
    let dearer = if protocol == Protocol::KeepAlive { 2e-6 } else { 20e-6 };
    // Every fourth model costs the same: ties must be shown as well.
    let cost_s = dearer * (1.0 + (number / 4) as f64 * 0.2) * (1.0 + (children as f64).log10() * 0.1)
        + bytes as f64 * 5e-10
        + pool as f64 * 2e-8;
    let rounds = ROUNDS.iter().map(|factor| round(&row, cost_s * factor)).collect();
    Measured { row, rounds }
}

fn round(row: &Row, cost_s: f64) -> Round {
    let answered = row.children as u64 * row.loops;
    let cpu_s = cost_s * answered as f64;
    let connections = if row.protocol == Protocol::KeepAlive { row.children as u64 } else { answered };
    Round {
        server: Usage {
            user_s: cpu_s * 0.1,
            system_s: cpu_s * 0.9,
            minor_faults: 12,
            voluntary_switches: answered,
            ..Usage::default()
        },
        peak_memory_bytes: 5_000_000,
        served_by: (0..row.pool as u64).map(|child| 2 * connections / (child + 2)).collect(),
        leaks: Vec::new(),
        client: ClientReport {
            wall_s: cpu_s * 1.2,
            answered,
            connections,
            bytes: answered * row.bytes as u64,
            usage: Usage { system_s: cpu_s * 0.7, ..Usage::default() },
            ..ClientReport::default()
        },
    }
}

fn report(arguments: &[&str]) -> Finished {
    finish(Command::new(binary()).args(["lab", "report"]).args(arguments))
}

/// A file of a test.
struct Kept {
    tree: Tree,
}

impl Kept {
    fn new(results: &Results) -> Self {
        Self::text(&serde_json::to_string(results).expect("JSON"))
    }

    fn text(text: &str) -> Self {
        let kept = Self { tree: Tree::new().expect("a folder") };
        fs::write(kept.path(), text).expect("a file");
        kept
    }

    fn path(&self) -> String {
        self.tree.root().join("lab.json").to_str().expect("a path").to_owned()
    }
}

#[test]
fn the_table_has_every_row_and_every_verdict() {
    let results = made_up();
    let finished = report(&[&Kept::new(&results).path()]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let text = finished.stdout;
    for model in MODELS {
        let rows = results.rows.iter().filter(|one| one.row.model == model.name).count();
        let shown = text.lines().filter(|line| line.starts_with(&format!("  {} ", model.name))).count();
        assert!(shown >= rows, "{}: {shown} of {rows}", model.name);
    }
    for words in [
        "Plan made up: 3 rounds, loops x 0.100;",
        "  =1  iterative ",
        " =13  epoll-edge ",
        "The paper's ranking: iterative;",
        "  6. Pre-threaded, the main thread accepts",
        "  confirmed  ",
        "not measured",
        "not separable",
        "refuted",
        "Staunch's engine on epoll: at most 1.05 of the best plain model",
        "The client is not the bottleneck",
        "100: 0.2 % to ",
        "No connection failed, and nothing was left behind",
    ] {
        assert!(text.contains(words), "no {words:?} in:\n{text}");
    }
    assert!(!text.contains('\u{1b}') && !text.contains("NaN"), "{text}");
}

#[test]
fn what_went_wrong_is_shown_and_words_from_outside_do_no_harm() {
    let mut results = made_up();
    results.rows[0].rounds[1].client.errors = vec![("connection \u{1b}[31mreset <by> peer".into(), 7)];
    results.rows[1].rounds[2].leaks = vec!["process 4711 is left".into()];
    results.plan = "<script>".into();
    let kept = Kept::new(&results);
    let text = report(&[&kept.path()]).stdout;
    let name = &results.rows[0].row.model;
    assert!(
        text.contains(&format!("{name}, 1 x 5000, 4000 B, round 2: 7 failed: connection \u{fffd}[31mreset"))
    );
    assert!(text.contains("round 3: process 4711 is left") && !text.contains('\u{1b}'));
    let html = kept.tree.root().join("lab.html");
    report(&[&kept.path(), "--html", html.to_str().expect("a path")]);
    let page = fs::read_to_string(html).expect("a page");
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert!(
        page.contains("2 faults.") && page.contains("reset &lt;by&gt; peer") && !page.contains("<script")
    );
}

#[test]
fn other_files_are_refused() {
    let mut other = made_up();
    other.schema = SCHEMA + 1;
    let other = serde_json::to_string(&other).expect("JSON");
    let table = [
        ("", "is no JSON"),
        ("{}", "has no schema"),
        ("[1]", "has no schema"),
        (&*other, "has the form 2; this program reads 1"),
        ("{\"schema\": 1,\n \"plan\": 7}", "line 2"),
    ];
    for (text, words) in table {
        let kept = Kept::text(text);
        let finished = report(&[&kept.path()]);
        assert_eq!(finished.status.code(), Some(1), "{text:.40}");
        assert!(finished.stderr.contains(words), "{text:.40}: {}", finished.stderr);
        assert!(finished.stderr.contains("lab.json"), "{}", finished.stderr);
    }
    let missing = report(&["nowhere/lab.json"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(missing.stderr.contains("cannot read nowhere/lab.json"), "{}", missing.stderr);
    let kept = Kept::new(&made_up());
    let unwritten = report(&[&kept.path(), "--html", "nowhere/lab.html"]);
    assert_eq!(unwritten.status.code(), Some(1));
    assert!(unwritten.stderr.contains("cannot write nowhere/lab.html"), "{}", unwritten.stderr);
}

#[test]
fn the_document_is_what_its_command_makes_of_the_kept_file() {
    let kept = repository().join("bench/results/lab/lab.json");
    let made = report(&[kept.to_str().expect("a path"), "--markdown"]);
    assert_eq!(made.status.code(), Some(0), "{}", made.stderr);
    let page = repository().join("docs/server-models-measured.md");
    let document = fs::read_to_string(page).expect("the document");
    let command = "staunch lab report bench/results/lab/lab.json --markdown > docs/server-models-measured.md";
    assert!(document == made.stdout, "the document is not what this makes: {command}");
}

#[test]
fn pages_stand_in_a_browser() {
    let Some(browser) = browser() else { return };
    let folder = pictures("browser-lab");
    fs::create_dir_all(&folder).expect("a folder for pages");
    let mut faulty = made_up();
    faulty.rows.retain(|one| one.row.model.starts_with("prefork"));
    faulty.rows[0].rounds[1].client.errors = vec![("connection reset by peer".into(), 7)];
    let mut words = vec![folder.to_str().expect("a path").to_owned()];
    for (name, results) in [("lab", made_up()), ("faulty", faulty)] {
        let page = folder.join(format!("{name}.html")).to_str().expect("a path").to_owned();
        let finished = report(&[&Kept::new(&results).path(), "--html", &page]);
        assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
        words.push(page);
    }
    let verdict = browser.run("report.mjs", &words);
    assert!(verdict.status.success(), "{}", String::from_utf8_lossy(&verdict.stderr));
}
