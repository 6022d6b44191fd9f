//! The live view on a terminal of 80 columns and 24 lines, which tmux plays.
//!
//! It owns what the view of `staunch load` has to show.

use staunch_tests::process::{binary, is_installed};
use staunch_tests::terminal::Terminal;
use staunch_tests::tree::Tree;

use crate::generator::truth;

/// Every height of the sparkline.
const BLOCKS: &str = "▁▂▃▄▅▆▇█";

/// The words behind a line's name.
fn line<'a>(screen: &'a str, name: &str) -> &'a str {
    let mut lines = screen.lines().filter_map(|line| line.strip_prefix(name));
    let line = lines.next().unwrap_or_else(|| panic!("no line {name} in:\n{screen}"));
    assert!(lines.next().is_none(), "{name} stands twice, so a rest was left behind:\n{screen}");
    line.trim()
}

/// The number behind these words.
fn number(line: &str, behind: &str) -> f64 {
    let rest = line.split(behind).nth(1).unwrap_or_else(|| panic!("no {behind} in: {line}")).trim_start();
    let digits: String =
        rest.chars().take_while(|letter| letter.is_ascii_digit() || *letter == '.').collect();
    digits.parse().unwrap_or_else(|_| panic!("no number behind {behind} in: {line}"))
}

fn judge(screen: &str) {
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    let rate = line(screen, "rate ");
    assert!(number(rate, "offered") > 0.0 && number(rate, "in time") > 0.0, "{screen}");
    let sparkline = line(screen, "p99 ");
    assert!(sparkline.chars().filter(|letter| BLOCKS.contains(*letter)).count() > 1, "{screen}");
    assert!(sparkline.contains(" to "), "the range of the sparkline: {screen}");
    assert!(number(line(screen, "errors "), "wrong answer") > 0.0, "{screen}");
}

#[test]
fn the_view_moves_and_obeys_keys() {
    if !is_installed("tmux") {
        return;
    }
    let tree = Tree::new().expect("a folder");
    let paths = tree.root().join("paths");
    std::fs::write(&paths, "9 /delay/2ms\n1 /status/503\n").expect("a file");
    let truth = truth();
    let command = format!(
        "'{}' load {} --rate 400/s -d 5m --urls '{}'",
        binary().display(),
        truth.url("/"),
        paths.display()
    );
    let terminal = Terminal::start(tree.root(), &command);
    // A sparkline of one second has one block.
    let first = terminal.await_that("a sparkline", |screen| {
        ["wrong answer", "s of 300.0 s", " to "].iter().all(|words| screen.contains(words))
            && screen.chars().filter(|letter| BLOCKS.contains(*letter)).count() > 1
    });
    judge(&first);
    assert!(!first.contains("rate x") && line(&first, "up/down").contains("q: end"), "{first}");
    terminal.press("Up");
    terminal.press("Up");
    let second = terminal.await_screen(&["rate x1.21"]);
    judge(&second);
    let at = |screen: &str| number(line(screen, "time "), "] ");
    assert!(at(&second) > at(&first), "{first}\n{second}");
    let errors = |screen: &str| number(line(screen, "errors "), "wrong answer");
    assert!(errors(&second) > errors(&first), "{first}\n{second}");
    terminal.press("0");
    terminal.press("Down");
    terminal.await_screen(&["rate x0.91"]);
    terminal.press("q");
    let summary = terminal.await_screen(&["exit code 0"]);
    for words in ["offered", "in time", "wrong answer", "latency", "answers"] {
        assert!(summary.contains(words), "no word of {words} in the summary:\n{summary}");
    }
    assert!(!summary.contains("up/down"), "the view is still there:\n{summary}");
}
