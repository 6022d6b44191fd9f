//! The settings of a server: what is asked of the system to read them, and what a test of them says.
//!
//! The meaning of a key stands in `staunch-config`. This module brings the sources together and looks at the
//! files and folders that they name.

mod exposure;
mod includes;
mod loader;
pub(crate) mod old_hashes;
mod places;
mod test;

pub use loader::{Loader, of_faults, of_site_error};
pub use test::test;
