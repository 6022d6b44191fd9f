//! What the laboratory measured, as it is kept in `lab.json`.
//!
//! It owns the form of the file. It must never judge: statistics, ranking and verdicts are made from it.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// The form of the file; a file of another form is refused.
pub const SCHEMA: u32 = 1;

/// A run of the laboratory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The version of this form: [`SCHEMA`].
    pub schema: u32,
    /// The plan's name or file.
    pub plan: String,
    /// The command that measures the same again.
    pub command: String,
    /// What the plan's loops were multiplied by.
    pub scale: f64,
    /// Where and by what it was measured.
    pub machine: MeasuredOn,
    /// Every row of the plan, in the plan's order.
    pub rows: Vec<Measured>,
}

/// Where and by what it was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredOn {
    /// Model name of the processor.
    pub processor: String,
    /// How many processors there are.
    pub processors: usize,
    /// Processors of the server.
    pub server_cpus: Vec<usize>,
    /// Processors of the client.
    pub client_cpus: Vec<usize>,
    /// Release of the kernel.
    pub kernel: String,
    /// Version of this program, with the commit where known.
    pub version: String,
    /// When it began, as RFC 3339 in UTC.
    pub began: String,
}

/// What is asked of a model.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Row {
    /// Name of the model.
    pub model: String,
    /// How the client speaks.
    pub protocol: Protocol,
    /// Children of the client, each with one connection at a time.
    pub children: usize,
    /// Connections, or with keep-alive requests, of each child.
    pub loops: u64,
    /// Bytes of each answer.
    pub bytes: usize,
    /// Processes or threads of the model's pool; 0 where it has none.
    pub pool: usize,
    /// What the client's children are; files that do not say were written when there were only processes.
    #[serde(default)]
    pub client: AskedBy,
}

/// What the client's children are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AskedBy {
    /// A process each, as in the paper.
    #[default]
    Processes,
    /// A thread for each child.
    Threads,
    /// States of one loop over epoll, in one process: the cheapest.
    Epoll,
}

/// How the client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// A number of bytes in a line, a connection each (the paper's).
    Paper,
    /// HTTP/1.1, a connection each.
    Http,
    /// HTTP/1.1, one connection per child.
    KeepAlive,
}

/// A row with what each of its rounds gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// What was asked.
    pub row: Row,
    /// In the order of measuring; the rows take turns.
    pub rounds: Vec<Round>,
}

/// A round of one row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Of the whole tree of the server's processes, from before the first connection to after the last.
    pub server: Usage,
    /// Most resident memory of the server's processes together, in bytes. Shared pages count in each.
    pub peak_memory_bytes: u64,
    /// Connections that each process or thread of the server took, largest first; empty where only one does.
    pub served_by: Vec<u64>,
    /// What was left behind when the server had ended, a sentence each.
    pub leaks: Vec<String>,
    /// What the client saw.
    pub client: ClientReport,
}

/// What processes used, as `getrusage` tells it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Processor time in user mode, in seconds.
    pub user_s: f64,
    /// Processor time in the kernel, in seconds.
    pub system_s: f64,
    /// Page faults without reading.
    pub minor_faults: u64,
    /// Page faults with reading.
    pub major_faults: u64,
    /// Times it waited.
    pub voluntary_switches: u64,
    /// Times it was made to wait.
    pub involuntary_switches: u64,
}

impl Usage {
    /// What was used since `before`, on the same counters.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            user_s: self.user_s - before.user_s,
            system_s: self.system_s - before.system_s,
            minor_faults: self.minor_faults - before.minor_faults,
            major_faults: self.major_faults - before.major_faults,
            voluntary_switches: self.voluntary_switches - before.voluntary_switches,
            involuntary_switches: self.involuntary_switches - before.involuntary_switches,
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.user_s += other.user_s;
        self.system_s += other.system_s;
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
    }
}

/// What `staunch lab client` saw.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientReport {
    /// From the first connection to the end of the last, in seconds.
    pub wall_s: f64,
    /// Answers that came whole.
    pub answered: u64,
    /// Connections made.
    pub connections: u64,
    /// Connections or answers that failed, by what the system said or `short answer`, most frequent first.
    pub errors: Vec<(String, u64)>,
    /// Bytes of answers received, those of answers that broke off included, fields of HTTP not.
    pub bytes: u64,
    /// Of the client with its children, from the first connection on.
    pub usage: Usage,
    /// Seconds that each child took for all its loops, in the order of the children.
    pub child_s: Vec<f64>,
}

impl ClientReport {
    /// Connections or answers that failed.
    pub fn failed(&self) -> u64 {
        self.errors.iter().map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_does_not_say_who_asked_was_asked_by_processes() {
        let old =
            r#"{"model": "poll", "protocol": "http", "children": 1, "loops": 2, "bytes": 3, "pool": 0}"#;
        let row: Row = serde_json::from_str(old).expect("a row");
        assert_eq!(row.client, AskedBy::Processes);
        let new = serde_json::to_string(&Row { client: AskedBy::Epoll, ..row.clone() }).expect("text");
        assert!(new.contains(r#""client":"epoll""#), "{new}");
        assert_eq!(serde_json::from_str::<Row>(&new).expect("a row").client, AskedBy::Epoll);
    }
}
