//! The file with the secret of a cluster: reads it, and refuses what is no secret.
//!
//! A file that others than its owner may read must never be accepted.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use staunch_netio::named_file::read_text;

use super::SECRET_BYTES;

/// Longest file with a secret: its digits, with room for spaces.
const FILE_BYTES_MAX: usize = 4096;

/// Reads a secret, 64 hexadecimal digits, from a file that nobody else may read.
///
/// # Errors
/// The file cannot be read, is open to others, or holds no secret; the message names it.
pub fn read_secret(path: &Path) -> io::Result<[u8; SECRET_BYTES]> {
    let wrong =
        |text: String| io::Error::new(ErrorKind::InvalidInput, format!("key {}: {text}", path.display()));
    let about = |error: io::Error| wrong(error.to_string());
    let mode = fs::metadata(path).map_err(about)?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(wrong(format!("others may read it (mode {:o}); chmod 600", mode & 0o777)));
    }
    let text = read_text(path, FILE_BYTES_MAX).map_err(about)?;
    let digits = text.trim();
    let is_right = digits.len() == 2 * SECRET_BYTES && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let mut secret = [0; SECRET_BYTES];
    for (place, byte) in secret.iter_mut().enumerate() {
        let pair = digits.get(2 * place..2 * place + 2).filter(|_| is_right);
        let number = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        *byte = number.ok_or_else(|| wrong("it is no secret: write 64 hexadecimal digits".to_owned()))?;
    }
    Ok(secret)
}
