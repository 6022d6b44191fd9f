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
        (&["fit", &file("other.json", "{}")], "other.json: has no `format`, not 1"),
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
    let cases: [(&[&str], &str); 13] = [
        (&[], "predict"),
        (&["predict"], "--mu2 <RATE>"),
        (&["predict", "--mu2", "5"], "write a rate such as"),
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
