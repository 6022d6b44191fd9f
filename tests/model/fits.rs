//! Fits: of a host made up, of a measurement that is kept, and of one that is made now.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use staunch_tests::house::waiting::until;
use staunch_tests::process::{binary, finish};
use staunch_tests::truth::{Plan, Truth};

use crate::chromium::repository;
use crate::command::{Folder, made_up, model, near, number, said};

/// A measurement kept with the tests; docs/overload.md says how it was made.
fn kept() -> String {
    measurement("queue.json")
}

fn measurement(name: &str) -> String {
    repository().join("tests/model").join(name).to_str().expect("a path").to_owned()
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().expect("a list").iter().map(|one| one.as_str().expect("a word")).collect()
}

#[test]
fn a_made_up_host_is_found_again() {
    let folder = Folder::new();
    let file = folder.write("overload.json", &made_up());
    let document = said(&["fit", &file, "--over", "requests", "--first", "6", "--patience", "1s"]);
    let fit = &document["fits"][0];
    near(number(fit, "/host/mu1_per_s"), 20_000.0, 0.03);
    near(number(fit, "/host/mu2_per_s"), 1_800.0, 0.01);
    near(number(fit, "/host/places"), 129.0, 0.05);
    near(number(fit, "/slope"), -0.09, 0.03);
    assert_eq!(strings(&fit["given"]), ["T"]);
    assert_eq!(strings(&fit["undetermined"]), Vec::<&str>::new());
    let points = fit["points"].as_array().expect("points");
    assert_eq!(points.iter().filter(|point| point["fitted"] == true).count(), 6);
    assert!(points[6..].iter().all(|point| point["fitted"] == false && number(point, "/error").abs() < 0.05));
    let gated = fit["gated"].as_array().expect("points");
    assert_eq!(gated.len(), points.len());
    assert!(gated.iter().all(|point| number(point, "/error").abs() < 0.05), "{gated:?}");
}

#[test]
fn a_fit_is_what_other_commands_begin_with() {
    let folder = Folder::new();
    let file = folder.write("overload.json", &made_up());
    let known = ["--patience", "1s", "--backlog", "128"];
    let fits = model(&[&["fit", &file, "--first", "60%", "--json"], &known[..]].concat());
    assert_eq!(fits.status.code(), Some(0), "{}", fits.stderr);
    let fit = folder.write("fit.json", &fits.stdout);
    let asked = ["predict", "--fit", &fit, "--server", "made up", "--offered", "3600/s"];
    let document = said(&asked);
    assert_eq!(number(&document, "/host/places"), 129.0);
    let measured = number(
        &said(&["predict", "--mu1", "20k/s", "--mu2", "1800/s", "--backlog", "128", "--offered", "3600/s"]),
        "/rows/0/without_gate/goodput_per_s",
    );
    near(number(&document, "/rows/0/without_gate/goodput_per_s"), measured, 0.05);
    let batches = ["--coalescing", "50us", "--interrupt-cost", "6us", "--json"];
    let fits = model(&[&["fit", &file, "--first", "60%"], &known[..], &batches].concat());
    let fitted: Value = serde_json::from_str(&fits.stdout).expect("JSON");
    assert!(strings(&fitted["fits"][0]["given"]).contains(&"c0"), "{}", fits.stdout);
    let batched = folder.write("batched.json", &fits.stdout);
    let host = &said(&["predict", "--fit", &batched, "--server", "made up", "--offered", "3600/s"])["host"];
    near(number(host, "/interrupt_s"), 6e-6, 1e-9);
    near(number(host, "/window_s"), 50e-6, 1e-9);
    let mu2 = ["--mu2", "1800/s", "--json"];
    let full = ["fit", &file, "--over", "flood", "--full-cost", "45%"];
    let fits = model(&[&full[..], &known[..], &mu2].concat());
    let with_full = folder.write("full.json", &fits.stdout);
    let document = said(&["predict", "--fit", &with_full, "--mu1", "20k/s", "--offered", "3600/s"]);
    assert_eq!(number(&document, "/host/full_share"), 0.45);
    assert!(fits.stdout.contains("\"phi\""), "{}", fits.stdout);
    let fits = model(&[&["fit", &file, "--over", "flood"], &known[..], &mu2].concat());
    let fitted: Value = serde_json::from_str(&fits.stdout).expect("JSON");
    assert_eq!(strings(&fitted["fits"][0]["given"]), ["mu2", "K", "T"], "{}", fits.stdout);
    near(number(&fitted, "/fits/0/host/mu2_per_s"), 1800.0, 1e-9);
    near(number(&fitted, "/fits/0/host/mu1_per_s"), 20_000.0, 0.05);
    // A flag goes before the file.
    assert_eq!(number(&said(&[&asked[..], &["--backlog", "10"]].concat()), "/host/places"), 11.0);
}

