//! Words that people who know other programs write first: `staunch help`, `staunch version`, `-v`, `--port`.
//!
//! It must never change the meaning of a command line that is right.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

use crate::instruments;

/// The words of a command line, with the names that other programs have for ours replaced.
pub(crate) fn spelled(mut words: Vec<OsString>) -> Vec<OsString> {
    match words.get(1).and_then(|word| word.to_str()) {
        Some("help") => {
            words.remove(1);
            words.push("--help".into());
        }
        Some("version" | "-v") if words.len() == 2 => words[1] = "--version".into(),
        // Everything else behind this word is a server.
        Some("proxy") if words.get(2).is_some_and(|word| word == "explain") => {
            words.splice(1..3, ["proxy-explain".into()]);
        }
        _ => {}
    }
    instruments::set_apart(&mut words);
    words
}

/// The fault of a call, with a word of ours where another program's was meant.
pub(crate) fn explained(mut error: Error) -> Error {
    let is_port = |word: &str| ["--port", "-p"].contains(&word.split('=').next().unwrap_or_default());
    let is_meant =
        matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(word)) if is_port(word));
    if error.kind() == ErrorKind::UnknownArgument && is_meant {
        let tip = StyledStr::from("a port is said by '--listen 8000', or '--listen 127.0.0.1:8000'");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn words_of_other_programs_are_known() {
        for (text, expected) in [
            ("staunch help", "staunch --help"),
            ("staunch help dostp ping", "staunch dostp ping --help"),
            ("staunch help load sweep", "staunch load -- sweep --help"),
            ("staunch version", "staunch --version"),
            ("staunch -v", "staunch --version"),
            ("staunch proxy explain --admin :1", "staunch proxy-explain --admin :1"),
            ("staunch proxy 8000", "staunch proxy 8000"),
            ("staunch serve help", "staunch serve help"),
            ("staunch serve -v", "staunch serve -v"),
            ("staunch", "staunch"),
        ] {
            assert_eq!(spelled(words(text)), words(expected), "{text}");
        }
    }

    #[test]
    fn a_port_is_answered_with_what_says_it_here() {
        for text in ["staunch serve --port 8000", "staunch serve -p 8000 .", "staunch serve --port=80"] {
            let error = crate::Command::command().try_get_matches_from(words(text)).expect_err(text);
            let said = explained(error).to_string();
            assert!(said.contains("--listen 8000") && !said.contains("as a value"), "{said}");
        }
        let error =
            crate::Command::command().try_get_matches_from(words("staunch serve --prot")).expect_err("no");
        assert!(!explained(error).to_string().contains("--listen 8000"));
    }
}
