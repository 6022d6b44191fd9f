//! Plans that are read, and faults with their places. Nothing here is measured.

use super::*;
use crate::model::Model;
use crate::models::MODELS;
use crate::results::{AskedBy, Protocol};

fn fault(text: &str) -> String {
    Plan::parse("p.toml", text).expect_err("a fault")
}

/// A row with nothing wrong but this.
fn row(lines: &str) -> String {
    let given = |key: &str| lines.lines().any(|line| line.starts_with(key));
    let mut text = String::from("[[row]]\n");
    text += lines;
    for (key, line) in [
        ("model", "model = \"poll\""),
        ("children", "children = 1"),
        ("loops", "loops = 1"),
        ("bytes", "bytes = 1"),
    ] {
        if !given(key) {
            text += &format!("\n{line}");
        }
    }
    text
}

#[test]
fn a_row_stands_for_all_combinations() {
    let text = row("model = [\"prefork\", \"poll\"]\nchildren = [1, 2]\npool = [3, 4]\nprotocol = \"http\"");
    let plan = Plan::parse("p", &text).expect("a plan");
    let rows: Vec<(&str, usize, usize)> =
        plan.rows.iter().map(|row| (row.model.as_str(), row.children, row.pool)).collect();
    let expected = [
        ("prefork", 1, 3),
        ("prefork", 1, 4),
        ("poll", 1, 0),
        ("prefork", 2, 3),
        ("prefork", 2, 4),
        ("poll", 2, 0),
    ];
    assert_eq!(rows, expected);
    assert!(plan.rows.iter().all(|row| row.protocol == Protocol::Http && row.loops == 1 && row.bytes == 1));
    assert_eq!((plan.rounds, plan.scale), (3, 1.0));
}

#[test]
fn all_are_those_that_speak_the_protocol() {
    let count = |protocol: &str| {
        let text = row(&format!("model = \"all\"\npool = 2\nprotocol = \"{protocol}\""));
        Plan::parse("p", &text).expect("a plan").rows.len()
    };
    assert_eq!(count("http"), MODELS.len());
    assert_eq!(count("paper"), MODELS.iter().filter(|model| model.speaks_paper).count());
}

