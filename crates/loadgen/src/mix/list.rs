//! Lists of URLs in files: `[WEIGHT] TARGET [WEIGHT] [#SIZE]`, one per line.
//!
//! It owns the format, which takes in the file lists of WebStone (`/file500.html 350 #500`). A target is a
//! path or a whole URL; a size is what the body has to have, in bytes; a line that begins with `#` is a
//! comment. It must never skip a line it does not understand.

use std::fs;
use std::path::Path;

use super::plan::{Choice, MixEntry, MixPlan};
use crate::Fault;
use crate::check::BodyCheck;
use crate::template::Template;
use crate::url::{Url, check_target};

impl MixPlan {
    /// Reads a list from a file. See [`MixPlan::from_list`].
    ///
    /// # Errors
    /// The file cannot be read, or as there.
    pub fn from_file(path: &Path, server: Option<&Url>) -> Result<Self, Fault> {
        let name = path.display().to_string();
        let bytes = fs::read(path).map_err(|error| Fault::new(format!("{name}: {error}")))?;
        let text =
            String::from_utf8(bytes).map_err(|_| Fault::new(format!("{name} is not text in UTF-8")))?;
        Self::from_list(&text, &name, server)
    }

    /// Reads a list. Paths are of `server`, or of the first URL in the list. With weights in it the choice is
    /// weighted, otherwise in order.
    ///
    /// # Errors
    /// What is wrong, after `name` and the number of the line.
    pub fn from_list(text: &str, name: &str, server: Option<&Url>) -> Result<Self, Fault> {
        let mut list = List { server: server.cloned(), entries: Vec::new(), weighted: false };
        for (index, line) in text.lines().enumerate() {
            list.add_line(line)
                .map_err(|fault| Fault::new(format!("{name}, line {}: {fault}", index + 1)))?;
        }
        if list.entries.is_empty() {
            return Err(Fault::new(format!("{name} has no URL in it")));
        }
        let Some(server) = list.server else {
            let sentence = "has only paths: give a URL as well, or whole URLs in the list";
            return Err(Fault::new(format!("{name} {sentence}")));
        };
        let choice = if list.weighted { Choice::Weighted } else { Choice::InOrder };
        Ok(Self::of(&server, list.entries, choice))
    }
}

struct List {
    server: Option<Url>,
    entries: Vec<MixEntry>,
    weighted: bool,
}

impl List {
    fn add_line(&mut self, line: &str) -> Result<(), Fault> {
        if line.trim_start().starts_with('#') {
            return Ok(());
        }
        let (mut target, mut weight, mut length_bytes) = (None, None, None);
        for column in columns(line) {
            if let Some(size) = column.strip_prefix('#') {
                set(&mut length_bytes, parse_size(size)?, "size")?;
            } else if column.starts_with('/') || column.contains("://") {
                set(&mut target, column, "target")?;
            } else {
                set(&mut weight, parse_weight(column)?, "weight")?;
            }
        }
        let Some(target) = target else {
            let empty = weight.is_none() && length_bytes.is_none();
            return if empty { Ok(()) } else { Err(Fault::new("there is no path or URL")) };
        };
        let mut entry = MixEntry::get(self.resolve(target)?);
        self.weighted |= weight.is_some();
        entry.weight = weight.unwrap_or(1.0);
        entry.check.body = length_bytes.map_or(BodyCheck::None, BodyCheck::Length);
        self.entries.push(entry);
        Ok(())
    }

    /// The target's path. A URL has to be one of the same server.
    fn resolve(&mut self, target: &str) -> Result<String, Fault> {
        if target.starts_with('/') {
            check_target(&Template::parse(target.as_bytes(), "the path")?)?;
            return Ok(target.to_owned());
        }
        let url: Url = target.parse()?;
        let server = self.server.get_or_insert_with(|| url.clone());
        if (&server.host, server.port, server.secure) != (&url.host, url.port, url.secure) {
            let shown = |url: &Url| {
                let scheme = if url.secure { "https://" } else { "" };
                format!("{scheme}{}", url.authority())
            };
            let (other, server) = (shown(&url), shown(server));
            return Err(Fault::new(format!("`{target}` is on {other}, the others are on {server}")));
        }
        Ok(url.target)
    }
}

/// What stands between white space; white space inside double braces separates nothing.
fn columns(line: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0usize;
    let mut before = ' ';
    let separates = move |character: char| {
        match (before, character) {
            ('{', '{') => depth += 1,
            ('}', '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        // Braces count in pairs: the third of three begins a new one.
        before = if character == before { ' ' } else { character };
        depth == 0 && character.is_whitespace()
    };
    line.split(separates).filter(|column| !column.is_empty())
}

fn set<T>(place: &mut Option<T>, value: T, what: &str) -> Result<(), Fault> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Fault::new(format!("there is more than one {what}"))),
    }
}

fn parse_size(text: &str) -> Result<u64, Fault> {
    text.parse().map_err(|_| Fault::new(format!("`#{text}` is not a size in bytes, written like `#500`")))
}

fn parse_weight(text: &str) -> Result<f64, Fault> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number = text.parse::<f64>().ok().filter(|_| plain);
    let number = number.ok_or_else(|| {
        let sentence = "is neither a weight nor a target: a path begins with `/`, a URL with `http://`";
        Fault::new(format!("`{text}` {sentence}"))
    })?;
    if number > 0.0 { Ok(number) } else { Err(Fault::new(format!("the weight {text} is not above 0"))) }
}

#[cfg(test)]
mod tests;
