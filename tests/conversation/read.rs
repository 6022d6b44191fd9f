//! The reader of `.wire` files.
//!
//! It must never accept a line it does not understand: every error names its line.

use super::{
    Action, BodyRule, Change, Coding, Content, Conversation, Expectation, FieldRule, Fragment, Pattern, Step,
    unescape,
};

/// A line that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// Line in the file, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub message: String,
}

/// Parses the text of a `.wire` file.
///
/// # Errors
/// The first line that is wrong.
pub fn parse(name: &str, text: &str) -> Result<Conversation, ParseError> {
    let mut reader = Reader::default();
    for (number, line) in text.lines().enumerate() {
        let line_number = number + 1;
        reader.line(line_number, line).map_err(|message| ParseError { line: line_number, message })?;
    }
    let last_line = text.lines().count();
    let error = |message: &str| ParseError { line: last_line, message: message.to_owned() };
    if reader.outer.is_some() {
        return Err(error("`eventually` without `end`"));
    }
    if !text.starts_with("# ") {
        return Err(ParseError {
            line: 1,
            message: "the first line must say what is shown: # ...".to_owned(),
        });
    }
    if !has_expectation(&reader.steps) {
        return Err(error("nothing is expected"));
    }
    let conversation = Conversation {
        name: name.to_owned(),
        only: reader.only,
        options: reader.options,
        settings: reader.settings,
        tree: reader.tree,
        steps: reader.steps,
    };
    let asks = conversation.steps.iter().find(|step| matches!(step.action, Action::Open));
    match asks {
        Some(step) if conversation.has_application() => {
            let message = "`open` asks what an application would have to answer".to_owned();
            Err(ParseError { line: step.line, message })
        }
        _ => Ok(conversation),
    }
}

fn has_expectation(steps: &[Step]) -> bool {
    steps.iter().any(|step| match &step.action {
        Action::Expect(_) | Action::ExpectBytes(_) | Action::ExpectCut(_) | Action::Closed | Action::Open => {
            true
        }
        Action::Application(action) => matches!(**action, Action::Expect(_)),
        Action::Eventually(inner) => has_expectation(inner),
        _ => false,
    })
}

#[derive(Default)]
struct Reader {
    only: Vec<String>,
    options: Vec<String>,
    settings: String,
    tree: Vec<Change>,
    steps: Vec<Step>,
    /// The steps before an `eventually` that is still open, and its line.
    outer: Option<(usize, Vec<Step>)>,
    /// Whether the next sent bytes begin a new piece.
    split: bool,
}

impl Reader {
    fn line(&mut self, line: usize, text: &str) -> Result<(), String> {
        if text.is_empty() || text.starts_with('#') {
            return Ok(());
        }
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        match word {
            ">" => self.send(line, rest, b"\r\n"),
            ">>" => self.send(line, rest, b""),
            "<" => self.expect_line(line, rest),
            "<<" => {
                let bytes = unescape(rest)?;
                self.push(line, Action::ExpectBytes(bytes))
            }
            "<!" => self.field_rule(line, rest, true),
            "=" => {
                let rule = body_rule(rest)?;
                self.expectation()?.bodies.push((line, rule));
                Ok(())
            }
            "save" => {
                let (name, field) = rest.split_once(' ').ok_or("save NAME FIELD")?;
                self.expectation()?.saves.push((name.to_owned(), field.to_owned()));
                Ok(())
            }
            "split" => {
                self.split = true;
                Ok(())
            }
            "end" => {
                let (line, outer) = self.outer.take().ok_or("`end` without `eventually`")?;
                let inner = std::mem::replace(&mut self.steps, outer);
                self.push(line, Action::Eventually(inner))
            }
            "upstream" => self.application_line(line, rest),
            "eventually" => {
                if self.outer.is_some() {
                    return Err("`eventually` inside `eventually`".to_owned());
                }
                self.outer = Some((line, std::mem::take(&mut self.steps)));
                Ok(())
            }
            _ => self.directive(line, word, rest),
        }
    }

