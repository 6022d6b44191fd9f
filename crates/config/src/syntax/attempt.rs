//! An entry of a `try`: a path to look for, or the status of the answer when nothing was there.

use crate::node::Node;
use crate::syntax::Scalar;

/// What is tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Try {
    /// A path, in which `$path` is the one asked for.
    Path(String),
    /// The end: 403, 404 or 410.
    Status(u16),
}

/// `$path.html`, `/index.html`, `404`.
#[derive(Debug)]
pub struct Attempt;

impl Scalar for Attempt {
    type Value = Try;
    const WORD: &'static str = "PATH|STATUS";

    fn parse(text: &str) -> Result<Try, String> {
        if let Ok(status) = text.strip_prefix('=').unwrap_or(text).parse() {
            let known = [403, 404, 410].contains(&status);
            return if known { Ok(Try::Status(status)) } else { Err("write 403, 404 or 410".into()) };
        }
        let whole = text.replacen("$path", "/path", 1);
        let (first, rest) = whole.split_at(whole.len().min(1));
        let inner = rest.strip_suffix('/').unwrap_or(rest);
        let is_name = |name: &str| !matches!(name, "" | "." | "..");
        let right = first == "/"
            && (rest.is_empty() || inner.split('/').all(is_name))
            && whole.bytes().all(|byte| byte.is_ascii_graphic() && !b"%?#$*".contains(&byte));
        match right {
            true => Ok(Try::Path(text.into())),
            false if whole.contains("$uri") => Err("the path that was asked for is $path here".into()),
            false => Err("write a path such as $path, $path.html or /index.html, or a status".into()),
        }
    }

    fn write(attempt: &Try) -> Node {
        match attempt {
            Try::Path(path) => Node::text(path.as_str()),
            Try::Status(status) => Node::number(status),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let path = |text: &str| Some(Try::Path(text.into()));
        for text in ["$path", "$path/", "$path.html", "/static$path", "/", "/a/b.html", "$path/index.html"] {
            assert_eq!(Attempt::parse(text).ok(), path(text), "{text}");
        }
        assert_eq!(
            (Attempt::parse("404"), Attempt::parse("=410")),
            (Ok(Try::Status(404)), Ok(Try::Status(410)))
        );
        for text in
            ["", "a", "$uri", "$path/../a", "/a//b", "$path$path", "/a?b", "/%2e", "200", "=", "/a b", "//"]
        {
            assert!(Attempt::parse(text).is_err(), "{text}");
        }
    }
}
