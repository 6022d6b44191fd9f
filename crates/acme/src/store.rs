//! The folder in which accounts, certificates and keys are kept, for one server or several.
//!
//! The names of its files, their rights (0700, 0600) and the lock are decided here. A file must never be seen
//! half written: each is written under another name and renamed.
//!
//! | file | what it holds |
//! |---|---|
//! | `lock` | held by whoever orders |
//! | `AUTHORITY/account.json` | the account: its address and its key |
//! | `records/NAME.json` | what came of the last attempt, and when the next is due |
//! | `certificates/NAME.pem` | the chain, and its key behind it |
//! | `renew/NAME` | a request by `staunch certificates renew` to renew this certificate now |

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use staunch_netio::named_file::read_text;
use staunch_tls::CertificatePair;
use zeroize::Zeroizing;

use crate::account_key::AccountKey;
use crate::fault::AcmeFault;
use crate::limits::STORED_BYTES_MAX;
use crate::record::NameRecord;

const CERTIFICATES: &str = "certificates";
const RECORDS: &str = "records";
const RENEW: &str = "renew";
const LOCK: &str = "lock";
const ACCOUNT: &str = "account.json";
const KEY_BEGINS: &str = "-----BEGIN PRIVATE KEY-----";

/// A file or folder of the store that cannot be used. Its `Display` is one sentence with its path.
#[derive(Debug)]
pub struct StoreFault {
    path: PathBuf,
    error: io::Error,
}

impl std::fmt::Display for StoreFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.error)
    }
}

impl std::error::Error for StoreFault {}

impl From<StoreFault> for AcmeFault {
    fn from(fault: StoreFault) -> Self {
        Self::Here(fault.to_string())
    }
}

/// The store. Its folder may not be there yet.
#[derive(Debug, Clone)]
pub struct Store(PathBuf);

/// The lock of the store, held for the length of an order. It is released on drop, and when the process ends.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "the lock is let go when it is dropped")] File);

/// The file of an account.
#[derive(Serialize, Deserialize)]
struct AccountText {
    /// The account's URL, once the authority has given it one.
    url: Option<String>,
    /// The account's private key (PKCS #8) in base64url.
    key: Zeroizing<String>,
}

impl Store {
    /// The store in this folder.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// The folder itself.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// The file of a certificate and its key.
    #[must_use]
    pub fn certificate_file(&self, name: &str) -> PathBuf {
        self.0.join(CERTIFICATES).join(format!("{}.pem", file_name(name)))
    }

    /// The folder of renewal requests: a file named as the certificate asks for its renewal now.
    #[must_use]
    pub fn renew_folder(&self) -> PathBuf {
        self.0.join(RENEW)
    }

    /// Makes the folders of the store, and tries whether files can be written there.
    ///
    /// # Errors
    /// A folder cannot be made or written to; the fault names it.
    pub fn prepare(&self) -> Result<(), StoreFault> {
        let below = [CERTIFICATES, RECORDS, RENEW].map(|folder| self.0.join(folder));
        for folder in [self.0.clone()].into_iter().chain(below) {
            make_folder(&folder)?;
            let probe = folder.join(format!(".probe.{}", std::process::id()));
            create(&probe)
                .and_then(|file| {
                    drop(file);
                    fs::remove_file(&probe)
                })
                .map_err(|error| StoreFault { path: folder, error })?;
        }
        Ok(())
    }

