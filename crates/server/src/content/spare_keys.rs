//! Keys of the store that are no paths: of versions of content, and of the differences between them.
//!
//! Every path begins with a slash, these with NUL. What stands under them is spare: it gives way before all
//! else.

use staunch_dictionary::Hash;

/// Whether a key of the store is one of these, which are no paths.
pub(crate) fn is_spare(key: &[u8]) -> bool {
    key.first() == Some(&0)
}

/// The key of a version.
pub(crate) fn version_key(family: &[u8], hash: &Hash) -> Vec<u8> {
    [&b"\0v"[..], hash.as_bytes(), family].concat()
}

/// Writes the key of the difference between two versions.
pub(crate) fn write_difference_key(out: &mut Vec<u8>, path: &[u8], dictionary: &Hash, body: &Hash) {
    out.clear();
    for piece in [&b"\0d"[..], dictionary.as_bytes(), body.as_bytes(), path] {
        out.extend_from_slice(piece);
    }
}
