//! `staunch dostp keys`: changes the secrets of the kernel's module `dostp`, in the network namespace that
//! the command runs in, and shows which slots hold one.
//!
//! A secret must never be printed.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use clap::builder::RangedI64ValueParser;
use staunch_dostp::{SECRET_BYTES, read_secret};
use staunch_program::{CODE_CONFIGURATION, CODE_NO_RIGHT, Failure, output};

use super::link::Protection;

/// The parser of a slot's number.
fn slot() -> RangedI64ValueParser<u8> {
    clap::value_parser!(u8).range(0..=1)
}

/// The module's file that secrets are written to, and that tells which slots hold one.
const FILE: &str = "/proc/net/dostp/keys";

/// Exit code: the module is not loaded.
const CODE_NOBODY: u8 = 3;

/// The flags of `staunch dostp keys`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// File of mode 0600 with a secret of the cluster, 64 hexadecimal digits
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,

    /// The slot that the file's secret is put into
    #[arg(long, value_name = "0|1", default_value = "0", requires = "key_file", value_parser = slot())]
    slot: u8,

    /// Take the secret of this slot away
    #[arg(long, value_name = "0|1", value_parser = slot())]
    remove: Option<u8>,

    /// Send by this slot; both are accepted
    #[arg(long, value_name = "0|1", value_parser = slot())]
    send_by: Option<u8>,

    /// Whether messages are only protected from change and replay, or encrypted too; the node begins anew
    #[arg(long, value_name = "mac|aead", value_enum, hide_possible_values = true)]
    mode: Option<Protection>,

    /// Go without keys from now on; the node begins anew
    #[arg(long, conflicts_with_all = ["key_file", "remove", "send_by", "mode"])]
    off: bool,
}

/// Changes what is asked for, all at once, and shows which slots hold a secret.
///
/// # Errors
/// The file holds no secret, the module is not loaded or refuses, or a right is missing.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let words = arguments.words().map_err(|error| told(&error))?;
    if !words.is_empty() {
        change(Path::new(FILE), &words).map_err(|error| failure(&error))?;
    }
    let state = fs::read_to_string(FILE).map_err(|error| failure(&error))?;
    output::print(&state);
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    /// What is to be written to the module's file; empty if nothing is to be changed.
    fn words(&self) -> io::Result<String> {
        if self.off {
            return Ok("off".to_owned());
        }
        let mut words = String::with_capacity(WORDS_BYTES);
        if let Some(file) = &self.key_file {
            words += &format!("slot {} ", self.slot);
            for byte in read_secret(file)? {
                words.extend([byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)])));
            }
            words.push('\n');
        }
        if let Some(slot) = self.remove {
            words += &format!("slot {slot} none\n");
        }
        if let Some(slot) = self.send_by {
            words += &format!("send {slot}\n");
        }
        if let Some(mode) = self.mode {
            words += &format!("mode {}\n", mode.name());
        }
        Ok(words)
    }
}

/// The digits that a secret is written in.
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Room for all words: a string that grows would leave a copy of the secret in freed memory.
const WORDS_BYTES: usize = 2 * SECRET_BYTES + 64;

/// Writes all words in one write, which the module takes as a whole or refuses.
fn change(path: &Path, words: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(words.as_bytes())
}

/// A key file that cannot be used.
fn told(error: &io::Error) -> Failure {
    Failure { code: CODE_CONFIGURATION, text: error.to_string() }
}

/// The module's file cannot be read or written.
fn failure(error: &io::Error) -> Failure {
    let (code, text) = match error.kind() {
        ErrorKind::NotFound => (CODE_NOBODY, "the module dostp is not loaded: modprobe dostp".to_owned()),
        ErrorKind::PermissionDenied => {
            (CODE_NO_RIGHT, format!("{FILE}: {error}: it needs root's files and CAP_NET_ADMIN"))
        }
        ErrorKind::InvalidInput => {
            (CODE_CONFIGURATION, format!("{FILE}: {error}: the slot that is sent by would hold no secret"))
        }
        _ => (1, format!("{FILE}: {error}")),
    };
    Failure { code, text }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn words(line: &str) -> io::Result<String> {
        Command::try_parse_from(line.split(' ')).expect("a command").arguments.words()
    }

    #[test]
    fn flags_are_words_for_the_module() {
        assert_eq!(words("keys").unwrap(), "");
        assert_eq!(words("keys --off").unwrap(), "off");
        assert_eq!(words("keys --send-by 1 --remove 0").unwrap(), "slot 0 none\nsend 1\n");
        assert_eq!(words("keys --mode aead").unwrap(), "mode aead\n");
        assert!(Command::try_parse_from(["keys", "--slot", "1"]).is_err(), "a slot without a file");
        assert!(Command::try_parse_from(["keys", "--off", "--send-by", "1"]).is_err());
    }

    #[test]
    fn a_secret_is_read_from_a_file_that_others_cannot_read() {
        let file = std::env::temp_dir().join(format!("staunch-keys-{}", std::process::id()));
        let secret = "0123456789abcdef".repeat(4);
        fs::write(&file, format!("{secret}\n")).unwrap();
        let line = format!("keys --slot 1 --key-file {}", file.display());
        let mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        mode(0o640);
        assert!(words(&line).unwrap_err().to_string().contains("chmod 600"));
        mode(0o600);
        assert_eq!(words(&line).unwrap(), format!("slot 1 {secret}\n"));
        fs::remove_file(&file).unwrap();
    }
}
