//! Sites exchanged again and again: what is left behind, and what connections notice.
#![forbid(unsafe_code)]

mod exchange;
mod folders;

use std::sync::Arc;
use std::time::Duration;

use staunch_engine::{Mailbox, Post};
use staunch_server::{Front, FrontParts, SiteConfig, SiteRules, SitesShared};
use staunch_tests::house::waiting::until;
use staunch_tests::tree::Tree;

/// What a hundred exchanges may leave behind, in KiB: the allocator's own, and what is still being let go.
const GROWTH_KIB_MAX: u64 = 4096;

/// Threads of this process that prepare content, by their names.
fn crew() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("the threads of this process");
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    let words = ["load", "check", "watch", "walk", "encode", "look"];
    names.filter(|name| name.trim().split(' ').next().is_some_and(|word| words.contains(&word))).count()
}

/// Memory of this process that is in use, in KiB.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Sites of one folder, every one with a header of its own.
fn sites(root: &std::path::Path, count: usize, mark: usize) -> Vec<SiteConfig> {
    let site = |number: usize| SiteConfig {
        root: root.to_path_buf(),
        hosts: vec![format!("site{number}.example")],
        cache_bytes_max: 16 * 1024 * 1024,
        rules: SiteRules {
            headers: vec![("X-Mark".to_owned(), format!("{number}-{mark:04}"))],
            ..SiteRules::default()
        },
        ..SiteConfig::default()
    };
    (0..count).map(site).collect()
}

fn settle(shared: &SitesShared) {
    until("all is prepared", || shared.progress().done);
}

#[test]
fn neither_threads_nor_memory_grow() {
    let tree = Tree::with(&[]).expect("a tree");
    let shared = SitesShared::open(sites(tree.root(), 10, 0)).expect("sites");
    let post = Post::new(vec![Arc::new(Mailbox::new(Box::new(|| {})))]);
    shared.start(&post).expect("threads");
    // A worker that never asks for anything keeps its first table.
    let sleeping = Front::new(&FrontParts::of_sites(&shared), 0);
    settle(&shared);
    let threads = crew();
    assert!(threads >= 4, "{threads} threads");
    for mark in 1..=10 {
        shared.prepare(sites(tree.root(), 10, mark)).expect("sites").commit();
        settle(&shared);
    }
    let (resident, held) = (resident_kib(), shared.progress().bytes_held);
    for mark in 11..=110 {
        let replaced = shared.prepare(sites(tree.root(), 10, mark)).expect("sites").commit();
        assert_eq!((replaced.kept, replaced.opened, replaced.closed), (0, 10, 10));
        settle(&shared);
    }
    assert_eq!(crew(), threads, "as many as before");
    assert_eq!(shared.progress().bytes_held, held);
    let grown = resident_kib().saturating_sub(resident);
    println!("{threads} threads, {resident} KiB, grown by {grown} KiB in 100 exchanges of 10 sites");
    assert!(grown < GROWTH_KIB_MAX, "grown by {grown} KiB");
    drop((sleeping, shared));
    for _ in 0..5000 {
        if crew() == 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("{} threads are left", crew());
}
