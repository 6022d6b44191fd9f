//! Manual pages have a day, a synopsis and near relations; completions know the words of a value.

use std::fs;
use std::process::Command;

use staunch_tests::process::{binary, finish};

#[test]
fn a_page_has_its_day_and_its_near_relations() {
    let folder = std::env::temp_dir().join(format!("staunch-pages-{}", std::process::id()));
    let mut man = Command::new(binary());
    let written = finish(man.arg("man").arg(&folder).env("SOURCE_DATE_EPOCH", "86400"));
    assert!(written.status.success(), "{}", written.stderr);
    let page = |name: &str| fs::read_to_string(folder.join(name)).expect("a page");
    for (name, title) in [
        ("staunch-serve.1", ".TH staunch-serve 1 1970-01-02 "),
        ("staunch.toml.5", ".TH staunch.toml 5 \"1970-01-02\" "),
    ] {
        assert!(page(name).contains(title), "{name}: {:?}", page(name).lines().nth(2));
    }
    let sweep = page("staunch-load-sweep.1");
    assert!(sweep.contains(".SH SYNOPSIS\nstaunch load sweep [OPTIONS] <URL>"), "{sweep}");
    let (_, relations) = sweep.split_once("SEE ALSO").expect("relations");
    assert!(relations.contains(".BR staunch\\-load (1)"), "{relations}");
    assert!(!relations.contains("staunch\\-lab"), "{relations}");
    fs::remove_dir_all(folder).expect("a folder of ours");
}

#[test]
fn completions_know_the_words_of_a_value() {
    let script = finish(Command::new(binary()).args(["completions", "bash"])).stdout;
    for words in ["auto uring epoll", "on off", "auto on off", "headers body reader"] {
        assert!(script.contains(&format!("compgen -W \"{words}\"")), "{words}");
    }
    let refused = finish(Command::new(binary()).args(["serve", "--io", "other"]));
    assert_eq!(refused.status.code(), Some(2));
    assert!(refused.stderr.contains("is wrong: write auto, uring or epoll"), "{}", refused.stderr);
}
