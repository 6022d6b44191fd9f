//! Pages of `staunch load`, as its users make them: of an open loop with the server's side, of a closed loop,
//! of refusals alone, of a sweep.
//!
//! It owns the runs and the start of `report.mjs`, which opens the pages and judges them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use staunch_tests::process::{binary, finish};
use staunch_tests::truth::{Plan, Stall, Truth};

use crate::chromium::{browser, pictures, repository};

/// What is run: the page's name, the path of the truth server, and words of the command line.
const RUNS: [(&str, &str, &[&str]); 4] = [
    ("open", "/delay/2ms", &["--rate", "500/s", "-d", "3s", "--probe", "--with", "closed:2"]),
    ("closed", "/delay/2ms", &["-c", "4", "-d", "2s"]),
    ("silent", "/stall", &["--rate", "50/s", "-d", "1s", "--patience", "200ms"]),
    ("refused", "", &["--rate", "50/s", "-d", "1s"]),
];

/// A sweep of a server that answers 200 a second.
const SWEEP: [&str; 11] = [
    "--factors",
    "0.5,1,2",
    "--rounds",
    "2",
    "-d",
    "500ms",
    "--rest",
    "500ms",
    "--patience",
    "200ms",
    "--no-keep-alive",
];

#[test]
fn pages_of_runs_and_of_a_sweep() {
    let Some(browser) = browser() else { return };
    let folder = pictures("browser-load");
    fs::create_dir_all(&folder).expect("a folder for pages");
    let pages = thread::scope(|scope| {
        let sweep = scope.spawn(|| sweep(folder.join("sweep.html")));
        let runs = RUNS.map(|(name, path, words)| {
            let page = folder.join(format!("{name}.html"));
            scope.spawn(move || run(page, path, words))
        });
        runs.into_iter().chain([sweep]).map(|page| page.join().expect("a page")).collect::<Vec<PathBuf>>()
    });
    let mut words = vec![folder];
    words.extend(pages);
    let verdict = browser.run("report.mjs", &words);
    assert!(verdict.status.success(), "{}", String::from_utf8_lossy(&verdict.stderr));
}

#[test]
fn the_check_finds_the_mistakes_of_a_canary() {
    let Some(browser) = browser() else { return };
    let canary = repository().join("tests/browser/canary-report/report.html");
    let verdict = browser.run("report.mjs", &[pictures("browser-canary"), canary]);
    assert_eq!(verdict.status.code(), Some(1));
    let mistakes = String::from_utf8_lossy(&verdict.stderr);
    for wanted in [
        "report narrow-dark: is 7",
        "report wide-light: a plot has no title",
        "the plot Nothing shows nothing",
        "the plot Letters: 100 ms stands on 110 ms",
        "the plot Letters: too far is cut off",
        "the plot Letters: tiny is ",
        "is cut off: a sentence",
        "runs over: so long",
        "6 ends are shown of 7 requests offered; the page says 7",
        "report wide-light: console: a complaint",
        "report wide-light: asks for file:",
    ] {
        assert!(mistakes.contains(wanted), "no word of `{wanted}` in:\n{mistakes}");
    }
}

/// A server that stops for half a second in the middle of a run; of no path: nobody is there.
fn run(page: PathBuf, path: &str, words: &[&str]) -> PathBuf {
    let stall = Stall { after: Duration::from_secs(1), length: Duration::from_millis(500) };
    let truth = Truth::start(Plan { stall: Some(stall), ..Plan::default() }).expect("a truth server");
    let url = if path.is_empty() { "http://127.0.0.1:1/".to_owned() } else { truth.url(path) };
    let finished =
        finish(Command::new(binary()).args(["load", &url, "--quiet", "--html"]).arg(&page).args(words));
    let code = if path.is_empty() { 1 } else { 0 };
    assert_eq!(finished.status.code(), Some(code), "{}", finished.stderr);
    page
}

fn sweep(page: PathBuf) -> PathBuf {
    let plan = Plan { service_time: Duration::from_millis(5), ..Plan::default() };
    let truth = Truth::start(plan).expect("a truth server");
    let mut command = Command::new(binary());
    command.args(["load", "sweep", &truth.url("/ok"), "--quiet", "--capacity", "190/s", "--html"]).arg(&page);
    let finished = finish(command.args(SWEEP));
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    page
}
