//! Bounds of what is read by name, at start and by a reload.

/// Longest file of settings: some ten thousand sites.
pub(crate) const SETTINGS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// All files together that a file of settings includes.
pub(crate) const INCLUDED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Longest file with tokens, keys of issuers, or one key with its certificate.
pub(crate) const SECRET_FILE_BYTES_MAX: usize = 1024 * 1024;
/// Longest file of certificates or of lists of revoked ones: lists of large authorities have some megabytes.
pub(crate) const CERTIFICATES_BYTES_MAX: usize = 64 * 1024 * 1024;
