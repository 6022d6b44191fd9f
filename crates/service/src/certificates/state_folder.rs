//! The folder for what is kept from one start to the next: the key and the certificate of the local
//! authority, and the store of those that authorities give.
//!
//! It owns the names of the files in it. It must never leave a file that is written by half, or one with a
//! key that others can read.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use staunch_acme::Store;
use staunch_config::Config;
use staunch_netio::named_file::read_text;
use staunch_program::Failure;
use staunch_tls::LocalAuthority;
use zeroize::Zeroizing;

use crate::limits::SECRET_FILE_BYTES_MAX;

/// The key and the certificate of the local authority.
const AUTHORITY_FILE: &str = "local-authority.pem";
/// Its certificate alone: what visitors are to trust.
const CERTIFICATE_FILE: &str = "local-authority.crt";
/// Files that processes of the same number may leave unfinished: each was killed within a millisecond.
const UNFINISHED_MAX: u32 = 16;
const KEY_BEGINS: &str = "-----BEGIN PRIVATE KEY-----";

/// The folder, which may not be there yet.
pub(crate) struct StateFolder(PathBuf);

impl StateFolder {
    /// The one that the settings name, or else the system's own for this user.
    ///
    /// # Errors
    /// Nothing says where it is.
    pub(crate) fn of(config: &Config) -> Result<Self, Failure> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let of_service = || set("STATE_DIRECTORY");
        let of_root = || rustix::process::geteuid().is_root().then(|| PathBuf::from("/var/lib/staunch"));
        let of_user = || {
            let folder = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")));
            folder.map(|folder| folder.join("staunch"))
        };
        let told = config.process.state_folder.clone();
        let folder = told.or_else(of_service).or_else(of_root).or_else(of_user);
        let text = "state_folder: neither STATE_DIRECTORY nor HOME says where it is: write it";
        folder.map(Self).ok_or_else(|| Failure::configuration(text))
    }

    /// The file with the key.
    pub(crate) fn authority_file(&self) -> PathBuf {
        self.0.join(AUTHORITY_FILE)
    }

    /// The file that visitors are to trust.
    pub(crate) fn certificate_file(&self) -> PathBuf {
        self.0.join(CERTIFICATE_FILE)
    }

    /// Where certificates of authorities are kept.
    pub(crate) fn store(&self) -> Store {
        Store::new(self.0.join("acme"))
    }

    /// The authority that was made here before, or one made now.
    ///
    /// # Errors
    /// A file cannot be read or written, or is not of an authority made here, with its name.
    pub(crate) fn authority(&self, now_unix_s: u64) -> Result<LocalAuthority, Failure> {
        let path = self.authority_file();
        let failed = |error: io::Error| Failure::from(format!("tls: {}: {error}", path.display()));
        if let Some(text) = read(&path).map_err(failed)? {
            return self.known(&text, now_unix_s);
        }
        let made = LocalAuthority::create(now_unix_s).map_err(|fault| fault.to_string())?;
        let text = Zeroizing::new(format!("{}{}", made.certificate_pem(), &*made.key_pem()));
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0).map_err(failed)?;
        // A process that makes one at this moment has made the one that counts.
        match write_new(&path, text.as_bytes(), 0o600) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let text = read(&path).map_err(failed)?.unwrap_or_default();
                return self.known(&text, now_unix_s);
            }
            Err(error) => return Err(failed(error)),
        }
        self.publish(&made)?;
        Ok(made)
    }

    /// An authority by the text of its file.
    fn known(&self, text: &str, now_unix_s: u64) -> Result<LocalAuthority, Failure> {
        let path = self.authority_file();
        let (certificate, key) = text.split_at(text.find(KEY_BEGINS).unwrap_or(text.len()));
        let authority = LocalAuthority::read(certificate, key, now_unix_s).map_err(|fault| {
            let text = format!("tls: {}: {fault}; remove it, and another is made", path.display());
            Failure::configuration(text)
        })?;
        if !self.certificate_file().exists() {
            self.publish(&authority)?;
        }
        Ok(authority)
    }

    fn publish(&self, authority: &LocalAuthority) -> Result<(), Failure> {
        let path = self.certificate_file();
        match write_new(&path, authority.certificate_pem().as_bytes(), 0o644) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(format!("tls: {}: {error}", path.display()).into())
            }
            _ => Ok(()),
        }
    }
}

