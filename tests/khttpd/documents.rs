//! The module's parameters, with their defaults, are those that its documents tell.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn read(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the project");
    fs::read_to_string(root.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Parameters by name with their defaults, from lines like `static char *mode = "ready";` before each
/// `module_param(mode, ...)`.
fn of_the_module(source: &str) -> BTreeMap<String, String> {
    let names = source.lines().filter_map(|line| line.strip_prefix("module_param(")?.split(',').next());
    names
        .map(|name| {
            let variable = source.lines().find(|line| {
                let mut words = line.split([' ', '*', ';']).filter(|word| !word.is_empty());
                line.starts_with("static ") && words.any(|word| word == name)
            });
            let variable = variable.unwrap_or_else(|| panic!("{name} is no variable"));
            let unsaid = if variable.contains("int ") { "0" } else { "" };
            let value = variable.split_once("= ").map_or(unsaid, |(_, value)| value);
            (name.to_owned(), value.trim_matches([';', '"']).to_owned())
        })
        .collect()
}

/// Rows of the table: `` | `mode` | `ready` | meaning | ``.
fn of_the_page(text: &str) -> BTreeMap<String, String> {
    let table = text.split_once("| parameter |").expect("a table").1.split_once("\n\n").expect("an end").0;
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        (cells[1].to_owned(), cells[2].to_owned())
    })
    .collect()
}

/// Lines of the manual: `.B mode \fR(default ready)`.
fn of_the_manual(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(".B ")?.split_once(" \\fR("));
    lines
        .map(|(name, value)| {
            let value = value.trim_start_matches("default ").trim_end_matches(')');
            (name.to_owned(), value.to_owned())
        })
        .collect()
}

#[test]
fn every_parameter_is_told_with_its_default() {
    let module = of_the_module(&read("kernel/khttpd/main.c"));
    assert!(module.len() >= 10, "{module:?}");
    let told = |words: &str| match words {
        "Y" => "true".to_owned(),
        "N" | "false" | "not given" | "none, must be given" | "must be given" => String::new(),
        other => other.to_owned(),
    };
    let page = of_the_page(&read("docs/khttpd.md"));
    let manual = of_the_manual(&read("kernel/khttpd/khttpd.4"));
    for document in [page, manual] {
        let document: BTreeMap<_, _> =
            document.into_iter().map(|(name, value)| (name, told(&value))).collect();
        assert_eq!(document, module);
    }
}
