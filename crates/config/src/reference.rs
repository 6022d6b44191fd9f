//! The page that tells about every key, made from the table of keys.

use std::fmt::Write as _;

use crate::group::Group;
use crate::groups::{BasicAuth, Content, Cors, GLOBAL, Names, PathRule, Redirect};
use crate::key::{Form, Key};

const OPENING: &str = include_str!("reference.md");

/// The page, as Markdown.
pub fn markdown() -> String {
    let mut out = OPENING.to_owned();
    let global = "These stand at the top of the file, before any `[[...]]`. They hold for the whole server.";
    heading(&mut out, "The server", global);
    for (title, keys) in GLOBAL {
        let _ = write!(out, "\n### {title}\n");
        keys.iter().for_each(|key| describe(&mut out, key));
    }
    let site = "These stand at the top of the file for a single site, or in each `[[site]]`.";
    heading(&mut out, "A site", site);
    Content::KEYS.iter().for_each(|key| describe(&mut out, key));
    let names = "These stand in a `[[site]]` only.";
    heading(&mut out, "Hosts of a site", names);
    Names::KEYS.iter().for_each(|key| describe(&mut out, key));
    let rules = "These stand in a `[[path]]`, or in a `[[site.path]]` below its `[[site]]`. All rules that \
                 match hold, the later over the earlier; `inherit` is what holds without the rule.";
    heading(&mut out, "Rules for paths", rules);
    PathRule::KEYS.iter().for_each(|key| describe(&mut out, key));
    let within: [(&str, &str, &[Key]); 3] = [
        ("Redirects", "The entries of `redirects`.", Redirect::KEYS),
        ("Passwords", "The entries of `basic_auth`.", BasicAuth::KEYS),
        ("Other origins", "The entries of `cors`.", Cors::KEYS),
    ];
    for (title, about, keys) in within {
        heading(&mut out, title, about);
        keys.iter().for_each(|key| describe(&mut out, key));
    }
    out
}

fn heading(out: &mut String, title: &str, about: &str) {
    let _ = write!(out, "\n## {title}\n\n{about}\n");
}

fn describe(out: &mut String, key: &Key) {
    let _ = write!(out, "\n#### `{}`\n\n{}.", key.name, key.help());
    for line in &key.doc[1..] {
        let _ = write!(out, "\n{}", line.trim());
    }
    let _ = write!(out, "\n\n```toml\n{} = {}\n```\n\n", key.name, key.example);
    let _ = writeln!(out, "| | |\n|---|---|");
    let _ = writeln!(out, "| value | `{}` |", (key.word)().replace('|', "\\|"));
    let default = match key.default {
        None => "none, it must be written".into(),
        Some("") => "nothing".into(),
        Some(default) => format!("`{default}`"),
    };
    let _ = writeln!(out, "| default | {default} |");
    if key.form != Form::File {
        let flag = match key.form {
            Form::Argument => "the argument `DIR`".into(),
            _ => format!("`{}`", key.flag()),
        };
        let _ = writeln!(out, "| flag | {flag} |\n| environment | `{}` |", key.variable());
    }
    let reload = if key.reload { "by a reload (HUP)" } else { "needs a restart" };
    let _ = writeln!(out, "| change | {reload} |");
}
