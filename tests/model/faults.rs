//! What cannot be: each is named, with its place.

use crate::command::{Folder, made_up, model};

const OFF: &str = r#"{"servers":[{"name":"a","gate_off":[{"offered_per_s":1,"goodput_per_s":1},
    {"goodput_per_s":1}]}]}"#;
const FLOOD: &str =
    r#"{"servers":[],"floods":[{"name":"a","gate_off":[{"offered_per_s":1,"goodput_per_s":1}]}]}"#;
const NEGATIVE: &str = r#"{"servers":[{"name":"a","gate_off":[{"offered_per_s":1,"goodput_per_s":-1}]}]}"#;

#[test]
fn files_that_cannot_be_used_are_named_with_what_is_wrong() {
    let folder = Folder::new();
    let file = |name: &str, text: &str| folder.write(name, text);
    let good = file("good.json", &made_up());
    let cases: [(&[&str], &str); 14] = [
        (&["fit", "/nowhere/a.json"], "cannot read /nowhere/a.json: No such file"),
        (&["fit", &file("text.json", "goodput")], "text.json: is not JSON"),
        (&["fit", &file("other.json", "{}")], "other.json: has no `format`, not 2"),
        (&["fit", &file("run.json", r#"{"format":1}"#)], "run.json: is not a sweep: missing field `version`"),
        (&["fit", &file("off.json", OFF)], "off.json: servers[0].gate_off[1] has no `offered_per_s`"),
        (&["fit", &file("flood.json", FLOOD)], "flood.json: floods[0].gate_off[0] has no `syn_per_s`"),
        (&["fit", &file("none.json", r#"{"servers":[]}"#)], "none.json: holds no measured point"),
        (
            &["fit", &file("negative.json", NEGATIVE), "--backlog", "9", "--patience", "1s", "--mu1", "9k/s"],
            "negative.json: a: point 0: the goodput per second must be at least 0",
        ),
        (&["fit", &good, "--server", "nobody"], "it has made up over requests, made up over flood"),
        (&["fit", &good, "--svg", "-"], "--server and --over say which one --svg is to draw"),
        (
            &["fit", &good, "--first", "1"],
            "cannot be told from 1 points; --backlog, --patience, --mu1, --mu2 and --peak",
        ),
        (
            &["fit", &good, "--patience", "1s", "--backlog", "9", "--html", "/nowhere/a"],
            "cannot write /nowhere/a",
        ),
        (&["predict", "--fit", &good], "good.json: was not written by `staunch model fit --json`"),
        (&["predict", "--fit", "/nowhere/a.json"], "cannot read /nowhere/a.json"),
    ];
    for (arguments, words) in cases {
        let finished = model(arguments);
        assert_eq!(finished.status.code(), Some(1), "{arguments:?}: {}", finished.stdout);
        assert!(finished.stderr.contains(words), "{arguments:?}\n{words}\n{}", finished.stderr);
        assert_eq!(finished.stdout, "", "{arguments:?}");
    }
}

#[test]
fn a_fit_of_several_servers_needs_a_name() {
    let folder = Folder::new();
    let text = made_up().replacen("made up", "another", 1);
    let file = folder.write("overload.json", &text);
    let known = ["--backlog", "128", "--patience", "1s", "--json"];
    let fits = model(&[&["fit", &file], &known[..]].concat());
    let fit = folder.write("fit.json", &fits.stdout);
    let finished = model(&["predict", "--fit", &fit]);
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stdout);
    assert!(finished.stderr.contains("--server says which of"), "{}", finished.stderr);
    let finished = model(&["size", "--fit", &fit, "--server", "nobody"]);
    assert!(finished.stderr.contains("has no server nobody; it has"), "{}", finished.stderr);
    let other = folder.write("other.json", &fits.stdout.replacen("\"format\": 1", "\"format\": 2", 1));
    let finished = model(&["size", "--fit", &other]);
    assert!(finished.stderr.contains("has `format` 2, not 1"), "{}", finished.stderr);
}

#[test]
fn words_that_cannot_be_are_refused_with_the_right_form() {
    let cases: [(&[&str], &str); 14] = [
        (&[], "predict"),
        (&["predict"], "--service-rate is missing: how many requests a second the application could answer"),
        (&["predict"], "for example --service-rate 1800"),
        (&["predict", "--mu2", "5 a second"], "write a rate such as"),
        (&["predict", "--mu2", "5/s", "--offered", "1/s,x"], "write a rate such as"),
        (&["predict", "--mu2", "5/s", "--service", "random"], "write deterministic or exponential"),
        (&["predict", "--mu2", "5/s", "--patience", "soon"], "write a time above 0 such as"),
        (&["predict", "--mu2", "5/s", "--gate-cost", "0us"], "write a time above 0 such as"),
        (&["predict", "--mu2", "5/s", "--gate-share", "120%"], "write a percentage above 0"),
        (&["predict", "--mu2", "5/s", "--backlog", "0"], "write a number such as 128"),
        (&["predict", "--mu2", "5/s", "--server", "a"], "--fit <FILE>"),
        (&["plot", "--mu2", "5/s"], "--svg <FILE|->"),
        (&["plot", "--mu2", "5/s", "--svg", "-", "--over", "time"], "write requests or flood"),
        (&["fit", "a.json", "--first", "0"], "write 1/3, 40%, or a number of points"),
    ];
    for (arguments, words) in cases {
        let finished = model(arguments);
        assert_eq!(finished.status.code(), Some(2), "{arguments:?}: {}", finished.stdout);
        assert!(finished.stderr.contains(words), "{arguments:?}\n{words}\n{}", finished.stderr);
    }
}

#[test]
fn a_number_alone_is_a_rate_and_words_stand_beside_the_symbols() {
    let symbols = model(&["predict", "--mu2", "1800/s", "--mu1", "20k/s", "--backlog", "128", "--json"]);
    let words = ["predict", "--service-rate", "1800", "--reception-rate", "20k", "--queue", "128", "--json"];
    let words = model(&words);
    assert_eq!((words.status.code(), words.stderr.as_str()), (Some(0), ""));
    assert_eq!(words.stdout, symbols.stdout);
}

/// A sweep in which every load above the first was answered by nobody at all: no host of the model's does
/// that.
fn nonsense() -> serde_json::Value {
    let mut sweep: serde_json::Value = serde_json::from_str(include_str!("queue.json")).expect("JSON");
    for point in sweep["points"].as_array_mut().expect("points").iter_mut().skip(5) {
        for round in point["rounds"].as_array_mut().expect("rounds") {
            round["in_time"] = 0.into();
        }
    }
    sweep
}

#[test]
fn a_model_that_does_not_describe_the_server_is_no_success() {
    let folder = Folder::new();
    let file = folder.write("nonsense.json", &nonsense().to_string());
    let finished = model(&["fit", &file, "--backlog", "4096"]);
    assert_eq!(finished.status.code(), Some(3), "{}{}", finished.stdout, finished.stderr);
    assert!(finished.stderr.contains("the model does not describe this server"), "{}", finished.stderr);
    assert!(finished.stdout.contains("Error of the fitted points"), "it is printed: {}", finished.stdout);
    let allowed = model(&["fit", &file, "--backlog", "4096", "--error-max", "100000%"]);
    assert_eq!(allowed.status.code(), Some(0), "{}", allowed.stderr);
}

#[test]
fn a_saturated_sweep_is_refused_or_fitted_without_the_saturated_loads() {
    let folder = Folder::new();
    let mut sweep: serde_json::Value = serde_json::from_str(include_str!("queue.json")).expect("JSON");
    sweep["points"][14]["rounds"][1]["unsent"] = 5_000.into();
    let file = folder.write("saturated.json", &sweep.to_string());
    let refused = model(&["fit", &file, "--backlog", "4096"]);
    assert_eq!((refused.status.code(), refused.stdout.as_str()), (Some(1), ""), "{}", refused.stderr);
    assert!(refused.stderr.contains("the generator was saturated at 1 of 15 loads"), "{}", refused.stderr);
    let without = model(&["fit", &file, "--backlog", "4096", "--leave-out-saturated"]);
    assert_eq!(without.status.code(), Some(0), "{}", without.stderr);
    assert!(without.stdout.contains("fitted on the first 5 of 14 points"), "{}", without.stdout);
}

#[test]
fn hosts_that_cannot_be_are_refused() {
    let cases: [(&[&str], &str); 2] = [
        (&["predict", "--mu2", "5/s", "--backlog", "9m"], "the number of places must be at most 1048576"),
        (&["plot", "--mu2", "1k/s", "--to", "5/s", "--svg", "-"], "--to 5/s: the plot begins at"),
    ];
    for (arguments, words) in cases {
        let finished = model(arguments);
        assert_eq!(finished.status.code(), Some(1), "{arguments:?}: {}", finished.stdout);
        assert!(finished.stderr.contains(words), "{arguments:?}\n{words}\n{}", finished.stderr);
    }
}

#[test]
fn help_is_whole_and_short() {
    for (command, flag) in
        [("predict", "--offered"), ("fit", "--first"), ("plot", "--over"), ("size", "--keep")]
    {
        let help = model(&[command, "--help"]).stdout;
        assert!(help.contains(flag), "{help}");
        assert!(help.lines().count() <= 70, "{command}: {} lines\n{help}", help.lines().count());
        assert!(help.lines().all(|line| line.chars().count() <= 110), "{command}:\n{help}");
        assert_eq!(model(&[command, "-h"]).stdout, help);
    }
    assert!(model(&["--help"]).stdout.contains("docs/overload.md"));
}
