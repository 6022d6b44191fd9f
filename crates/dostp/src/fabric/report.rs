//! Reports: what a node tells of itself each second.
//!
//! It owns their bytes. It must never decide what follows from a report.

use super::limits::{REPORT_BYTES_MAX, VERSION_BYTES_MAX};
use super::wire::{self, Input};

/// The layout written here. What stands behind the fields of this layout is ignored, so that more may follow.
const LAYOUT: u8 = 1;

/// How busy a server is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeLoad {
    /// Requests answered in the last second.
    pub requests_per_second: u32,
    /// Processor time of the whole process in the last second, of 1 000 for each worker.
    pub busy_permille: u16,
    /// Workers of the server.
    pub workers: u16,
    /// Connections that are open.
    pub connections: u32,
    /// Readers of live data.
    pub readers: u32,
    /// Version of the program.
    pub version: String,
}

/// What a node holds of a site's topics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SiteDigest {
    /// The digest of the site's name.
    pub(super) site: u64,
    /// The digest of all its values.
    pub(super) digest: u64,
    /// How many topics have a value.
    pub(super) topics: u32,
}

/// The report that a node sends to the others once a second: its stream, its load, and what its sites hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NodeReport {
    /// The start of the node's stream of publications, and the last version in it.
    pub(super) stream: (u32, u64),
    pub(super) load: NodeLoad,
    pub(super) sites: Vec<SiteDigest>,
}

impl NodeReport {
    pub(super) fn write(&self) -> Vec<u8> {
        let load = &self.load;
        let mut out = vec![LAYOUT];
        out.extend_from_slice(&self.stream.0.to_be_bytes());
        out.extend_from_slice(&self.stream.1.to_be_bytes());
        out.extend_from_slice(&load.requests_per_second.to_be_bytes());
        out.extend_from_slice(&load.busy_permille.to_be_bytes());
        out.extend_from_slice(&load.workers.to_be_bytes());
        out.extend_from_slice(&load.connections.to_be_bytes());
        out.extend_from_slice(&load.readers.to_be_bytes());
        wire::short_text(&load.version[..load.version.floor_char_boundary(VERSION_BYTES_MAX)], &mut out);
        out.extend_from_slice(&(self.sites.len() as u16).to_be_bytes());
        for site in &self.sites {
            out.extend_from_slice(&site.site.to_be_bytes());
            out.extend_from_slice(&site.digest.to_be_bytes());
            out.extend_from_slice(&site.topics.to_be_bytes());
        }
        out
    }

    /// Reads a report; `None` if the bytes are none.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > REPORT_BYTES_MAX {
            return None;
        }
        let mut input = Input(bytes);
        if input.u8()? != LAYOUT {
            return None;
        }
        let stream = (input.u32()?, input.u64()?);
        let load = NodeLoad {
            requests_per_second: input.u32()?,
            busy_permille: input.u16()?.min(1_000),
            workers: input.u16()?,
            connections: input.u32()?,
            readers: input.u32()?,
            version: input.short_text().filter(|text| is_version(text))?.to_owned(),
        };
        let count = input.u16()?;
        let mut site = || Some(SiteDigest { site: input.u64()?, digest: input.u64()?, topics: input.u32()? });
        let sites = (0..count).map(|_| site()).collect::<Option<_>>()?;
        Some(Self { stream, load, sites })
    }
}

/// Whether a text may stand in a line for people.
fn is_version(text: &str) -> bool {
    text.len() <= VERSION_BYTES_MAX && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_reads_as_it_was_written_and_no_part_of_it_does() {
        let load = NodeLoad {
            requests_per_second: 1,
            busy_permille: 1_000,
            workers: 2,
            connections: 3,
            readers: 4,
            version: "0.1.0".into(),
        };
        let site = SiteDigest { site: 5, digest: u64::MAX, topics: 6 };
        let report = NodeReport { stream: (7, u64::MAX), load, sites: vec![site; 2] };
        let bytes = report.write();
        assert_eq!(NodeReport::read(&bytes), Some(report.clone()));
        for cut in 0..bytes.len() {
            assert_eq!(NodeReport::read(&bytes[..cut]), None, "cut at {cut}");
        }
        let odd =
            NodeReport { load: NodeLoad { version: "\u{1b}[2J".into(), ..report.load.clone() }, ..report };
        assert_eq!(NodeReport::read(&odd.write()), None);
    }
}