    /// A line about the application: as those about the client, but that it expects requests.
    fn application_line(&mut self, line: usize, text: &str) -> Result<(), String> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        if self.outer.is_some() {
            return Err("`upstream` inside `eventually`".to_owned());
        }
        if word == "<" && rest.ends_with(" HTTP/1.1") {
            let line_of_request = Some(Pattern::parse(rest)?);
            let expectation = Expectation { line: line_of_request, ..Expectation::default() };
            return self.push(line, Action::Application(Box::new(Action::Expect(expectation))));
        }
        match word {
            "<" if rest.starts_with(|first: char| first.is_ascii_digit()) => {
                return Err("an application gets requests, which have no status".to_owned());
            }
            ">" | ">>" | "<" | "<<" | "<!" | "=" | "split" | "close" | "half-close" | "reset"
            | "connection" => {}
            _ => return Err(format!("`upstream {word}` is no word of this language")),
        }
        // The line is read as one about a client, behind the application's last step, and turned.
        let last = self.steps.pop_if(|step| matches!(step.action, Action::Application(_)));
        let before = std::mem::take(&mut self.steps);
        self.steps.extend(last.map(|step| match step.action {
            Action::Application(action) => Step { line: step.line, action: *action },
            action => Step { line: step.line, action },
        }));
        let outcome = self.line(line, text);
        let turned = std::mem::replace(&mut self.steps, before);
        let turn = |step: Step| Step { line: step.line, action: Action::Application(Box::new(step.action)) };
        self.steps.extend(turned.into_iter().map(turn));
        outcome
    }

    fn directive(&mut self, line: usize, word: &str, rest: &str) -> Result<(), String> {
        if let Some(change) = change(word, rest)? {
            if self.steps.is_empty() && self.outer.is_none() {
                self.tree.push(change);
                return Ok(());
            }
            return self.push(line, Action::Change(change));
        }
        match word {
            "only" => self.only.extend(rest.split(' ').map(str::to_owned)),
            "option" => self.options.extend(words(rest)?),
            "setting" => {
                self.settings.push_str(rest);
                self.settings.push('\n');
            }
            "close" => self.push(line, Action::Closed)?,
            "cut" => {
                let status = |rest: &str| rest.parse().map_err(|_| format!("cut STATUS, not `{rest}`"));
                let status = if rest.is_empty() { None } else { Some(status(rest)?) };
                self.push(line, Action::ExpectCut(status))?;
            }
            "open" => self.push(line, Action::Open)?,
            "half-close" => self.push(line, Action::HalfClose)?,
            "reset" => self.push(line, Action::Reset)?,
            "connection" => self.push(line, Action::Connection(rest.to_owned()))?,
            "wait" => {
                let ms = rest.strip_suffix("ms").and_then(|ms| ms.parse().ok()).ok_or("wait 100ms")?;
                self.push(line, Action::Wait(ms))?;
            }
            other => return Err(format!("`{other}` is no word of this language")),
        }
        Ok(())
    }

    fn push(&mut self, line: usize, action: Action) -> Result<(), String> {
        self.steps.push(Step { line, action });
        Ok(())
    }

    fn send(&mut self, line: usize, text: &str, ending: &[u8]) -> Result<(), String> {
        let mut fragments = unescape(text)?;
        fragments.push(Fragment::Bytes(ending.to_vec()));
        match self.steps.last_mut() {
            Some(Step { action: Action::Send(before), .. }) if !self.split => before.extend(fragments),
            _ => self.steps.push(Step { line, action: Action::Send(fragments) }),
        }
        self.split = false;
        Ok(())
    }

    fn expect_line(&mut self, line: usize, rest: &str) -> Result<(), String> {
        if !rest.starts_with(|first: char| first.is_ascii_digit()) {
            return self.field_rule(line, rest, false);
        }
        let statuses = rest.split('|').map(str::parse).collect::<Result<_, _>>();
        let statuses = statuses.map_err(|_| format!("`{rest}` is no list of status codes"))?;
        self.push(line, Action::Expect(Expectation { statuses, ..Expectation::default() }))
    }

    fn field_rule(&mut self, line: usize, rest: &str, forbidden: bool) -> Result<(), String> {
        let (name, pattern) = match rest.split_once(':') {
            Some((name, value)) => (name, Some(Pattern::parse(value.trim_start())?)),
            None => (rest, None),
        };
        let rule = FieldRule { line, name: name.to_owned(), forbidden, pattern };
        self.expectation()?.fields.push(rule);
        Ok(())
    }

    fn expectation(&mut self) -> Result<&mut Expectation, String> {
        match self.steps.last_mut() {
            Some(Step { action: Action::Expect(expectation), .. }) => Ok(expectation),
            _ => {
                Err("this belongs behind a `< STATUS` or `upstream < METHOD TARGET HTTP/1.1` line".to_owned())
            }
        }
    }
}

