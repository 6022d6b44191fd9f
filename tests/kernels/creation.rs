//! `staunch kernel trace --threads`: a connection gets a thread in mode `kthread`, in `wq` a work item.

use serde_json::Value;

use crate::guest::{Guest, Said};
use crate::is_possible;
use staunch_tests::process::binary;

/// The report about threads and work items in a mode.
fn creation(said: &Said, mode: &str) -> Value {
    let beginning = format!("{mode}: ");
    let line = said.out.lines().find_map(|line| line.strip_prefix(&beginning));
    let text = line.unwrap_or_else(|| panic!("no {beginning:?} in {said}"));
    let report: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {said}"));
    let missing = report["missing"].as_array().expect("what is missing");
    let is_graph = |text: &Value| text.as_str().is_some_and(|text| text.contains("set_ftrace_filter"));
    assert!(missing.len() == 1 && missing.iter().all(is_graph), "{said}");
    report["creation"].clone()
}

/// How many times a histogram has, which its steps have as well.
fn count(delays: &Value, said: &Said) -> u64 {
    let steps = delays["steps"].as_array().expect("steps");
    let counted: u64 = steps.iter().filter_map(|step| step["count"].as_u64()).sum();
    assert_eq!(delays["count"].as_u64(), Some(counted), "{said}");
    counted
}

/// For `make soak`: a report for people, which no server waits for.
mod in_depth {
    use super::*;

    #[test]
    fn threads_and_work_items_are_told_from_their_asking_to_their_start() {
        if !is_possible() {
            return;
        }
        let guest = Guest { series: "6.12", modules: &["khttpd"], programs: &[binary()], words: &[] };
        let said = guest.say(include_str!("creation.sh"));
        let [kthread, wq] = ["kthread", "wq"].map(|mode| creation(&said, mode));
        assert!(count(&kthread["threads"], &said) > 0 && count(&wq["items"], &said) > 0, "{said}");
        assert_eq!((count(&kthread["items"], &said), count(&wq["threads"], &said)), (0, 0), "{said}");
        said.has("<h2>Threads, from kthread_create to the first run of their function</h2>");
        said.has("<h2>Work items, from the queue to their start</h2>");
        let without = creation(&said, "without");
        assert!(without.is_null(), "{said}");
        said.has_all("", &["kthread unloaded", "wq unloaded"]);
    }
}
