//! Folders for tests: made empty, removed with all they hold.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder of one test.
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("staunch-server-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn make_folder(&self, name: &str) {
        std::fs::create_dir_all(self.path.join(name)).unwrap();
    }

    pub(crate) fn write(&self, name: &str, content: &[u8]) {
        let path = self.path.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn link(&self, target: &str, name: &str) {
        std::os::unix::fs::symlink(target, self.path.join(name)).unwrap();
    }

    pub(crate) fn fifo(&self, name: &str) {
        let (file_type, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
        rustix::fs::mknodat(rustix::fs::CWD, self.path.join(name), file_type, mode, 0).unwrap();
    }

    /// Sets the time of modification, in seconds since 1970.
    pub(crate) fn set_modified(&self, name: &str, unix_s: u64) {
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(unix_s);
        std::fs::File::options().write(true).open(self.path.join(name)).unwrap().set_modified(time).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
