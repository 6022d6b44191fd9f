//! The page that tells about every key, made from the table of keys: for the folder `docs`, and for man.

use std::fmt::Write as _;

use crate::group::Group;
use crate::groups::{
    BasicAuth, CertificateFiles, ClientAuth, Content, Cors, GLOBAL, LiveIssuerRule, LiveTopicRule, Names,
    PathRule, Redirect,
};
use crate::key::{Form, Key};

const OPENING: &str = include_str!("reference.md");

/// A file to begin with: it is right as it stands, and with each `#` before a key taken away.
pub const EXAMPLE: &str = include_str!("example.toml");

/// A chapter: its title, where its keys stand, and their groups. A group without title has no heading.
type Chapter = (&'static str, &'static str, Vec<(&'static str, &'static [Key])>);

fn chapters() -> Vec<Chapter> {
    let one = |keys| vec![("", keys)];
    vec![
        (
            "The server",
            "These stand at the top of the file, before any `[[...]]`. They hold for the whole server; \
             those of live data stand in a `[[site]]` as well, and hold for that site then.",
            GLOBAL.to_vec(),
        ),
        (
            "A site",
            "These stand at the top of the file for a single site, or in each `[[site]]`.",
            one(Content::KEYS),
        ),
        ("Hosts of a site", "These stand in a `[[site]]` only.", one(Names::KEYS)),
        (
            "Rules for paths",
            "These stand in a `[[path]]`, or in a `[[site.path]]` below its `[[site]]`. All rules that match \
             hold, the later over the earlier; `inherit` is what holds without the rule.",
            one(PathRule::KEYS),
        ),
        ("Certificates", "The entries of `tls`.", one(CertificateFiles::KEYS)),
        ("Certificates of clients", "The entries of `client_auth` of a site.", one(ClientAuth::KEYS)),
        ("Redirects", "The entries of `redirects`.", one(Redirect::KEYS)),
        ("Rules for topics", "The entries of `live_topic`.", one(LiveTopicRule::KEYS)),
        ("Issuers of tokens", "The entries of `live_issuer`.", one(LiveIssuerRule::KEYS)),
        ("Passwords", "The entries of `basic_auth`.", one(BasicAuth::KEYS)),
        ("Other origins", "The entries of `cors`.", one(Cors::KEYS)),
    ]
}

/// The page, as Markdown.
pub fn markdown() -> String {
    let mut out = OPENING.to_owned();
    for (title, about, groups) in chapters() {
        let _ = write!(out, "\n## {title}\n\n{about}\n");
        for (title, keys) in groups {
            if !title.is_empty() {
                let _ = write!(out, "\n### {title}\n");
            }
            keys.iter().for_each(|key| describe(&mut out, key));
        }
    }
    out
}

/// The page `staunch.toml(5)` of the manual, for man: the keys, without the examples of whole files.
pub fn manual(version: &str, date: &str) -> String {
    let mut out = format!(".TH staunch.toml 5 \"{date}\" \"staunch {version}\" \"File Formats\"\n");
    out.push_str(".SH NAME\nstaunch.toml \\- settings of the web server staunch\n.SH DESCRIPTION\n");
    out.push_str("A file in TOML. A flag of \n.BR staunch\\-serve (1)\ngoes before a variable ");
    out.push_str("of the environment, the variable before the file. \n.B staunch \\-t \\-\\-config \n");
    out.push_str(".I FILE\ntests a file.\n");
    for (title, about, groups) in chapters() {
        let _ = write!(out, ".SH \"{}\"\n{}\n", title.to_uppercase(), roff(about));
        for (title, keys) in groups {
            if !title.is_empty() {
                let _ = writeln!(out, ".SS {title}");
            }
            keys.iter().for_each(|key| describe_for_man(&mut out, key));
        }
    }
    out.push_str(
        ".SH \"SEE ALSO\"\n.BR staunch (1),\n.BR staunch\\-serve (1),\n.BR staunch\\-config\\-show (1)\n",
    );
    out
}

fn describe_for_man(out: &mut String, key: &Key) {
    let value = roff(&format!("{} = {}", key.name, (key.word)()));
    let _ = write!(out, ".TP\n.B \"{value}\"\n{}.\n", roff(key.help()));
    for line in &key.doc[1..] {
        let _ = writeln!(out, "{}", roff(line.trim()));
    }
    let default = match key.default {
        None => "none, it must be written",
        Some("") => "nothing",
        Some(default) => default,
    };
    let example = roff(&format!("{} = {}", key.name, key.example));
    let _ = write!(out, ".br\nDefault: {}.\n.br\nExample: {example}\n", roff(default));
}

/// Text for roff: nothing in it is a command.
fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('"', "\\(dq").replace('`', "");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
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