#[test]
fn the_table_says_what_is_fitted_given_and_not_told() {
    let folder = Folder::new();
    let file = folder.write("overload.json", &made_up());
    let words = ["fit", &file, "--over", "flood", "--backlog", "128", "--patience", "1s"];
    // Two points of a flood tell too little: the others are predicted wrongly, and that is said.
    assert_eq!(model(&words).status.code(), Some(3));
    let finished = model(&[&words[..], &["--error-max", "1000%"]].concat());
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let text = finished.stdout;
    for words in [
        "made up, over flood: fitted on the first 2 of 5 points",
        "places before and in the application; given",
        "slope of equation (7)",
        "Behind the gate, all of it predicted:",
        "SYN/s  offered/s",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    assert_eq!(text.lines().filter(|line| line.contains("  fitted  ")).count(), 2, "{text}");
    let easy =
        said(&["fit", &file, "--over", "requests", "--first", "2", "--backlog", "128", "--patience", "1s"]);
    assert_eq!(strings(&easy["fits"][0]["undetermined"]), ["mu1"]);
}

/// The bar of the project: fitted on the first third, the rest is predicted within a tenth.
#[test]
fn the_first_third_of_a_kept_measurement_predicts_the_rest() {
    let document = said(&["fit", &kept(), "--backlog", "4096"]);
    let fit = &document["fits"][0];
    assert_eq!(strings(&fit["given"]), ["K", "T"]);
    let points = fit["points"].as_array().expect("points");
    assert_eq!(points.iter().filter(|point| point["fitted"] == true).count(), points.len().div_ceil(3));
    for point in points.iter().filter(|point| point["fitted"] == false) {
        assert!(number(point, "/error").abs() < 0.10, "{point}");
    }
    assert!(number(fit, "/error_predicted_max") < 0.10, "{}", fit["error_predicted_max"]);
    // K need not be given: these points tell it within a tenth.
    let unknown = said(&["fit", &kept()]);
    near(number(&unknown, "/fits/0/host/places"), 4_097.0, 0.10);
}

/// nginx by requests and by forged SYN, with reception as it was measured beside (`bench gate-model`,
/// 7156bd484d): what a full line changes, and that who tries again comes late.
#[test]
fn a_kept_flood_bends_as_equations_12_and_13_say() {
    let file = measurement("nginx.json");
    let reception = ["--mu1", "286022/s", "--interrupt-cost", "18.82us", "--coalescing", "125us"];
    let clients = ["--sending", "off", "--backlog", "511", "--patience", "1s"];
    let error = |over: &str, more: &[&str]| {
        let asked = ["fit", &file, "--over", over, "--error-max", "100%"];
        let document = said(&[&asked[..], more, &reception, &clients].concat());
        number(&document, "/fits/0/error_predicted_max")
    };
    let all = ["--full-cost", "18.9%", "--retry", "200ms"];
    assert!(error("requests", &all) < 0.10);
    assert!(error("flood", &all) < 0.10);
    assert!(error("flood", &all[..2]) > 0.15);
    assert!(error("flood", &[]) > 0.90);
}

#[test]
fn a_sweep_made_now_is_read_with_its_patience_and_length() {
    let folder = Folder::new();
    let plan = Plan { service_time: Duration::from_millis(5), ..Plan::default() };
    let truth = Truth::start(plan).expect("a truth server");
    let (url, file) = (truth.url("/ok"), folder.at("sweep.json"));
    let words =
        ["load", "sweep", &url, "--quiet", "--no-keep-alive", "--capacity", "200/s", "--patience", "250ms"];
    let length = ["--factors", "0.25,0.5,1.5", "--rounds", "1", "-d", "500ms", "--rest", "500ms"];
    let sweep = || {
        let swept = finish(Command::new(binary()).args(words).args(length).args(["--json", &file]));
        assert_eq!(swept.status.code(), Some(0), "{}", swept.stderr);
    };
    sweep();
    // How well it fits is not the question here: the host may be busy.
    let words = ["fit", &file, "--first", "3", "--backlog", "4096", "--error-max", "100000%"];
    until("a sweep whose generator had the time to send", || {
        let finished = model(&words);
        let is_saturated = finished.stderr.contains("the generator was saturated");
        assert!(is_saturated || finished.status.code() == Some(0), "{}", finished.stderr);
        if is_saturated {
            sweep();
        }
        !is_saturated
    });
    let document = said(&words);
    let fit = &document["fits"][0];
    assert_eq!(fit["name"], url.as_str());
    assert_eq!(number(fit, "/host/patience_s"), 0.25);
    assert_eq!(number(fit, "/sending_s"), 0.5);
    assert_eq!(fit["points"].as_array().map(Vec::len), Some(3));
    let long_run = said(&[&words[..], &["--sending", "off"]].concat());
    assert!(long_run["fits"][0]["sending_s"].is_null());
}