fn body_rule(text: &str) -> Result<BodyRule, String> {
    let words = words(text)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(match words[..] {
        _ if text.starts_with('"') => BodyRule::Exact(quoted(text)?),
        ["none"] => BodyRule::None,
        ["json"] => BodyRule::Json,
        ["length", length] => BodyRule::Length(number(length)?),
        ["like", ..] => {
            let inner = text["like ".len()..].strip_prefix('"').and_then(|text| text.strip_suffix('"'));
            BodyRule::Like(Pattern::parse(inner.ok_or("like \"PATTERN\"")?)?)
        }
        ["part", content_range, ..] => {
            let bytes = text.splitn(3, ' ').nth(2).ok_or("part 0-4/13 \"bytes\"")?;
            BodyRule::Part { content_range: content_range.to_owned(), bytes: quoted(bytes)? }
        }
        ["file", path] => BodyRule::File { coding: None, path: path.to_owned(), range: None },
        ["file", path, range] => {
            let (first, last) = range.split_once('-').ok_or("file PATH FIRST-LAST")?;
            let range = Some((number(first)?, number(last)?));
            BodyRule::File { coding: None, path: path.to_owned(), range }
        }
        [coding, "file", path] => {
            BodyRule::File { coding: Some(coding_named(coding)?), path: path.to_owned(), range: None }
        }
        _ => return Err(format!("`{text}` is no rule about a body")),
    })
}

fn coding_named(name: &str) -> Result<Coding, String> {
    match name {
        "gzip" => Ok(Coding::Gzip),
        "br" => Ok(Coding::Brotli),
        "zstd" => Ok(Coding::Zstd),
        other => Err(format!("`{other}` is no coding")),
    }
}

fn change(word: &str, rest: &str) -> Result<Option<Change>, String> {
    if !["file", "folder", "link", "fifo", "delete", "rename", "append", "truncate", "modified"]
        .contains(&word)
    {
        return Ok(None);
    }
    let words = words(rest)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let change = match (word, &words[..]) {
        ("file", [path, content @ ..]) => {
            Change::File { path: path.to_string(), content: read_content(content, rest)? }
        }
        ("append", [path, content @ ..]) => {
            Change::Append { path: path.to_string(), content: read_content(content, rest)? }
        }
        ("folder", [path]) => Change::Folder(path.to_string()),
        ("link", [path, target]) => Change::Link { path: path.to_string(), target: target.to_string() },
        ("fifo", [path]) => Change::Fifo(path.to_string()),
        ("delete", [path]) => Change::Delete(path.to_string()),
        ("rename", [from, to]) => Change::Rename { from: from.to_string(), to: to.to_string() },
        ("truncate", [path, length]) => {
            Change::Truncate { path: path.to_string(), length_bytes: number(length)? }
        }
        ("modified", [path, unix_s]) => {
            let unix_s = unix_s.parse().map_err(|_| format!("`{unix_s}` is no time"))?;
            Change::Modified { path: path.to_string(), unix_s }
        }
        _ => return Err(format!("`{word} {rest}` lacks or has too many words")),
    };
    Ok(Some(change))
}

