//! The script that answers a request.

/// Which script answers a request.
#[derive(Debug, Clone, Copy)]
pub struct Script<'a> {
    /// The folder of the site.
    pub root: &'a [u8],
    /// The script's file.
    pub file: &'a [u8],
    /// The script's path in the site, decoded.
    pub name: &'a [u8],
    /// What stands behind that in the path, decoded.
    pub path_info: &'a [u8],
    /// The port that the request came to.
    pub port: u16,
}
