//! Content: how files become prepared responses, where these are held, and how they stay true.

pub(crate) mod branches;
pub(crate) mod encode;
pub(crate) mod encoder;
pub(crate) mod entry;
pub(crate) mod fields;
pub(crate) mod folder;
pub(crate) mod freshness;
pub mod listing;
pub(crate) mod load;
pub(crate) mod mime;
pub(crate) mod multipart;
pub(crate) mod negotiate;
pub(crate) mod path;
pub(crate) mod prepare;
pub mod range;
pub(crate) mod ring;
pub(crate) mod signal;
pub(crate) mod source;
pub(crate) mod spare_keys;
pub(crate) mod store;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod validate;
pub(crate) mod versions;
pub(crate) mod walk;
pub(crate) mod watch;
