//! Load beside what happens to a server, and how many of its requests failed.
//!
//! It must never count as a failure what the client itself left unfinished at its end.

use std::process::{Child, Command, Stdio};

use serde_json::Value;
use staunch_tests::process::binary;

/// Requests that ended otherwise than well.
const FAILURES: [&str; 5] = ["refused", "reset", "wrong_answer", "timed_out", "failed"];

/// A load under way.
pub(crate) struct Load(Child);

impl Load {
    /// So many clients that ask again and again, for so long.
    pub(crate) fn closed(url: &str, connections: u32, duration: &str) -> Self {
        let connections = connections.to_string();
        Self::run(&[url, "-c", &connections, "-d", duration])
    }

    fn run(arguments: &[&str]) -> Self {
        let child = Command::new(binary())
            .arg("load")
            .args(arguments)
            .args(["-t", "1", "--expect-status", "200", "--quiet", "--json", "-"])
            .stdout(Stdio::piped())
            .spawn();
        Self(child.expect("a load generator"))
    }

    /// Waits for its end: requests answered, and what has failed by name.
    #[track_caller]
    pub(crate) fn finish(self) -> (u64, Vec<(&'static str, u64)>) {
        let output = self.0.wait_with_output().expect("its end");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let document: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let count = |name: &str| document[name].as_u64().unwrap_or_else(|| panic!("no {name}: {text}"));
        let failed = FAILURES.iter().map(|name| (*name, count(name))).filter(|(_, count)| *count > 0);
        (count("in_time") + count("late"), failed.collect())
    }

    /// Waits for its end, which has to be a good one. How many requests were answered.
    #[track_caller]
    pub(crate) fn expect_no_failure(self) -> u64 {
        let (answered, failed) = self.finish();
        assert!(answered > 100 && failed.is_empty(), "{answered} answered, failed: {failed:?}");
        answered
    }
}
