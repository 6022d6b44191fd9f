//! tracefs of a host: what it offers, and recordings that are switched on and off again.
//!
//! Events are recorded in an instance of tracefs of their own, which disturbs nobody. In older kernels the
//! function graph has no instance: it must only be recorded where nobody else traces, and every setting of
//! tracefs must be put back.

use std::fs;
use std::io::{self, BufRead as _, BufReader, ErrorKind};
use std::path::{Path, PathBuf};

use staunch_program::Failure;
use staunch_program::output::remark;

use super::super::module::NO_RIGHT;
use super::super::obstacle;

/// What a user is told who may not use tracefs.
const NOT_FOR_USER: &str = "tracefs is not for this user: try as root";
/// Folders that tracefs is mounted at, the older one last.
const PLACES: [&str; 2] = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];
/// Memory of all processors together for events, and for the graph, in KiB: little for a machine that serves.
/// Older events are overwritten, and their number is told.
const EVENTS_KIB: u64 = 64 * 1024;
const GRAPH_KIB: u64 = 32 * 1024;
/// Least and most memory of one processor, in KiB: room for some hundred events, and for what is still read
/// within seconds.
const PROCESSOR_KIB: (u64, u64) = (64, 8192);
/// Options of the function graph: lines tell thread and time; time asleep and interrupts are left out.
const GRAPH_OPTIONS: [(&str, &str); 4] =
    [("funcgraph-proc", "1"), ("funcgraph-abstime", "1"), ("sleep-time", "0"), ("funcgraph-irqs", "0")];

/// An event, and which of its kind are recorded: all, where the filter is empty.
#[derive(Debug, Clone, Copy)]
pub(super) struct EventFilter<'a> {
    pub(super) group: &'a str,
    pub(super) name: &'a str,
    pub(super) filter: &'a str,
}

/// A mounted tracefs.
pub(super) struct Tracefs {
    folder: PathBuf,
    /// The size of a processor's buffer before anything was recorded, in KiB: Linux 6.1 tells another one
    /// once an instance was used.
    buffer_kib: String,
}

impl Tracefs {
    /// Finds tracefs beneath a host's root.
    ///
    /// # Errors
    /// tracefs is not mounted, or this user may not read it.
    pub(super) fn find(host: &Path) -> Result<Self, Failure> {
        let mut refused = false;
        for place in PLACES {
            let folder = host.join(place);
            match fs::read_to_string(folder.join("current_tracer")) {
                Ok(_) => {
                    let text = fs::read_to_string(folder.join("buffer_size_kb")).unwrap_or_default();
                    return Ok(Self { folder, buffer_kib: setting(&text).to_owned() });
                }
                Err(error) => refused |= error.kind() == ErrorKind::PermissionDenied,
            }
        }
        Err(if refused {
            no_right(if obstacle::is_confidential(host) {
                "the kernel is locked down (confidentiality): it lets nobody trace"
            } else {
                NOT_FOR_USER
            })
        } else {
            "tracefs is not mounted: mount -t tracefs tracefs /sys/kernel/tracing (a kernel without \
             CONFIG_FTRACE has none)"
                .to_owned()
                .into()
        })
    }

    /// Whether there is such an event.
    pub(super) fn has_event(&self, event: &EventFilter<'_>) -> bool {
        self.folder.join("events").join(event.group).join(event.name).exists()
    }

    /// What keeps the function graph from being traced, if anything does.
    pub(super) fn obstacle_of_graph(&self) -> Option<String> {
        let read = |name: &str| fs::read_to_string(self.folder.join(name)).unwrap_or_default();
        let tracers = read("available_tracers");
        if !tracers.split_whitespace().any(|tracer| tracer == "function_graph") {
            return Some(
                "the function graph: this kernel has none (CONFIG_FUNCTION_GRAPH_TRACER)".to_owned(),
            );
        }
        // A tracer, an event or a filter that somebody has set: the graph would mix with it, or replace it.
        let used = [
            ("current_tracer", "nop"),
            ("set_event", ""),
            ("set_graph_function", ""),
            ("set_graph_notrace", ""),
            ("set_ftrace_filter", ""),
            ("set_ftrace_pid", "no pid"),
        ];
        used.into_iter().find_map(|(name, unused)| {
            let text = read(name);
            // "#### all functions enabled ####" is a comment: no function is set.
            let held = text.lines().find(|line| !line.starts_with('#')).unwrap_or("").trim();
            (held != unused).then(|| {
                let word = if name == "current_tracer" { "echo nop" } else { "echo" };
                let end = format!("`{word} > {name}` in {}", self.folder.display());
                format!("the function graph: somebody traces already ({name} is {held}; {end} ends that)")
            })
        })
    }

