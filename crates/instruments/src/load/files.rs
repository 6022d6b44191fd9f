//! Where results go: files that are opened before the run, so that none of it is lost to a wrong path.
//!
//! It must never write two things to standard output, nor the summary there when a file goes there.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use staunch_loadgen::report;
use staunch_loadgen::{Moment, RunOutcome};

use super::arguments::Results;

/// What makes the text of a file when the run is over.
type Writer = fn(&RunOutcome) -> String;

/// All files of a run.
pub(crate) struct Files {
    /// Written when the run is over.
    at_end: Vec<(Writer, Sink)>,
    /// Written while it runs.
    ndjson: Option<Sink>,
    /// Whether standard output is taken.
    pub(crate) to_stdout: bool,
}

impl Files {
    /// Opens what was asked for.
    ///
    /// # Errors
    /// Names the file that cannot be written, or the second one that would go to standard output.
    pub(crate) fn open(results: &Results) -> Result<Self, String> {
        let files: [(Option<&Path>, Writer); 5] = [
            (results.json.as_deref(), report::json),
            (results.html.as_deref(), report::html),
            (results.svg.as_deref(), report::svg),
            (results.csv.as_deref(), report::csv),
            (results.hdr.as_deref(), report::hdr_log),
        ];
        let paths = files.iter().filter_map(|file| file.0).chain(results.ndjson.as_deref());
        let to_stdout = paths.filter(|path| *path == Path::new("-")).count();
        if to_stdout > 1 {
            return Err("only one result can go to standard output (-)".into());
        }
        let mut at_end = Vec::new();
        for (path, writer) in files {
            if let Some(path) = path {
                at_end.push((writer, Sink::open(path)?));
            }
        }
        let ndjson = results.ndjson.as_deref().map(Sink::open).transpose()?;
        Ok(Self { at_end, ndjson, to_stdout: to_stdout == 1 })
    }

    /// Takes a step of the run.
    ///
    /// # Errors
    /// When the series cannot be written any more.
    pub(crate) fn step(&mut self, moment: &Moment) -> Result<(), String> {
        self.ndjson.as_mut().map_or(Ok(()), |sink| sink.write(&report::ndjson_line(moment)))
    }

    /// Writes what there is to be said.
    ///
    /// # Errors
    /// Names the file that could not be written.
    pub(crate) fn finish(self, outcome: &RunOutcome) -> Result<(), String> {
        for (writer, mut sink) in self.at_end {
            sink.write(&writer(outcome))?;
        }
        Ok(())
    }
}

/// A file, or standard output.
pub(crate) struct Sink {
    name: String,
    to: Box<dyn Write>,
}

impl Sink {
    /// Opens a file for writing; `-` is standard output.
    ///
    /// # Errors
    /// Names the file and what is wrong with it.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let name = path.display().to_string();
        if name == "-" {
            return Ok(Self { name: "standard output".into(), to: Box::new(io::stdout()) });
        }
        match File::create(path) {
            Ok(file) => Ok(Self { name, to: Box::new(file) }),
            Err(error) => Err(format!("cannot write {name}: {error}")),
        }
    }

    /// Writes a text.
    ///
    /// # Errors
    /// Names the file and what is wrong with it.
    pub(crate) fn write(&mut self, text: &str) -> Result<(), String> {
        let written = self.to.write_all(text.as_bytes()).and_then(|()| self.to.flush());
        written.map_err(|error| format!("cannot write {}: {error}", self.name))
    }
}
