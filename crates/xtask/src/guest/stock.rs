//! Modules that the kernel's own packages bring, by name, with what they need.
//!
//! All are unpacked once, when the first one is asked for, and never installed. Which needs which is asked of
//! depmod.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::debug;
use super::kernel::{self, Kernel, Series};
use crate::install::succeed;

/// The files of these modules and of what they need, in the order of loading. Packed ones are unpacked into
/// `work`.
///
/// # Errors
/// The packages cannot be had, or they have no such module.
pub(super) fn files(
    kernel: &Kernel,
    series: Series,
    names: &[String],
    work: &Path,
) -> Result<Vec<PathBuf>, String> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    if series == Series::Debug6_1 {
        return expect_built_in(&debug::tree(kernel), names).map(|()| Vec::new());
    }
    let folder = kernel.folder.join("stock");
    let tree = folder.join("lib/modules").join(&kernel.release);
    if !folder.join("complete").exists() {
        unpack(kernel, series, &folder)?;
        succeed(Command::new("depmod").arg("-b").arg(&folder).arg(&kernel.release))?;
        fs::write(folder.join("complete"), "").map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let list = tree.join("modules.dep");
    let list = fs::read_to_string(&list).map_err(|error| format!("{}: {error}", list.display()))?;
    let built_in = built_in(&tree)?;
    let mut chosen: Vec<&str> = Vec::new();
    for name in names.iter().filter(|name| !built_in.contains(&dashed(name))) {
        let paths = with_needs(&list, name).ok_or_else(|| format!("{}: no module {name}", kernel.release))?;
        for path in paths {
            if !chosen.contains(&path) {
                chosen.push(path);
            }
        }
    }
    chosen.into_iter().map(|path| plain(&tree.join(path), work)).collect()
}

/// The kernel that is built here has what its options name in its image, and nothing is loaded.
fn expect_built_in(tree: &Path, names: &[String]) -> Result<(), String> {
    let built_in = built_in(tree)?;
    match names.iter().find(|name| !built_in.contains(&dashed(name))) {
        Some(name) => Err(format!("the debug kernel has no {name} built in: kernel/debug.config")),
        None => Ok(()),
    }
}

/// Names of the modules that a kernel has in its image.
fn built_in(tree: &Path) -> Result<Vec<String>, String> {
    let list = tree.join("modules.builtin");
    let list = fs::read_to_string(&list).map_err(|error| format!("{}: {error}", list.display()))?;
    Ok(list.lines().map(name_of).collect())
}

/// Unpacks the package that has the modules: that of the image, or one of its own since Linux 7.
fn unpack(kernel: &Kernel, series: Series, folder: &Path) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{}: {error}", folder.display());
    // What an attempt left that failed.
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(said)?;
    let image = format!("linux-image-{}", kernel.release);
    let apt = series.apt(&kernel.folder)?;
    let package = apt.dependency(&image, "linux-modules-")?.unwrap_or(image);
    apt.fetch(&package, folder)?;
    let archive = kernel::found(folder, |name| name.ends_with(".deb"))?;
    succeed(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(folder))?;
    fs::remove_file(&archive).map_err(said)?;
    // In newer packages they stand below /usr, where depmod does not look.
    if !folder.join("lib").exists() {
        fs::rename(folder.join("usr/lib"), folder.join("lib")).map_err(said)?;
    }
    Ok(())
}

/// The module's path and those of what it needs, each behind what it needs itself.
///
/// A line of modules.dep is a path, a colon, and what it needs, the last one to be loaded first.
fn with_needs<'a>(list: &'a str, name: &str) -> Option<Vec<&'a str>> {
    let (path, needs) = list
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(path, _)| name_of(path) == dashed(name))?;
    let mut paths: Vec<&str> = needs.split_ascii_whitespace().collect();
    paths.insert(0, path);
    paths.reverse();
    Some(paths)
}

/// A module's name, from its path.
fn name_of(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or_default();
    dashed(file.split_once(".ko").map_or(file, |(name, _)| name))
}

/// Names are the same with `-` and with `_`.
fn dashed(name: &str) -> String {
    name.replace('_', "-")
}

/// The file without its packing.
fn plain(path: &Path, work: &Path) -> Result<PathBuf, String> {
    if path.extension().is_none_or(|end| end != "xz") {
        return Ok(path.to_owned());
    }
    let said = |error: std::io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(work).map_err(said)?;
    let to = work.join(path.file_stem().unwrap_or_default());
    let output = Command::new("xz").args(["-dc"]).arg(path).output().map_err(said)?;
    if !output.status.success() {
        return Err(format!("{}: xz: {}", path.display(), output.status));
    }
    fs::write(&to, output.stdout).map_err(said)?;
    Ok(to)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{expect_built_in, with_needs};

    #[test]
    fn what_the_debug_kernel_lacks_is_named() {
        let tree = std::env::temp_dir().join(format!("staunch-built-in-{}", std::process::id()));
        fs::create_dir_all(&tree).expect("a folder");
        fs::write(tree.join("modules.builtin"), "kernel/lib/crypto/libchacha.ko\n").expect("a file");
        assert_eq!(expect_built_in(&tree, &["libchacha".to_owned()]), Ok(()));
        let error = expect_built_in(&tree, &["nf_b".to_owned()]).expect_err("it is not there");
        assert!(error.contains("no nf_b built in"), "{error}");
        fs::remove_dir_all(&tree).expect("our folder");
    }

    #[test]
    fn what_a_module_needs_is_loaded_before_it() {
        let list = "kernel/net/a.ko:\nkernel/net/nf_b.ko.xz: kernel/net/c.ko.xz kernel/net/a.ko\n";
        assert_eq!(with_needs(list, "a"), Some(vec!["kernel/net/a.ko"]));
        let all = ["kernel/net/a.ko", "kernel/net/c.ko.xz", "kernel/net/nf_b.ko.xz"];
        assert_eq!(with_needs(list, "nf-b"), Some(all.to_vec()));
        assert_eq!(with_needs(list, "b"), None);
    }
}
