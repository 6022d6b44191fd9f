//! Links in documents lead somewhere: every relative link of a Markdown file names a file or folder of the
//! tree, and what stands behind `#` names a heading of the document.
//!
//! It must never ask the network: links to elsewhere are the reader's to judge.

use std::path::{Path, PathBuf};

use super::finding::Finding;
use super::source::{Source, Tree};

/// Checks every Markdown file.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let documents = tree.files.iter().filter(|source| source.has_extension(&["md"]));
    documents
        .filter(|source| !source.path.starts_with("site/"))
        .flat_map(|source| broken(tree, source))
        .collect()
}

fn broken(tree: &Tree, source: &Source) -> Vec<Finding> {
    let folder = tree.root.join(&source.path).parent().map_or_else(|| tree.root.clone(), Path::to_path_buf);
    let mut findings = Vec::new();
    for (number, line) in source.lines() {
        for (file, anchor) in targets(line) {
            if !file.is_empty() && !folder.join(file).exists() {
                findings.push(Finding::at(&source.path, number, format!("`{file}` is not there")));
            } else if let Some(anchor) =
                anchor.filter(|anchor| !has_heading(tree, source, &folder, file, anchor))
            {
                let message = format!("no heading of `{}` is `#{anchor}`", document(source, file));
                findings.push(Finding::at(&source.path, number, message));
            }
        }
    }
    findings
}

fn document<'a>(source: &'a Source, file: &'a str) -> &'a str {
    if file.is_empty() { &source.path } else { file }
}

/// Whether the document that a link names has that heading. What is no Markdown file of the tree may have
/// anchors of its own.
fn has_heading(tree: &Tree, source: &Source, folder: &Path, file: &str, anchor: &str) -> bool {
    let text = if file.is_empty() {
        Some(&source.text)
    } else {
        let path = plain(&folder.join(file));
        let path = path.strip_prefix(&tree.root).map(|path| path.to_string_lossy().into_owned());
        path.ok()
            .and_then(|path| tree.file(&path))
            .filter(|found| found.has_extension(&["md"]))
            .map(|found| &found.text)
    };
    text.is_none_or(|text| anchors(text).iter().any(|known| known == anchor))
}

/// The path without `..` in it.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => _ = plain.pop(),
            other => plain.push(other),
        }
    }
    plain
}

/// What the headings of a document are called in links: small letters, digits, hyphens for blanks; a heading
/// that comes again has a number.
fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        let heading = line.trim_start_matches('#');
        if is_code || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let letters = heading.trim().chars().filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            letter if letter.is_alphanumeric() => Some(letter.to_ascii_lowercase()),
            _ => None,
        });
        let name: String = letters.collect();
        let again = anchors.iter().filter(|known| {
            let number = known.strip_prefix(&name).and_then(|rest| rest.strip_prefix('-'));
            **known == name || number.is_some_and(|number| number.parse::<u32>().is_ok())
        });
        let count = again.count();
        anchors.push(if count == 0 { name } else { format!("{name}-{count}") });
    }
    anchors
}

/// File and heading of `[text](file#heading)` inside the tree.
fn targets(line: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    line.split("](")
        .skip(1)
        .filter_map(|behind| behind.split(')').next())
        .filter(|target| !target.is_empty() && !target.contains(':'))
        .map(|target| target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_named_as_in_links() {
        let text = "# A tool: `staunch gate`\n```\n# no heading\n```\n## Twice\n## Twice\n#tag\n";
        assert_eq!(anchors(text), ["a-tool-staunch-gate", "twice", "twice-1"]);
    }
}
