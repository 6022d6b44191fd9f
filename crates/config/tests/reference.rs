//! The page of all keys: it is the one in `docs`, it lacks nothing, and what it shows as an example is right.

use std::path::Path;

use staunch_config::group::Group;
use staunch_config::groups::{
    BasicAuth, CertificateFiles, ClientAuth, Content, Cors, GLOBAL, LiveIssuerRule, LiveTopicRule, Names,
    PathRule, Redirect,
};
use staunch_config::key::Key;
use staunch_config::{Config, File, Sources, read, reference};

fn read_file(text: &str) -> Config {
    let file = Some(File::new("a.toml", text));
    read(&Sources { file, ..Sources::default() }).unwrap_or_else(|faults| panic!("{faults}\n{text}"))
}

/// The file around one line of a group: name of the key, and the line.
type Around = fn(&str, &str) -> String;

/// Each group with the file around one line of it.
fn groups() -> Vec<(&'static [Key], Around)> {
    let mut groups: Vec<(&'static [Key], Around)> = Vec::new();
    groups.extend(GLOBAL.iter().map(|(_, keys)| {
        let around: Around = |name, line| match name {
            "client_auth" => format!("{line}\ntls = 'local'\nroot = 'a'"),
            _ => format!("{line}\nroot = 'a'"),
        };
        (*keys, around)
    }));
    groups.push((Content::KEYS, |name, line| match name {
        "root" => line.into(),
        _ => format!("{line}\nroot = 'a'"),
    }));
    groups.push((Names::KEYS, |name, line| match name {
        "canonical_host" => format!("[[site]]\nroot = 'a'\nhosts = [\"example.org\"]\n{line}"),
        "client_auth" => format!("[[site]]\nroot = 'a'\ntls = 'local'\n{line}"),
        _ => format!("[[site]]\nroot = 'a'\n{line}"),
    }));
    groups.push((PathRule::KEYS, |name, line| match name {
        "match" => format!("root = 'a'\n[[path]]\n{line}"),
        "client_auth" => {
            let site = "root = 'a'\ntls = 'local'\nclient_auth = { authority = 'a' }";
            format!("{site}\n[[path]]\nmatch = \"/assets/*\"\n{line}")
        }
        _ => format!("root = 'a'\n[[path]]\nmatch = \"/assets/*\"\n{line}"),
    }));
    groups.push((Redirect::KEYS, |name, line| {
        let rest = [("from", "from = \"/a/*\""), ("to", "to = \"/b\"")];
        let rest = rest.iter().filter(|(other, _)| *other != name).map(|(_, line)| *line);
        format!("root = 'a'\nredirects = [{{ {} }}]", rest.chain([line]).collect::<Vec<_>>().join(", "))
    }));
    groups.push((CertificateFiles::KEYS, |name, line| match name {
        "certificate" => format!("root = 'a'\ntls = {{ {line} }}"),
        _ => format!("root = 'a'\n[[tls]]\ncertificate = 'a'\n{line}"),
    }));
    groups.push((ClientAuth::KEYS, |name, line| {
        let authority = if name == "authority" { "" } else { "authority = 'a', " };
        format!("root = 'a'\ntls = 'local'\nclient_auth = {{ {authority}{line} }}")
    }));
    groups.push((LiveTopicRule::KEYS, |name, line| match name {
        "match" => format!("root = 'a'\nlive_topic = [{{ {line} }}]"),
        _ => format!("root = 'a'\nlive_topic = [{{ match = 'a', {line} }}]"),
    }));
    groups.push((LiveIssuerRule::KEYS, |name, line| {
        let file = if name == "jwks_file" { "" } else { "secret_file = 'a'" };
        let rest = [("name", "name = 'a'"), ("audience", "audience = 'a'"), ("secret_file", file)];
        let rest = rest.iter().filter(|(other, text)| *other != name && !text.is_empty());
        let rest = rest.map(|(_, text)| *text).chain([line]).collect::<Vec<_>>();
        format!("root = 'a'\nlive_issuer = [{{ {} }}]", rest.join(", "))
    }));
    groups.push((BasicAuth::KEYS, |name, line| match name {
        "realm" => {
            format!("root = 'a'\n[[path]]\nmatch = \"*\"\nbasic_auth = {{ users_file = \"a\", {line} }}")
        }
        _ => format!("root = 'a'\n[[path]]\nmatch = \"*\"\nbasic_auth = {{ {line} }}"),
    }));
    groups.push((Cors::KEYS, |name, line| match name {
        "origins" => format!("root = 'a'\n[[path]]\nmatch = \"*\"\ncors = {{ {line} }}"),
        _ => format!(
            "root = 'a'\n[[path]]\nmatch = \"*\"\ncors = {{ origins = [\"https://a.example\"], {line} }}"
        ),
    }));
    groups
}

#[test]
fn the_page_in_docs_is_the_one_that_is_made() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let committed = std::fs::read_to_string(&path).expect("docs/configuration.md");
    assert!(
        committed == reference::markdown(),
        "docs/configuration.md is not what the keys say: `staunch config reference > docs/configuration.md`"
    );
}

#[test]
fn every_key_is_told_about() {
    let page = reference::markdown();
    for (keys, _) in groups() {
        for key in keys {
            let name = key.name;
            let start = page.find(&format!("\n#### `{name}`\n\n{}.", key.help()));
            let start = start.unwrap_or_else(|| panic!("{name} is not in the page"));
            let about = page[start + 5..].split("\n####").next().expect("a piece");
            for part in [&format!("{name} = {}", key.example), "| value | `", "| default | ", "| change | "] {
                assert!(about.contains(part), "{part} is missing about {name}: {about}");
            }
            assert!(key.help().len() > 10 && key.help().len() <= 75 && !key.help().ends_with('.'), "{name}");
            assert!(key.default.is_none_or(|default| (key.check)(default).is_ok()), "the default of {name}");
        }
    }
}

#[test]
fn every_example_of_a_key_is_right_and_says_something() {
    for (keys, around) in groups() {
        for key in keys {
            read_file(&around(key.name, &format!("{} = {}", key.name, key.example)));
            let example = key.example.trim_matches('"');
            let is_default = key.default.is_some_and(|default| match default {
                "off" => example == "false",
                "on" => example == "true",
                _ => example == default,
            });
            assert!(!is_default, "the example of {} is its default", key.name);
        }
    }
}

#[test]
fn every_file_in_the_page_is_right() {
    let page = reference::markdown();
    let examples = page.split("\n## Values").next().expect("the opening");
    let files: Vec<&str> =
        examples.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap_or("")).collect();
    assert_eq!(files.len(), 2, "the examples of the opening");
    files.into_iter().for_each(|file| drop(read_file(file)));
}

#[test]
fn the_example_is_right_as_it_stands_and_with_all_it_offers() {
    let whole: String = reference::EXAMPLE
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(rest) if !rest.starts_with(' ') && !rest.is_empty() => format!("{rest}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    assert!(read_file(reference::EXAMPLE).sites[0].paths.is_empty());
    let whole = read_file(&whole);
    assert!(!whole.sites[0].paths.is_empty() && whole.clients.dry_run);
}
