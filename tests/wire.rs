//! All conversations of `tests/wire`, held with every body.
//!
//! It must never pass without having run: each test says how many conversations it held. `STAUNCH_SEED` sets
//! the seed of the random splits, `STAUNCH_WIRE` runs only the files whose names contain it.
#![forbid(unsafe_code)]

use staunch_tests::conversation::{Conversation, parse};
use staunch_tests::suite::{Stage, load, run, wire_folder};

const SEED: u64 = 20_240_102;

fn chosen() -> Vec<Conversation> {
    let mut conversations = load(&wire_folder());
    if let Ok(part) = std::env::var("STAUNCH_WIRE") {
        conversations.retain(|conversation| conversation.name.contains(&part));
    }
    conversations
}

fn hold_all(stage: Stage) {
    let seed = std::env::var("STAUNCH_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(SEED);
    let outcome = run(&chosen(), stage, seed);
    println!("{stage:?}: {} conversations, {} runs, seed {seed}", outcome.conversations, outcome.runs);
    assert!(outcome.conversations > 0, "no conversation was held");
    let failures = outcome.failures;
    assert!(
        failures.is_empty(),
        "{} of the conversations failed:\n\n{}",
        failures.len(),
        failures.join("\n\n")
    );
}

#[test]
fn on_the_bare_session() {
    hold_all(Stage::Session);
}

#[test]
fn on_the_simulator() {
    hold_all(Stage::Simulator);
}

#[test]
fn on_the_server_with_epoll() {
    hold_all(Stage::Server { io: "epoll" });
}

#[test]
fn on_the_server_with_uring() {
    hold_all(Stage::Server { io: "uring" });
}

/// The collection itself: enough files, names of one form, each number once, each text once.
#[test]
fn the_files_are_in_order() {
    let conversations = load(&wire_folder());
    assert!(conversations.len() >= 150, "only {} conversations", conversations.len());
    let mut numbers = std::collections::HashSet::new();
    for conversation in &conversations {
        let name = &conversation.name;
        let (number, words) =
            name.split_once('-').unwrap_or_else(|| panic!("{name} is no letter00000-words"));
        let digits =
            number.strip_prefix(['b', 'c', 'f', 'p', 'r']).unwrap_or_else(|| panic!("{name}: its letter"));
        assert!(digits.len() == 5 && digits.bytes().all(|byte| byte.is_ascii_digit()), "{name}: its number");
        assert!(words.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'), "{name}");
        assert!(numbers.insert(number.to_owned()), "{name}: its number is taken");
    }
}

/// The canaries: each of these conversations is wrong in one way and must fail where it is wrong.
#[test]
fn wrong_conversations_fail() {
    let request = "> GET /a.txt HTTP/1.1\n> Host: a\n>\n";
    let table = [
        ("# Wrong status.\n", "< 404\n", 5),
        ("# Wrong body.\n", "< 200\n= \"hello, worle\\n\"\n", 6),
        ("# Wrong length.\n", "< 200\n= length 12\n", 6),
        ("# Wrong file.\n", "< 200\n= file index.html\n", 6),
        ("# A missing field.\n", "< 200\n< Retry-After\n", 6),
        ("# A wrong value.\n", "< 200\n< Content-Length: 14\n", 6),
        ("# A forbidden field.\n", "< 200\n<! Content-Length\n", 6),
        ("# It is not closed.\n", "< 200\nclose\n", 6),
        ("# It answers once.\n", "< 200\n< 200\n", 6),
        ("# It does answer.\n", "open\n", 5),
        ("# More comes than was said.\n", "> GET /a.txt HTTP/1.1\n> Host: a\n>\n< 200\n", 0),
    ];
    for (title, expectations, line) in table {
        let text = format!("{title}{request}{expectations}");
        let conversation = parse("canary", &text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        let outcome = run(&[conversation], Stage::Session, SEED);
        assert_eq!(outcome.failures.len(), 1, "nothing failed in:\n{text}");
        let place = format!("canary.wire:{line}:");
        assert!(outcome.failures[0].contains(&place), "{place} not in {}", outcome.failures[0]);
    }
}

/// Canaries with an application: each must fail where it is wrong.
#[test]
fn wrong_conversations_with_an_application_fail() {
    let request = "> POST /a HTTP/1.1\n> Host: a\n> Content-Length: 2\n>\n>> hi\n";
    let asked = "upstream < POST /a HTTP/1.1\n";
    let answered = "upstream > HTTP/1.1 204 No Content\nupstream >\n< 204\n";
    let table = [
        ("# Another request.\n", "upstream < POST /b HTTP/1.1\n", answered, 7),
        ("# A missing field.\n", "upstream < POST /a HTTP/1.1\nupstream < X-A\n", answered, 8),
        ("# A forbidden field.\n", "upstream < POST /a HTTP/1.1\nupstream <! Via\n", answered, 8),
        ("# Another body.\n", "upstream < POST /a HTTP/1.1\nupstream = \"ho\"\n", answered, 8),
        ("# Other bytes.\n", "upstream << GET\n", answered, 7),
        ("# The connection stays.\n", asked, "upstream > HTTP/1.1 204 No\nupstream >\n< 204\ncut\n", 11),
        ("# A whole answer.\n", asked, "upstream > HTTP/1.1 204 No\nupstream >\ncut 204\n", 10),
        ("# Nothing comes of it.\n", asked, "upstream connection second\n", 8),
        ("# Its body comes too.\n", "upstream < POST /a HTTP/1.1\nupstream = none\n", answered, 0),
    ];
    for (title, asked, answered, line) in table {
        let text = format!("{title}{request}{asked}{answered}");
        let conversation = parse("canary", &text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        let outcome = run(&[conversation], Stage::Simulator, SEED);
        assert_eq!(outcome.failures.len(), 1, "nothing failed in:\n{text}");
        let place = format!("canary.wire:{line}:");
        assert!(outcome.failures[0].contains(&place), "{place} not in {}", outcome.failures[0]);
    }
}
