//! The files of one crate and which of them uses which.
//!
//! It owns the meaning of a path inside a crate: the file in which the named thing is written down. A name
//! that a module only passes on (`pub use`) counts for the file it comes from. It must never read another
//! crate, and leaves out what is compiled for tests.

use std::collections::{BTreeMap, HashMap};

use super::paths::{self, NamePath, PathUse};
use super::source::{Source, Tree};

/// A name may be passed on this often before we give up following it.
const PASSES_MAX: usize = 8;

/// A crate's modules.
pub(crate) struct Modules {
    by_path: BTreeMap<Vec<String>, Module>,
}

struct Module {
    file: String,
    paths: Vec<NamePath>,
    /// Names bound by `use` in this module.
    bound: HashMap<String, Vec<String>>,
}

/// A file uses another, first at this line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edge {
    /// The file that uses.
    pub(crate) from: String,
    /// Where.
    pub(crate) line: usize,
    /// The file that is used.
    pub(crate) to: String,
}

impl Modules {
    /// The modules below a crate's `src` folder.
    pub(crate) fn of(tree: &Tree, folder: &str) -> Self {
        let has_library = tree.file(&format!("{folder}lib.rs")).is_some();
        let mut by_path = BTreeMap::new();
        for source in tree.rust().filter(|source| source.path.starts_with(folder)) {
            let below = &source.path[folder.len()..];
            let other_root = has_library && below == "main.rs";
            if !other_root && !source.is_test_file() {
                by_path.insert(module_path(below), Module::new(source));
            }
        }
        Self { by_path }
    }

    /// Every use of one file by another, once each.
    pub(crate) fn edges(&self) -> Vec<Edge> {
        let mut edges: Vec<Edge> = Vec::new();
        for (path, module) in &self.by_path {
            for name in module.paths.iter().filter(|name| name.place != PathUse::PassedOn) {
                let Some(target) = self.resolve(path, &name.segments, 0) else { continue };
                let to = &self.by_path[&target].file;
                let known = edges.iter().any(|edge| edge.from == module.file && edge.to == *to);
                if *to != module.file && !known {
                    edges.push(Edge { from: module.file.clone(), line: name.line, to: to.clone() });
                }
            }
        }
        edges
    }

    /// The module in which the thing at `segments`, as written in module `from`, is written down.
    fn resolve(&self, from: &[String], segments: &[String], passes: usize) -> Option<Vec<String>> {
        let (mut module, used) = self.start(from, segments)?;
        for segment in &segments[used..] {
            let child = [&module[..], std::slice::from_ref(segment)].concat();
            if self.by_path.contains_key(&child) {
                module = child;
                continue;
            }
            let passed_on = self.by_path.get(&module).and_then(|found| found.bound.get(segment));
            return match passed_on {
                Some(path) if passes < PASSES_MAX && module != from => {
                    self.resolve(&module, path, passes + 1).or(Some(module))
                }
                _ => Some(module),
            };
        }
        Some(module)
    }

    /// The module where a path begins, and how many of its segments say so. `None`: in another crate.
    fn start(&self, from: &[String], segments: &[String]) -> Option<(Vec<String>, usize)> {
        let ups = segments.iter().take_while(|segment| *segment == "super").count();
        let first = segments.first()?;
        let found = match first.as_str() {
            "crate" => (Vec::new(), 1),
            "self" => (from.to_vec(), 1),
            "super" => (from.get(..from.len().checked_sub(ups)?)?.to_vec(), ups),
            _ => ([from, std::slice::from_ref(first)].concat(), 1),
        };
        self.by_path.contains_key(&found.0).then_some(found)
    }
}

impl Module {
    fn new(source: &Source) -> Self {
        let paths: Vec<NamePath> =
            paths::read(&source.code).into_iter().filter(|path| !source.is_inner_test(path.line)).collect();
        let uses = paths.iter().filter(|path| path.place != PathUse::Code);
        let bound =
            uses.filter_map(|path| Some((path.segments.last()?.clone(), path.segments.clone()))).collect();
        Self { file: source.path.clone(), paths, bound }
    }
}

/// `["http1", "head"]` of `http1/head.rs`; empty for the root.
fn module_path(below: &str) -> Vec<String> {
    let stem = below.trim_end_matches(".rs");
    let mut parts: Vec<String> = stem.split('/').map(str::to_owned).collect();
    let is_root = parts.len() == 1 && matches!(stem, "lib" | "main");
    if is_root || parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    parts
}
