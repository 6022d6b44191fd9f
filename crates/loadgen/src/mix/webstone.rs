//! The classes of WebStone 2.5: five files, from 500 bytes, asked for often, to 5 MB, asked for rarely.
//!
//! It owns their sizes and weights, and making the files. It must never write outside the folder it is given.

use std::fs;
use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::plan::{Choice, MixEntry, MixPlan};
use crate::Fault;
use crate::check::BodyCheck;
use crate::url::Url;

/// A file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// Its name in the folder.
    pub name: &'static str,
    /// So many of 1000 requests ask for it.
    pub per_mille: u32,
    /// Its size in bytes; as WebStone's own generator of files has it, a kilobyte is 1024 bytes.
    pub length_bytes: usize,
}

/// The standard list.
pub const CLASSES: [Class; 5] = [
    Class { name: "file500.html", per_mille: 350, length_bytes: 500 },
    Class { name: "file5k.html", per_mille: 500, length_bytes: 5 << 10 },
    Class { name: "file50k.html", per_mille: 140, length_bytes: 50 << 10 },
    Class { name: "file500k.html", per_mille: 9, length_bytes: 500 << 10 },
    Class { name: "file5m.html", per_mille: 1, length_bytes: 5 << 20 },
];

impl MixPlan {
    /// The standard list on a server that has the files beneath the path of `url`. A body is right when it is
    /// as long as its file.
    pub fn webstone(url: &Url) -> Self {
        let folder = url.target.split('?').next().unwrap_or_default().trim_end_matches('/');
        let entry = |class: &Class| {
            let mut entry = MixEntry::get(format!("{folder}/{}", class.name));
            entry.weight = class.per_mille.into();
            entry.check.body = BodyCheck::Length(class.length_bytes as u64);
            entry
        };
        Self::of(url, CLASSES.iter().map(entry).collect(), Choice::Weighted)
    }
}

/// Writes the files into a folder, which is made if it is not there. The same bytes each time.
///
/// # Errors
/// The folder or a file cannot be written.
pub fn write_files(folder: &Path) -> Result<(), Fault> {
    let failed = |path: &Path, error| Fault::new(format!("{}: {error}", path.display()));
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    for class in CLASSES {
        let path = folder.join(class.name);
        fs::write(&path, content(class)).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

/// Random letters in lines, so that the size on the wire does not hang on how well they are compressed.
fn content(class: Class) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut random = Xoshiro256PlusPlus::seed_from_u64(class.length_bytes as u64);
    let letter =
        |at: usize| if at % 80 == 79 { b'\n' } else { LETTERS[random.random_range(..LETTERS.len())] };
    (0..class.length_bytes).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weights_are_the_standard_ones() {
        assert_eq!(CLASSES.iter().map(|class| class.per_mille).sum::<u32>(), 1000);
        let mean =
            CLASSES.iter().map(|class| u64::from(class.per_mille) * class.length_bytes as u64).sum::<u64>();
        assert_eq!(mean / 1000, 19_753);
    }

    #[test]
    fn files_are_as_long_as_the_mix_expects() {
        let folder = std::env::temp_dir().join(format!("staunch-webstone-{}", std::process::id()));
        write_files(&folder.join("sub")).expect("the folder can be written");
        let url = "http://h:8080/sub/?x".parse().expect("a URL");
        let plan = MixPlan::webstone(&url);
        assert_eq!(plan.authority, "h:8080");
        for entry in &plan.entries {
            let path = folder.join(entry.request.target.trim_start_matches('/'));
            let bytes = fs::read(&path).expect("the file was written");
            assert_eq!(entry.check.body, BodyCheck::Length(bytes.len() as u64), "{}", path.display());
            assert!(bytes.iter().all(|byte| byte.is_ascii_graphic() || *byte == b'\n'));
        }
        let fault = write_files(&folder.join("sub/file5k.html")).expect_err("a file is no folder");
        assert!(fault.to_string().contains("sub/file5k.html: "), "{fault}");
        fs::remove_dir_all(&folder).expect("the folder can be removed");
    }
}
