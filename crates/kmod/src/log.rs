//! What the kernel logs while something is tried.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;

/// Most bytes of one record (CONSOLE_EXT_LOG_MAX of the kernel).
const RECORD_BYTES_MAX: usize = 8192;

/// The kernel's log from a moment on. Without the right to read it, it is empty.
pub(super) struct Log {
    file: Option<File>,
}

impl Log {
    /// The kernel's log from its present end on.
    pub(super) fn from_now() -> Self {
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let file = File::options().read(true).custom_flags(flags).open("/dev/kmsg");
        let file = file.and_then(|mut file| file.seek(SeekFrom::End(0)).map(|_| file)).ok();
        Self { file }
    }

    /// The last line so far that begins so.
    pub(super) fn last(self, beginning: &str) -> Option<String> {
        let mut file = self.file?;
        let mut record = vec![0; RECORD_BYTES_MAX];
        let mut last = None;
        // A record is read whole. One that was overwritten before it was read is an error of its own.
        while let Ok(length @ 1..) = file.read(&mut record) {
            let text = words(&String::from_utf8_lossy(&record[..length])).to_owned();
            last = text.strip_prefix(beginning).map(str::to_owned).or(last);
        }
        last
    }
}

/// The line itself: behind priority, number and time, before what belongs to it.
fn words(record: &str) -> &str {
    let words = record.split_once(';').map_or("", |(_, words)| words);
    words.lines().next().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn a_record_is_taken_apart() {
        assert_eq!(words("3,501,7000,-;khttpd: mode=a;b: no\n SUBSYSTEM=net\n"), "khttpd: mode=a;b: no");
        assert_eq!(words("garbage"), "");
    }
}