fn read_content(words: &[&str], rest: &str) -> Result<Content, String> {
    // A quoted text is read from the line itself: `words` has its escapes already undone as text.
    let text = || quoted_bytes(&rest[rest.rfind(" \"").map_or(0, |at| at + 1)..]);
    match words {
        ["pattern", length] => Ok(Content::Pattern(number(length)?)),
        ["sparse", length] => Ok(Content::Sparse(number(length)?)),
        ["repeat", count, _] => Ok(Content::Repeat(number(count)?, text()?)),
        [_] if rest.ends_with('"') => Ok(Content::Bytes(text()?)),
        _ => Err("a content is \"TEXT\", pattern N, sparse N or repeat N \"TEXT\"".to_owned()),
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is no number"))
}

fn quoted(text: &str) -> Result<Vec<Fragment>, String> {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    unescape(inner.ok_or_else(|| format!("`{text}` is not in double quotes"))?)
}

fn quoted_bytes(text: &str) -> Result<Vec<u8>, String> {
    super::join(&quoted(text)?, &super::Saved::new())
}

/// Splits at spaces; what stands in double quotes is one word, without them and with its escapes undone.
fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let length =
            if rest.starts_with('"') { quoted_length(rest)? } else { rest.find(' ').unwrap_or(rest.len()) };
        let (word, after) = rest.split_at(length);
        if word.starts_with('"') {
            words.push(String::from_utf8_lossy(&quoted_bytes(word)?).into_owned());
        } else {
            words.push(word.to_owned());
        }
        rest = after.trim_start();
    }
    Ok(words)
}

fn quoted_length(text: &str) -> Result<usize, String> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Ok(at + 1),
            _ => {}
        }
    }
    Err("a double quote is not closed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_conversation_is_read() {
        let text = "# Shows all words.\nonly session server\noption --index \"a b\"\n\
                    file a.txt \"hi \\\"x\\\"\\n\"\n\
                    file b pattern 10\nlink c a.txt\n\n> GET / HTTP/1.1\n>\nsplit\n>> x\\r\\n\n< 200|206\n\
                    < A: b*\n<! C\nsave e ETag\n= \"x\"\nclose\n";
        let conversation = parse("x", text).expect("a right conversation");
        assert_eq!(conversation.options, ["--index", "a b"]);
        assert_eq!(conversation.tree.len(), 3);
        let content = Content::Bytes(b"hi \"x\"\n".to_vec());
        assert_eq!(conversation.tree[0], Change::File { path: "a.txt".into(), content });
        assert_eq!(conversation.steps.len(), 4, "{:?}", conversation.steps);
        let Action::Expect(expectation) = &conversation.steps[2].action else { panic!("no expectation") };
        assert_eq!(expectation.statuses, [200, 206]);
        assert_eq!((expectation.fields.len(), expectation.saves.len(), expectation.bodies.len()), (2, 1, 1));
        assert!(conversation.is_for(&["session"]) && !conversation.is_for(&["simulator", "site"]));
    }

    #[test]
    fn every_error_names_its_line() {
        let table = [
            ("# a\n> x\n", 2, "nothing is expected"),
            ("# a\n< 200\nnonsense\n", 3, "no word"),
            ("# a\n= none\n", 2, "belongs behind"),
            ("# a\n> \\q\n< 200\n", 2, "no escape"),
            ("# a\n< 2x0\n", 2, "status codes"),
            ("# a\neventually\n< 200\n", 3, "without `end`"),
            ("# a\neventually\nupstream > x\n< 200\n", 3, "inside `eventually`"),
            ("# a\nupstream open\n< 200\n", 2, "no word"),
            ("# a\nupstream > x\n< 200\nopen\n", 4, "would have to answer"),
            ("# a\nupstream < 200\n< 200\n", 2, "no status"),
            ("# a\n< 200\nupstream < Name: b\n", 3, "belongs behind"),
            ("# a\nfile a\n< 200\n", 2, "content"),
            ("< 200\n", 1, "first line"),
        ];
        for (text, line, message) in table {
            let error = parse("x", text).expect_err(text);
            assert_eq!(error.line, line, "{text}");
            assert!(error.message.contains(message), "{text}: {}", error.message);
        }
    }
}
