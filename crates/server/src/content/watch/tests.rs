//! Tests of the watch, on the real system.

use super::*;
use crate::content::testing::Folder;

fn changes_after(watch: &Watch, act: impl FnOnce()) -> Changes {
    act();
    watch.take_changes()
}

fn has(changes: &Changes, folder: &str, name: &str) -> bool {
    changes.names.contains(&(folder.as_bytes().into(), name.as_bytes().to_vec()))
}

#[test]
fn folders_are_covered_with_those_they_are_in() {
    let folder = Folder::new();
    folder.make_folder("a/b");
    folder.link("a", "link");
    let watch = Watch::new(folder.path(), Arc::new(|_| ()));
    assert!(watch.cover(b"/a/b/"));
    assert_eq!(watch.lock().numbers.len(), 3);
    assert!(watch.cover(b"/a/") && watch.cover(b"/"));
    assert!(!watch.cover(b"/none/"));
    assert!(!watch.cover(b"/link/") && !watch.cover(b"/link/b/"), "behind a link");
    let changes = changes_after(&watch, || folder.write("a/b/file", b"x"));
    assert!(has(&changes, "/a/b/", "file"));
    assert!(changes.trees.is_empty() && !changes.everything);
}

#[test]
fn a_moved_folder_is_forgotten_and_covered_anew() {
    let folder = Folder::new();
    folder.make_folder("a/b");
    let watch = Watch::new(folder.path(), Arc::new(|_| ()));
    assert!(watch.cover(b"/a/b/"));
    let rename = || std::fs::rename(folder.path().join("a"), folder.path().join("c")).unwrap();
    let changes = changes_after(&watch, rename);
    assert!(has(&changes, "/", "a") && has(&changes, "/", "c"));
    assert!(changes.contains_tree_of(b"/a/b/file") && changes.contains_tree_of(b"/c/x"));
    assert!(!changes.contains_tree_of(b"/a") && !changes.contains_tree_of(b"/d/x"));
    assert_eq!(watch.lock().numbers.len(), 1);
    assert!(watch.cover(b"/c/b/"));
}

#[test]
fn a_folder_under_a_new_name_not_heard_of_is_not_covered() {
    let folder = Folder::new();
    folder.make_folder("a");
    let watch = Watch::new(folder.path(), Arc::new(|_| ()));
    assert!(watch.cover(b"/a/"));
    std::fs::rename(folder.path().join("a"), folder.path().join("c")).unwrap();
    assert!(!watch.cover(b"/c/"));
}

#[test]
fn lost_events_change_everything() {
    let folder = Folder::new();
    folder.make_folder("a");
    let watch = Watch::new(folder.path(), Arc::new(|_| ()));
    assert!(watch.cover(b"/a/"));
    let (mut changes, mut gone) = (Changes::default(), HashSet::new());
    watch.note(-1, ReadFlags::QUEUE_OVERFLOW, None, &mut changes, &mut gone);
    watch.release(&mut changes, &gone);
    assert!(changes.everything && changes.contains_tree_of(b"/x"));
    assert_eq!(watch.lock().numbers.len(), 0);
    assert!(watch.cover(b"/a/"));
}

#[test]
fn changes_of_a_branch_have_its_path_in_front() {
    let changes = Changes {
        names: HashSet::from([(b"/a/"[..].into(), b"x".to_vec())]),
        trees: HashSet::from([b"/b/".to_vec()]),
        everything: false,
    };
    let below = changes.below(b"/media/");
    assert!(has(&below, "/media/a/", "x"));
    assert!(below.contains_tree_of(b"/media/b/y") && !below.contains_tree_of(b"/b/y"));
    let lost = Changes { everything: true, ..Changes::default() };
    let below = lost.below(b"/media/");
    assert!(below.contains_tree_of(b"/media/y") && !below.contains_tree_of(b"/y"));
    let of_the_root = Changes { everything: true, ..Changes::default() }.below(b"/");
    assert!(of_the_root.contains_tree_of(b"/y"));
}

#[test]
fn nothing_is_covered_once_the_root_has_moved() {
    let outer = Folder::new();
    outer.make_folder("root");
    let watch = Watch::new(&outer.path().join("root"), Arc::new(|_| ()));
    assert!(watch.cover(b"/"));
    let rename = || std::fs::rename(outer.path().join("root"), outer.path().join("gone")).unwrap();
    assert!(changes_after(&watch, rename).everything);
    assert!(!watch.cover(b"/"));
}
