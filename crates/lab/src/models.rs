//! The list of models, in the order in which they are best read.
//!
//! It must never hold anything that models share.

mod epoll_edge;
mod epoll_level;
mod epoll_per_core;
mod fork;
mod iterative;
mod poll;
mod prefork;
mod prefork_flock;
mod prefork_mutex;
mod prefork_passing;
mod prethread;
mod prethread_handover;
mod prethread_mutex;
mod select;
mod sigio;
mod staunch_epoll;
mod staunch_uring;
mod thread;
mod uring;

use crate::model::Model;

/// Every model.
pub const MODELS: &[&Model] = &[
    &iterative::MODEL,
    &fork::MODEL,
    &prefork::MODEL,
    &prefork_flock::MODEL,
    &prefork_mutex::MODEL,
    &prefork_passing::MODEL,
    &thread::MODEL,
    &prethread::MODEL,
    &prethread_mutex::MODEL,
    &prethread_handover::MODEL,
    &select::MODEL,
    &poll::MODEL,
    &epoll_level::MODEL,
    &epoll_edge::MODEL,
    &epoll_per_core::MODEL,
    &sigio::MODEL,
    &uring::MODEL,
    &staunch_epoll::MODEL,
    &staunch_uring::MODEL,
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_model_says_what_it_is() {
        let names: BTreeSet<&str> = MODELS.iter().map(|model| model.name).collect();
        assert_eq!(names.len(), MODELS.len(), "a name is taken twice");
        for model in MODELS {
            assert!(Model::find(MODELS, model.name).is_some_and(|found| found.title == model.title));
            assert!(!model.lesson.is_empty() && model.lesson.len() < 110, "{}: the lesson", model.name);
            assert!(model.picture_lines().count() >= 2, "{}: the picture", model.name);
            assert!(model.picture_lines().all(|line| line.chars().count() < 110), "{}", model.name);
        }
        assert!(Model::find(MODELS, "apache").is_none());
    }

    /// A backslash at the end of a line would take the indent of the next.
    #[test]
    fn a_picture_is_what_stands_in_the_file() {
        for model in MODELS {
            let file =
                format!("{}/src/models/{}.rs", env!("CARGO_MANIFEST_DIR"), model.name.replace('-', "_"));
            let source = std::fs::read_to_string(&file).expect("the model's file");
            let lines: Vec<&str> = model.picture_lines().collect();
            assert!(source.contains(&format!("\"\n{}\";", lines.join("\n"))), "{}", model.name);
        }
    }

    /// The six models of Dong (2012), each once.
    #[test]
    fn the_papers_rows_are_there() {
        let rows: Vec<u8> = MODELS.iter().filter_map(|model| model.paper_row).collect();
        assert_eq!(rows, [1, 2, 3, 4, 5, 6]);
    }
}
