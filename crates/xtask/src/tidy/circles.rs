//! No circle of files inside a crate: every file can be understood after those it uses.
//!
//! It must never forbid a parent to pass on its children's names; only real use counts.

use std::collections::{BTreeSet, HashMap, VecDeque};

use super::finding::Finding;
use super::modules::{Edge, Modules};
use super::source::Tree;

/// Reports every circle once, at its first file in the order of names.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let folders: BTreeSet<&str> = tree
        .rust()
        .filter_map(|source| source.path.find("/src/").map(|found| &source.path[..found + "/src/".len()]))
        .collect();
    folders.into_iter().flat_map(|folder| circles(&Modules::of(tree, folder).edges())).collect()
}

fn circles(edges: &[Edge]) -> Vec<Finding> {
    let files: BTreeSet<&str> = edges.iter().map(|edge| edge.from.as_str()).collect();
    let mut findings = Vec::new();
    for file in files {
        let Some(circle) = shortest_circle(edges, file) else { continue };
        if circle.iter().all(|edge| file <= edge.from.as_str()) {
            let way: Vec<String> = circle.iter().map(|edge| format!("{}:{}", edge.from, edge.line)).collect();
            let message = format!("circle of files: {} -> {file}", way.join(" -> "));
            findings.push(Finding::at(file, circle[0].line, message));
        }
    }
    findings
}

/// The fewest uses that lead from `file` back to it.
fn shortest_circle<'a>(edges: &'a [Edge], file: &str) -> Option<Vec<&'a Edge>> {
    let mut came_by: HashMap<&str, &Edge> = HashMap::new();
    let mut waiting = VecDeque::from([file]);
    while let Some(here) = waiting.pop_front() {
        for edge in edges.iter().filter(|edge| edge.from == here) {
            if came_by.contains_key(edge.to.as_str()) {
                continue;
            }
            came_by.insert(&edge.to, edge);
            if edge.to == file {
                return Some(way_back(&came_by, file));
            }
            waiting.push_back(&edge.to);
        }
    }
    None
}

fn way_back<'a>(came_by: &HashMap<&str, &'a Edge>, file: &str) -> Vec<&'a Edge> {
    let mut way = vec![came_by[file]];
    while way[way.len() - 1].from != file {
        way.push(came_by[way[way.len() - 1].from.as_str()]);
    }
    way.reverse();
    way
}