    /// The size of one processor's buffer, in KiB, if all processors together may have so much.
    fn processor_kib(&self, whole_kib: u64) -> String {
        let processors =
            fs::read_dir(self.folder.join("per_cpu")).map_or(1, |entries| entries.count().max(1));
        (whole_kib / processors as u64).clamp(PROCESSOR_KIB.0, PROCESSOR_KIB.1).to_string()
    }

    /// Begins to record these events, in an instance of their own.
    ///
    /// # Errors
    /// This user may read tracefs and not write to it, or the kernel refuses.
    pub(super) fn events(&self, events: &[EventFilter<'_>]) -> Result<Recording, Failure> {
        let instance = self.folder.join("instances").join(format!("staunch-{}", std::process::id()));
        fs::create_dir(&instance).map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => no_right(NOT_FOR_USER),
            _ => said(&instance, &error).into(),
        })?;
        let mut recording =
            Recording { folder: instance.clone(), before: Vec::new(), instance: Some(instance) };
        recording.set("buffer_size_kb", &self.processor_kib(EVENTS_KIB))?;
        recording.set("trace_clock", "mono")?;
        for EventFilter { group, name, filter } in events {
            if !filter.is_empty() {
                recording.set(&format!("events/{group}/{name}/filter"), filter)?;
            }
            recording.set(&format!("events/{group}/{name}/enable"), "1")?;
        }
        Ok(recording)
    }

    /// Begins to record the function graph of all functions of the module, and its event `khttpd_request`.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(super) fn graph(&self) -> Result<Recording, String> {
        let mut recording = Recording { folder: self.folder.clone(), before: Vec::new(), instance: None };
        recording.set_from("buffer_size_kb", &self.processor_kib(GRAPH_KIB), &self.buffer_kib)?;
        for (option, value) in GRAPH_OPTIONS {
            recording.set(&format!("options/{option}"), value)?;
        }
        // No functions were set before (`obstacle_of_graph`): the list is put back by emptying it.
        recording.set_from("set_graph_function", "khttpd_*", "")?;
        recording.set("events/khttpd/khttpd_request/enable", "1")?;
        recording.set("tracing_on", "1")?;
        recording.set("current_tracer", "function_graph")?;
        Ok(recording)
    }
}

/// A recording that is under way. Dropping it ends the recording and puts every setting back.
pub(super) struct Recording {
    folder: PathBuf,
    /// The files that were written, in that order, each with what it held before.
    before: Vec<(PathBuf, String)>,
    instance: Option<PathBuf>,
}

impl Recording {
    /// Writes a file, and keeps what it held before.
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let path = self.folder.join(name);
        let before = fs::read_to_string(&path).map_err(|error| said(&path, &error))?;
        self.set_from(name, value, before.trim())
    }

    /// Writes a file that is to hold `before` again at the end.
    fn set_from(&mut self, name: &str, value: &str, before: &str) -> Result<(), String> {
        let path = self.folder.join(name);
        fs::write(&path, value).map_err(|error| said(&path, &error))?;
        self.before.push((path, before.to_owned()));
        Ok(())
    }

    /// Ends the recording, and gives its lines one by one.
    ///
    /// # Errors
    /// The recording cannot be ended or read.
    pub(super) fn read(&mut self, mut take: impl FnMut(&str)) -> Result<(), String> {
        self.set("tracing_on", "0")?;
        let path = self.folder.join("trace");
        let file = fs::File::open(&path).map_err(|error| said(&path, &error))?;
        let mut lines = BufReader::new(file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let count = lines.read_until(b'\n', &mut line).map_err(|error| said(&path, &error))?;
            if count == 0 {
                return Ok(());
            }
            take(String::from_utf8_lossy(&line).trim_end_matches('\n'));
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(instance) = &self.instance {
            // The folder of an instance is removed with the files in it.
            let _ = fs::remove_dir(instance);
            return;
        }
        for (path, before) in self.before.iter().rev() {
            if let Err(error) = fs::write(path, before) {
                remark(&format!("staunch: {} is not put back to {before:?}: {error}\n", path.display()));
            }
        }
    }
}

/// What to write to put a setting back that reads so. The size of a buffer that was not used yet reads
/// "7 (expanded: 1408)": a size that is written is expanded at once, so the second one counts.
fn setting(text: &str) -> &str {
    let text = text.trim();
    text.split_once("(expanded: ").map_or(text, |(_, size)| size.trim_end_matches(')'))
}

fn no_right(text: &str) -> Failure {
    Failure { code: NO_RIGHT, text: text.to_owned() }
}

fn said(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::setting;

    #[test]
    fn a_setting_is_written_back_as_it_was() {
        for (text, written) in
            [("7 (expanded: 1408)\n", "1408"), ("1408\n", "1408"), ("nop\n", "nop"), ("", "")]
        {
            assert_eq!(setting(text), written);
        }
    }
}
