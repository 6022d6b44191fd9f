//! Names of scripts: which paths run one, and which files show the source of one.
//!
//! It must never look at a file. Whoever reads names here errs on the side of the source: what some file
//! system could take for the name of a script is never served as a file.

/// The end of a script's name, in letters of either case.
const ENDING: &[u8] = b".php";
/// Endings of files that hold another file in a coding.
const CODINGS: [&[u8]; 4] = [b".br", b".gz", b".zst", b".zstd"];

/// The script that an application by FastCGI is asked to run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ScriptCall {
    /// The document root as the application sees it; empty: it is one program, without scripts.
    pub(crate) root: Box<[u8]>,
    /// The path of the script, decoded.
    pub(crate) name: Box<[u8]>,
    /// The part of the path behind the script.
    pub(crate) path_info: Box<[u8]>,
}

/// Where the script of a decoded path ends: behind the first segment that has the name of one. What follows
/// is for the script (PATH_INFO).
pub(crate) fn script_end(path: &[u8]) -> Option<usize> {
    let mut end = 0;
    path.split(|byte| *byte == b'/').find_map(|name| {
        end += name.len();
        let is_found = ends_with(name, ENDING);
        end += 1;
        is_found.then_some(end - 1)
    })
}

/// Whether a decoded path is that of a script.
pub(crate) fn is_script(path: &[u8]) -> bool {
    script_end(path) == Some(path.len())
}

/// Whether what stands at a decoded path may be the source of a script: under its own name, under one that
/// file systems of other systems take for it (with dots or spaces at its end), or in a coding.
pub(crate) fn shows_source(path: &[u8]) -> bool {
    let name = without_tail(path.rsplit(|byte| *byte == b'/').next().unwrap_or_default());
    let coding = CODINGS.iter().find(|coding| ends_with(name, coding));
    let plain = coding.and_then(|coding| name.get(..name.len() - coding.len()));
    ends_with(name, ENDING) || plain.is_some_and(|plain| ends_with(without_tail(plain), ENDING))
}

fn without_tail(name: &[u8]) -> &[u8] {
    let end = name.iter().rposition(|byte| !matches!(byte, b'.' | b' ')).map_or(0, |last| last + 1);
    name.get(..end).unwrap_or_default()
}

fn ends_with(name: &[u8], ending: &[u8]) -> bool {
    let start = name.len().checked_sub(ending.len());
    start.and_then(|start| name.get(start..)).is_some_and(|end| end.eq_ignore_ascii_case(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_end_behind_their_name() {
        for (path, script) in [
            ("/a.php", Some("/a.php")),
            ("/a/b.PhP", Some("/a/b.PhP")),
            ("/a.php/", Some("/a.php")),
            ("/a.php/b/c.php", Some("/a.php")),
            ("/uploads/evil.jpg/x.php", Some("/uploads/evil.jpg/x.php")),
            ("/.php", Some("/.php")),
            ("/a.php5", None),
            ("/a.php~", None),
            ("/a.phpx/b", None),
            ("/aphp", None),
            ("/", None),
            ("/a/b/", None),
        ] {
            let found = script_end(path.as_bytes()).map(|end| &path[..end]);
            assert_eq!((found, is_script(path.as_bytes())), (script, script == Some(path)), "{path}");
        }
    }

    #[test]
    fn names_that_may_show_a_source() {
        let shown =
            ["/a.php", "/A.PHP", "/a.php.", "/a.php. .", "/a.php.br", "/a.PHP.GZ", "/a.php..zst", "/.php"];
        assert!(shown.iter().all(|path| shows_source(path.as_bytes())));
        let others = ["/a.php/b.css", "/a.txt", "/a.php~", "/a.php.bak", "/a.phps", "/a.br", "/", "/php"];
        assert!(others.iter().all(|path| !shows_source(path.as_bytes())));
    }
}
