//! What is tried for a path that is not there itself: other paths in order, then a status.
//!
//! It owns the way from a path to what may answer for it, and back from what has changed to the paths it may
//! answer for. It must never look at the disk. What it names is opened as everything is, beneath the root.

use staunch_protocol::Status;

use crate::config::Attempts;

/// What stands for the path itself.
const PATH: &str = "$path";

/// Ready to be applied.
#[derive(Debug)]
pub(crate) struct Tries {
    /// All but the first, which is the path itself.
    others: Box<[Other]>,
    /// What is answered where nothing is there.
    pub(crate) status: Status,
}

#[derive(Debug)]
enum Other {
    /// What stands before and behind the path.
    Around(Box<[u8]>, Box<[u8]>),
    Fixed(Box<[u8]>),
}

/// What may answer for a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) path: Vec<u8>,
    /// Whether it answers for this path alone, so that no more are remembered than are there.
    pub(crate) is_own: bool,
}

impl Tries {
    /// Reads a list.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn new(attempts: &Attempts) -> Result<Self, String> {
        let status =
            Status::from_code(attempts.status).filter(|_| matches!(attempts.status, 403 | 404 | 410));
        let status = status.ok_or_else(|| format!("try: {} is none of 403, 404, 410", attempts.status))?;
        let others = match attempts.paths.split_first() {
            Some((first, others)) if first == PATH => others,
            _ => return Err(format!("try: {PATH:?} does not stand first")),
        };
        let others = others.iter().map(|text| other(text)).collect::<Result<_, _>>()?;
        Ok(Self { others, status })
    }

    /// What may answer for a path in its place, in order.
    pub(crate) fn candidates(&self, path: &[u8]) -> impl Iterator<Item = Candidate> {
        self.others.iter().map(move |other| match other {
            Other::Fixed(fixed) => Candidate { path: fixed.to_vec(), is_own: false },
            Other::Around(before, behind) => {
                // Of two slashes that meet, the first is left out: no key has an empty segment.
                let doubled = path.ends_with(b"/") && behind.starts_with(b"/");
                let path = if doubled { &path[..path.len() - 1] } else { path };
                Candidate { path: [before, path, behind].concat(), is_own: true }
            }
        })
    }

    /// The paths for which what stands at `changed` may answer. Those of fixed candidates are not among them:
    /// they are not remembered.
    pub(crate) fn answered_by(&self, changed: &[u8]) -> impl Iterator<Item = Vec<u8>> {
        self.others
            .iter()
            .flat_map(move |other| {
                let Other::Around(before, behind) = other else { return [None, None] };
                let path = changed.strip_prefix(&**before).and_then(|rest| rest.strip_suffix(&**behind));
                let folder = path.filter(|_| behind.starts_with(b"/")).map(|path| [path, b"/"].concat());
                [path.map(<[u8]>::to_vec), folder]
            })
            .flatten()
    }
}

fn other(text: &str) -> Result<Other, String> {
    let fault = || Err(format!("try: {text:?} is no path: write $path.html or /name.html"));
    let whole = text.replacen(PATH, "/path", 1);
    let inner = whole.strip_prefix('/').map(|rest| rest.strip_suffix('/').unwrap_or(rest));
    let is_name = |name: &str| !matches!(name, "" | "." | "..") && !name.contains(['\0', '$']);
    if whole != "/" && !inner.is_some_and(|inner| inner.split('/').all(is_name)) {
        return fault();
    }
    Ok(match text.split_once(PATH) {
        Some((before, behind)) => Other::Around(before.as_bytes().into(), behind.as_bytes().into()),
        None => Other::Fixed(text.as_bytes().into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tries(paths: &[&str]) -> Tries {
        let paths = paths.iter().map(|&path| path.to_owned()).collect();
        Tries::new(&Attempts { paths, status: 410 }).unwrap()
    }

    #[test]
    fn what_may_answer_leads_back_to_the_path() {
        let tries = tries(&["$path", "$path.html", "$path/", "/static$path", "$path/index.htm", "/app/"]);
        assert_eq!(tries.status, Status::GONE);
        for (path, expected) in [
            ("/a", ["/a.html", "/a/", "/static/a", "/a/index.htm", "/app/"]),
            ("/a/b/", ["/a/b/.html", "/a/b/", "/static/a/b/", "/a/b/index.htm", "/app/"]),
            ("/", ["/.html", "/", "/static/", "/index.htm", "/app/"]),
        ] {
            let found: Vec<Candidate> = tries.candidates(path.as_bytes()).collect();
            let paths: Vec<&str> = found.iter().map(|one| str::from_utf8(&one.path).unwrap()).collect();
            assert_eq!(paths, expected, "{path}");
            for candidate in found.iter().filter(|one| one.is_own) {
                let back: Vec<Vec<u8>> = tries.answered_by(&candidate.path).collect();
                assert!(back.iter().any(|one| one == path.as_bytes()), "{path} by {candidate:?}: {back:?}");
            }
            assert_eq!(found.iter().filter(|one| one.is_own).count(), 4);
        }
    }

    #[test]
    fn wrong_lists() {
        let wrong: [&[&str]; 9] = [
            &[],
            &["/a"],
            &["$path.html"],
            &["$path", "a"],
            &["$path", "$path/../b"],
            &["$path", "/a//b"],
            &["$path", "$path$path"],
            &["$path", ""],
            &["$path", "/./a"],
        ];
        for paths in wrong {
            let paths: Vec<String> = paths.iter().map(|&path| path.to_owned()).collect();
            assert!(Tries::new(&Attempts { paths: paths.clone(), status: 404 }).is_err(), "{paths:?}");
        }
        assert!(Tries::new(&Attempts { paths: vec![PATH.into()], status: 200 }).is_err());
    }
}
