//! Machines that several tests share: each is booted once for all of them, for a boot takes as long as a
//! test.
//!
//! This module owns what each machine runs, part by part, and in which order: a part meets what those
//! before it have left. A test asks for what its part said. How a machine ended that a part has made to
//! fall is told of that part, and of those behind it that they were not reached. In depth each test has
//! machines of its own.

use std::sync::OnceLock;

use crate::guest::{Said, said};
use crate::parts::{self, Part};
use crate::{USUAL_SERIES, is_in_depth};

/// Machines of one description.
pub(crate) struct Shared {
    series: &'static str,
    words: &'static [&'static str],
    parts: fn() -> Vec<Part>,
    /// The output of its parts and its kernel.
    told: OnceLock<(String, String)>,
}

/// The server, and modules beside it. The last part leaves a server and a client behind.
pub(crate) static SERVERS: Shared = Shared::new(USUAL_SERIES, &[], || {
    let conversations = parts::conversations(parts::HOSTILE);
    vec![parts::golden(), conversations, parts::command(None), parts::gate(&parts::LARGEST), parts::closing()]
});

/// Modules, used and strained. The last part makes the machine fall.
pub(crate) static MODULES: Shared = Shared::new(USUAL_SERIES, &parts::STRAINING, || {
    let used = [parts::built(), parts::kecho(), parts::khttpd()];
    let strained = [parts::KECHO.part(), parts::KHTTPD.part()];
    used.into_iter().chain(strained).chain([parts::fault("leak")]).collect()
});

/// Runs a part in a folder of its own.
const RUN: &str = r#"run() {
	mkdir "$HOME/$1" && cd "$HOME/$1" || exit 1
	echo "part $1 begins"
	sh "$HOME/$1.sh"
	status=$?
	echo
	echo "part $1 ends $status"
}
"#;

/// The lines of the shell that write a part's script and run it.
fn lines(part: &Part) -> String {
    let Part { name, script, .. } = part;
    format!("cat > $HOME/{name}.sh <<'END OF A PART'\n{script}\nEND OF A PART\nrun {name}\n")
}

impl Shared {
    const fn new(series: &'static str, words: &'static [&'static str], parts: fn() -> Vec<Part>) -> Self {
        Self { series, words, parts, told: OnceLock::new() }
    }

    /// The output of a part under a kernel: in this machine if that is its kernel. Otherwise, and in depth,
    /// the part has a machine of its own with these words.
    pub(crate) fn said(&self, series: &str, part: &Part, words: &[&str]) -> Said {
        if is_in_depth() || series != self.series {
            return part.alone(series, words);
        }
        let (out, status) = self.part(part.name);
        let said = Said { series: self.series.to_owned(), out, error: self.told().1.clone() };
        assert!(status == Some(0), "{} ended with {status:?}: {said}", part.name);
        said
    }

    /// The lines of the part by which this machine falls, and those of its kernel. In depth, of a machine of
    /// its own.
    pub(crate) fn fallen(&self, part: &Part) -> (String, String) {
        if is_in_depth() {
            return part.fallen(self.series);
        }
        let (out, status) = self.part(part.name);
        assert!(status.is_none(), "{} ended with {status:?}: {out}", part.name);
        (out, self.told().1.clone())
    }

    /// A part's lines, and how it ended if it did.
    fn part(&self, name: &str) -> (String, Option<i32>) {
        let (out, error) = self.told();
        of_part(out, name).unwrap_or_else(|| panic!("{}: {name} was not reached: {out}{error}", self.series))
    }

    fn told(&self) -> &(String, String) {
        self.told.get_or_init(|| {
            let parts = (self.parts)();
            let all = Part {
                name: "all",
                modules: once(parts.iter().flat_map(|part| part.modules.clone())),
                stock: once(parts.iter().flat_map(|part| part.stock.clone())),
                programs: once(parts.iter().flat_map(|part| part.programs.clone())),
                script: RUN.to_owned() + &parts.iter().map(lines).collect::<String>(),
            };
            said(&all.guest(self.series, &all.words(self.words)).run(&all.script))
        })
    }
}

/// Each of these once, for several parts need the same.
fn once<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    all.fold(Vec::new(), |mut kept, one| {
        if !kept.contains(&one) {
            kept.push(one);
        }
        kept
    })
}

/// The lines between a part's beginning and its end, which may be missing. `None` if it did not begin.
fn of_part(out: &str, name: &str) -> Option<(String, Option<i32>)> {
    let (begins, ends) = (format!("part {name} begins"), format!("part {name} ends "));
    let mut lines = out.lines();
    lines.find(|line| *line == begins)?;
    let mut said = String::new();
    for line in lines {
        if let Some(status) = line.strip_prefix(&ends) {
            return Some((said, status.parse().ok()));
        }
        said.push_str(line);
        said.push('\n');
    }
    Some((said, None))
}

#[test]
fn parts_are_told_apart() {
    let out = "noise\npart a begins\none\n\npart a ends 3\npart b begins\ntwo\npart a ends x\n";
    assert_eq!(of_part(out, "a"), Some(("one\n\n".to_owned(), Some(3))));
    assert_eq!(of_part(out, "b"), Some(("two\npart a ends x\n".to_owned(), None)));
    assert_eq!(of_part(out, "c"), None);
}