    /// Names that have a certificate in the store, in alphabetical order.
    ///
    /// # Errors
    /// The folder of certificates cannot be read.
    pub fn names(&self) -> Result<Vec<String>, StoreFault> {
        let folder = self.0.join(CERTIFICATES);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StoreFault { path: folder, error }),
        };
        let name = |entry: fs::DirEntry| {
            let file = entry.file_name().into_string().ok()?;
            file.strip_suffix(".pem").filter(|name| !name.starts_with('.')).map(str::to_owned)
        };
        let mut names: Vec<String> = entries.flatten().filter_map(name).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// The certificate of a name with its private key, and the text of its file; `None` without such a file.
    ///
    /// # Errors
    /// The file cannot be read, or holds no certificate with its key.
    pub fn pair(&self, name: &str) -> Result<Option<(CertificatePair, Vec<u8>)>, StoreFault> {
        let path = self.certificate_file(name);
        let Some(text) = read(&path)? else { return Ok(None) };
        let chain = &text.as_bytes()[..text.find(KEY_BEGINS).unwrap_or(text.len())];
        let key = &text.as_bytes()[chain.len()..];
        match CertificatePair::read(chain, key) {
            Ok(pair) => Ok(Some((pair, chain.to_vec()))),
            Err(fault) => Err(StoreFault { path, error: io::Error::other(fault.to_string()) }),
        }
    }

    /// Writes the certificate of a name and its private key.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn keep(&self, name: &str, chain_pem: &[u8], key_pem: &str) -> Result<(), StoreFault> {
        let mut text = Zeroizing::new(chain_pem.to_vec());
        if !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        text.extend_from_slice(key_pem.as_bytes());
        write_whole(&self.certificate_file(name), &text)
    }

    /// The record of a name; an empty one if the store has none.
    ///
    /// # Errors
    /// The record's file cannot be read.
    pub fn record(&self, name: &str) -> Result<NameRecord, StoreFault> {
        let path = self.record_file(name);
        let text = read(&path)?;
        // What is damaged says nothing, as if there were none.
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
    }

    /// Writes the record of a name.
    ///
    /// # Errors
    /// The record's file cannot be written.
    pub(crate) fn keep_record(&self, name: &str, record: &NameRecord) -> Result<(), StoreFault> {
        let text = serde_json::to_vec_pretty(record).unwrap_or_default();
        write_whole(&self.record_file(name), &text)
    }

    /// The account at the authority with this directory: its URL, if it has one yet, and its key pair. If the
    /// store has none, a new key pair is made and written.
    ///
    /// # Errors
    /// The account's file cannot be read or written, or its key is damaged.
    pub(crate) fn account(&self, directory: &str) -> Result<(Option<String>, AccountKey), AcmeFault> {
        let path = self.account_file(directory);
        let Some(text) = read(&path)? else {
            let key = AccountKey::create()?;
            self.keep_account(directory, None, &key)?;
            return Ok((None, key));
        };
        let blame = |why: String| AcmeFault::Here(format!("{}: {why}", path.display()));
        let account: AccountText = serde_json::from_str(&text).map_err(|error| blame(error.to_string()))?;
        let key = AccountKey::read(&account.key).map_err(|fault| blame(fault.to_string()))?;
        Ok((account.url, key))
    }

    /// Writes the account at the authority with this directory.
    ///
    /// # Errors
    /// The account's file cannot be written.
    pub(crate) fn keep_account(
        &self,
        directory: &str,
        url: Option<&str>,
        key: &AccountKey,
    ) -> Result<(), StoreFault> {
        let account = AccountText { url: url.map(str::to_owned), key: key.text() };
        let text = Zeroizing::new(serde_json::to_vec_pretty(&account).unwrap_or_default());
        let path = self.account_file(directory);
        make_folder(path.parent().unwrap_or(&self.0))?;
        write_whole(&path, &text)
    }

    /// Puts a request for the renewal of a certificate into the store, for the agent that watches it.
    ///
    /// # Errors
    /// The request's file cannot be written.
    pub fn ask_for_renewal(&self, name: &str) -> Result<(), StoreFault> {
        write_whole(&self.renew_folder().join(file_name(name)), b"")
    }

    /// Removes the request for the renewal of a name's certificate. Whether there was one.
    pub fn take_wish(&self, name: &str) -> bool {
        fs::remove_file(self.renew_folder().join(file_name(name))).is_ok()
    }

    /// Takes the lock; `None` while another process holds it.
    ///
    /// # Errors
    /// The lock's file cannot be opened.
    pub(crate) fn try_lock(&self) -> Result<Option<Lock>, StoreFault> {
        let path = self.0.join(LOCK);
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = file.map_err(|error| StoreFault { path: path.clone(), error })?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Lock(file))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(StoreFault { path, error: error.into() }),
        }
    }

    fn record_file(&self, name: &str) -> PathBuf {
        self.0.join(RECORDS).join(format!("{}.json", file_name(name)))
    }

    fn account_file(&self, directory: &str) -> PathBuf {
        self.0.join(authority(directory)).join(ACCOUNT)
    }
}

/// Name of the folder for an authority, made from the URL of its directory: letters, digits, dots and hyphens
/// of it are kept.
fn authority(directory: &str) -> String {
    let bare = directory.strip_prefix("https://").unwrap_or(directory);
    format!("at-{}", file_name(bare))
}

/// A host name or IP address as the name of a file: no character of it can lead to another folder.
fn file_name(name: &str) -> String {
    let is_plain = |one: char| one.is_ascii_alphanumeric() || matches!(one, '.' | '-');
    let text: String =
        name.chars().map(|one| if is_plain(one) { one.to_ascii_lowercase() } else { '_' }).collect();
    if text.starts_with('.') { format!("_{text}") } else { text }
}

fn make_folder(folder: &Path) -> Result<(), StoreFault> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| StoreFault { path: folder.to_owned(), error })
}

/// The text of a file; `None` if there is no such file.
fn read(path: &Path) -> Result<Option<Zeroizing<String>>, StoreFault> {
    match read_text(path, STORED_BYTES_MAX) {
        Ok(text) => Ok(Some(Zeroizing::new(text))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreFault { path: path.to_owned(), error }),
    }
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Writes a file under another name and renames it, so that readers see the old text or the new one, whole.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StoreFault> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unfinished = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = || {
        let mut file = create(&unfinished)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&unfinished, path)?;
        // The name too is to outlive a loss of power.
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    };
    written().map_err(|error| {
        // Half a file would only be in the way; that it cannot be removed changes nothing.
        let _ = fs::remove_file(&unfinished);
        StoreFault { path: path.to_owned(), error }
    })
}

#[cfg(test)]
#[path = "store/tests.rs"]
mod tests;