/// The text of a file, if there is one.
fn read(path: &Path) -> io::Result<Option<Zeroizing<String>>> {
    match read_text(path, SECRET_FILE_BYTES_MAX) {
        Ok(text) => Ok(Some(Zeroizing::new(text))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a file whole, or not at all if there is one.
fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let (mut file, unfinished) = create_beside(path, mode)?;
    let result = file.write_all(bytes).and_then(|()| file.sync_all());
    let result = result.and_then(|()| fs::hard_link(&unfinished, path));
    // The unfinished file was only a name.
    let _ = fs::remove_file(&unfinished);
    result
}

/// A new file beside another one, under a name that is nobody's: what stands there may be of a process that
/// was killed, or be written at this moment by another one, which in another container has the same number.
fn create_beside(path: &Path, mode: u32) -> io::Result<(File, PathBuf)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let process = std::process::id();
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for number in 0..UNFINISHED_MAX {
        let unfinished = path.with_file_name(format!(".{name}.{process}.{number}"));
        match OpenOptions::new().write(true).create_new(true).mode(mode).open(&unfinished) {
            Ok(file) => return Ok((file, unfinished)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let text = format!("{} is left over: remove it", unfinished.display());
                last = io::Error::other(text);
            }
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const NOW: u64 = 1_795_000_000;

    fn folder(name: &str) -> StateFolder {
        let path = std::env::temp_dir().join(format!("staunch-state-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        StateFolder(path.join("deep"))
    }

    #[test]
    fn an_authority_is_made_once_and_its_key_is_nobody_elses() {
        let folder = folder("once");
        let made = folder.authority(NOW).expect("an authority");
        let again = folder.authority(NOW + 1).expect("the same");
        assert_eq!(made.certificate_pem(), again.certificate_pem());
        let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
        assert_eq!((mode(&folder.authority_file()), mode(&folder.0)), (0o600, 0o700));
        let public = fs::read_to_string(folder.certificate_file()).expect("a certificate");
        assert_eq!(public, made.certificate_pem());
        assert!(!public.contains("PRIVATE"));
        assert_eq!(fs::read_dir(&folder.0).expect("a folder").count(), 2, "nothing unfinished is left");
        fs::remove_dir_all(folder.0.parent().expect("a folder")).expect("ours");
    }

    #[test]
    fn what_a_killed_process_left_is_no_authority() {
        let folder = folder("left-over");
        fs::create_dir_all(&folder.0).expect("a folder");
        for left in [
            format!(".{AUTHORITY_FILE}.{}", std::process::id()),
            format!(".{AUTHORITY_FILE}.{}.0", std::process::id()),
        ] {
            fs::write(folder.0.join(left), "").expect("a file");
        }
        let made = folder.authority(NOW).expect("an authority");
        let again = folder.authority(NOW).expect("the same");
        assert_eq!(made.certificate_pem(), again.certificate_pem());
        fs::remove_dir_all(folder.0.parent().expect("a folder")).expect("ours");
    }

    #[test]
    fn a_damaged_authority_is_named_and_kept() {
        let folder = folder("damaged");
        fs::create_dir_all(&folder.0).expect("a folder");
        fs::write(folder.authority_file(), "nonsense").expect("a file");
        let failure = folder.authority(NOW).err().expect("refused");
        assert!(failure.text.contains("local-authority.pem: the local authority: "), "{}", failure.text);
        assert_eq!(fs::read_to_string(folder.authority_file()).expect("still there"), "nonsense");
        fs::remove_dir_all(folder.0.parent().expect("a folder")).expect("ours");
    }
}
