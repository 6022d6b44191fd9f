//! A look at what is held, though nothing was heard of a change.
//!
//! Changes by other machines, through mappings, and of what is mounted give no event. It must never read
//! content: what is not as it was read is forgotten, and loaded when it is asked for.

use super::{Load, NO_STAMP, hash_of};
use crate::content::entry::Entry;
use crate::content::folder::Variant;
use crate::content::spare_keys::is_spare;

impl Load {
    /// Has an entry forgotten that is not what stands on the disk.
    pub(crate) fn look_at(&self, entry: &Entry) {
        if !self.is_as_read(entry) {
            self.remove(&entry.key);
        }
    }

    fn is_as_read(&self, entry: &Entry) -> bool {
        // An entry without a path, such as a version, is true for ever.
        if is_spare(&entry.key) {
            return true;
        }
        // What another path answers for is found out anew.
        if entry.stamp == NO_STAMP {
            return false;
        }
        let path = Variant::of_key(&entry.key).map_or(&*entry.key, |(folder, _)| folder);
        match self.stamp_at(path) {
            Ok(Some(stamp)) if stamp == entry.stamp => {
                let side_files = entry.content().map_or(0, |content| content.side_files);
                side_files == 0 || side_files == hash_of(&self.side_files(path, &stamp))
            }
            Ok(_) => false,
            // A disk that fails says nothing of the file.
            Err(_) => true,
        }
    }
}