#[test]
fn what_came_before_is_not_measured_again() {
    let twice = format!("{}\n{}", row("children = [1, 1, 2]"), row("children = [2, 3]"));
    let plan = Plan::parse("p", &twice).expect("a plan");
    assert_eq!(plan.rows.iter().map(|row| row.children).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn the_paper_s_client_asks_unless_another_is_named() {
    let clients = |lines: &str| {
        let plan = Plan::parse("p", &row(lines)).expect("a plan");
        plan.rows.iter().map(|row| row.client).collect::<Vec<_>>()
    };
    assert_eq!(clients(""), [AskedBy::Processes]);
    let all = "client = [\"epoll\", \"threads\", \"processes\"]";
    assert_eq!(clients(all), [AskedBy::Epoll, AskedBy::Threads, AskedBy::Processes]);
}

#[test]
fn loops_are_scaled_and_never_none() {
    let mut plan = Plan::parse("p", &format!("scale = 0.1\n{}", row("loops = [1, 5000]"))).expect("a plan");
    let loops = |plan: &Plan| plan.scaled_rows().iter().map(|row| row.loops).collect::<Vec<_>>();
    assert_eq!(loops(&plan), [1, 500]);
    plan.scale = 2.0;
    assert_eq!(loops(&plan), [2, 10_000]);
}

#[test]
fn each_fault_has_its_place() {
    let table = [
        ("rounds = 3".to_owned(), "p.toml:1:1: no rows: write for example `[[row]]`"),
        ("rounds = = 3".to_owned(), "p.toml:1:10: "),
        ("rounds = 0\n[[row]]".to_owned(), "p.toml:1:10: rounds: write a whole number from 1 to 1000"),
        ("scale = -1".to_owned(), "p.toml:1:9: scale: write a factor above 0, such as `scale = 0.1`"),
        ("scale = \"x\"".to_owned(), "p.toml:1:9: scale: write a factor above 0"),
        ("row = 3".to_owned(), "p.toml:1:7: row: write `[[row]]`, and its keys below"),
        ("row = [3]".to_owned(), "p.toml:1:8: row: write `[[row]]`, and its keys below"),
        (format!("round = 3\n{}", row("")), "p.toml:1:1: unknown key `round` (did you mean `rounds`?)"),
        (
            row("child = 3"),
            "p.toml:2:1: unknown key `child` (there are model, protocol, children, loops, bytes, pool, cl",
        ),
        (row("childern = 3"), "p.toml:2:1: unknown key `childern` (did you mean `children`?)"),
        (row("model = \"prefrok\""), "p.toml:2:9: unknown model `prefrok` (did you mean `prefork`?)"),
        (
            row("model = [\"poll\", \"apache\"]"),
            "p.toml:2:18: unknown model `apache` (there are iterative, fork,",
        ),
        (row("model = 3"), "p.toml:2:9: model: write a word such as `model = \"prefork\"`"),
        (row("model = []"), "p.toml:2:9: model: the list is empty"),
        (row("model = \"staunch-uring\""), "p.toml:2:9: staunch-uring does not speak the paper's protocol"),
        (row("protocol = \"htpp\""), "p.toml:2:12: unknown protocol `htpp` (did you mean `http`?)"),
        (row("client = \"epol\""), "p.toml:2:10: unknown client `epol` (did you mean `epoll`?)"),
        (row("client = \"x\""), "p.toml:2:10: unknown client `x` (there are processes, threads, epoll)"),
        (row("client = 1"), "p.toml:2:10: client: write a word such as `client = \"epoll\"`"),
        (row("client = []"), "p.toml:2:10: client: the list is empty"),
        (row("children = 0"), "p.toml:2:12: children: write a whole number from 1 to 10000"),
        (row("children = [1, \"2\"]"), "p.toml:2:16: children: write a whole number from 1 to 10000"),
        (row("loops = 1.5"), "p.toml:2:9: loops: write a whole number from 1 to 100000000"),
        (row("bytes = 16777217"), "p.toml:2:9: bytes: write a whole number from 0 to 16777216"),
        (row("bytes = -1"), "p.toml:2:9: bytes: write a whole number"),
        (row("pool = 5001\nmodel = \"prefork\""), "p.toml:2:8: pool: write a whole number from 1 to 5000"),
        (row("pool = 5"), "p.toml:2:8: pool: no model of this row has one"),
        (
            row("model = \"prefork\""),
            "p.toml:1:1: missing: prefork has a pool, so write for example `pool = 10`",
        ),
        (
            "[[row]]\nmodel = \"poll\"\nchildren = 1\nbytes = 1".to_owned(),
            "p.toml:1:1: missing: write for example `loops = 500`",
        ),
    ];
    for (text, expected) in table {
        let told = fault(&text);
        assert!(told.starts_with(expected), "{text}\n  {told}\n  {expected}");
    }
}

#[test]
fn all_faults_are_told_in_order_and_not_too_many() {
    let two = format!("{}\n{}", row("model = \"pol\""), row("loops = 0"));
    let told = fault(&two);
    let places: Vec<&str> = told.lines().map(|line| &line[..9]).collect();
    assert_eq!(places, ["p.toml:2:", "p.toml:7:"], "{told}");
    let many = format!("{}\n", row("loops = 0")).repeat(30);
    let told = fault(&many);
    assert_eq!((told.lines().count(), told.lines().last()), (21, Some("and 10 more")));
}

#[test]
fn the_name_of_a_plan_is_guessed() {
    assert_eq!(unknown_name("papr"), "unknown plan `papr` (did you mean `paper`?)");
    assert_eq!(unknown_name("x"), "unknown plan `x` (there are paper, quick, full)");
    assert_eq!(Plan::bundled("papr"), None);
}

#[test]
fn plans_that_come_with_the_program_are_sound() {
    for (name, text) in BUNDLED {
        let plan = Plan::parse(name, text).unwrap_or_else(|told| panic!("{told}"));
        assert_eq!(Plan::bundled(name), Some(plan.clone()));
        for model in MODELS {
            assert!(plan.rows.iter().any(|row| row.model == model.name), "{name} lacks {}", model.name);
        }
    }
}

/// Children, loops, bytes and pool of every row of the paper's table, by the number of the model.
const PAPER: &[(u8, usize, u64, usize, usize)] = &[
    (1, 1, 5000, 4000, 0),
    (1, 2, 5000, 4000, 0),
    (1, 4, 5000, 4000, 0),
    (1, 10, 5000, 4000, 0),
    (1, 15, 5000, 4000, 0),
    (1, 1, 5000, 4, 0),
    (1, 1, 5000, 10_000, 0),
    (1, 1, 50_000, 4000, 0),
    (2, 1, 5000, 4000, 0),
    (2, 10, 500, 4000, 0),
    (2, 2, 5000, 4000, 0),
    (2, 4, 5000, 4000, 0),
    (2, 10, 5000, 4000, 0),
    (2, 1, 50_000, 4000, 0),
    (3, 1, 5000, 4000, 15),
    (3, 10, 5000, 4000, 15),
    (3, 10, 500, 4000, 2),
    (3, 10, 5000, 4000, 2),
    (3, 100, 500, 4000, 100),
    (3, 100, 500, 4000, 2),
    (3, 100, 500, 4000, 20),
    (4, 1, 5000, 4000, 0),
    (4, 10, 500, 4000, 0),
    (4, 10, 5000, 4000, 0),
    (5, 1, 5000, 4000, 10),
    (5, 10, 500, 4000, 10),
    (5, 10, 5000, 4000, 10),
    (5, 10, 5000, 4000, 2),
    (6, 1, 5000, 4000, 10),
    (6, 10, 500, 4000, 10),
    (6, 10, 5000, 4000, 10),
    (6, 10, 5000, 4000, 2),
];

#[test]
fn the_papers_plan_has_the_papers_table() {
    let plan = Plan::bundled("paper").expect("a plan");
    for &(number, children, loops, bytes, pool) in PAPER {
        let model: &&Model = MODELS.iter().find(|model| model.paper_row == Some(number)).expect("a model");
        let (protocol, client) = (Protocol::Paper, AskedBy::Processes);
        let row = Row { model: model.name.into(), protocol, children, loops, bytes, pool, client };
        assert!(plan.rows.contains(&row), "{row:?}");
    }
    assert!(plan.rows.iter().any(|row| row.pool == 500), "the largest pool");
}

/// Of connections that are kept the paper's client would be what is measured.
#[test]
fn http_is_asked_by_the_client_that_costs_least() {
    for (name, _) in BUNDLED {
        let plan = Plan::bundled(name).expect("a plan");
        for row in &plan.rows {
            let client = if row.protocol == Protocol::Paper { AskedBy::Processes } else { AskedBy::Epoll };
            assert_eq!(row.client, client, "{name}: {row:?}");
        }
    }
}
