//! What stands in the package of the kernel's modules: sources, how DKMS builds them, a page of the manual.

use std::fs;
use std::path::Path;

use super::control::VERSION;
use super::stage::{Stage, files};

/// Folders of `kernel/` that are built where the package is installed.
const FOLDERS: [&str; 4] = ["khttpd", "kecho", "dostp", "include"];
/// The manual page, which does not stand among the sources once it is installed.
const PAGE: &str = "khttpd.4";

/// Everything the package holds.
pub(super) fn fill(stage: &Stage, root: &Path) -> Result<(), String> {
    let sources = format!("usr/src/staunch-{VERSION}");
    for folder in FOLDERS {
        for path in files(&root.join("kernel").join(folder))? {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name != PAGE {
                stage.copy(&path, &format!("{sources}/{folder}/{name}"), 0o644)?;
            }
        }
    }
    stage.copy(&root.join("kernel/Makefile"), &format!("{sources}/Makefile"), 0o644)?;
    let packaging = root.join("packaging/dkms");
    filled(stage, &packaging.join("dkms.conf"), &format!("{sources}/dkms.conf"), 0o644)?;
    for script in ["postinst", "prerm"] {
        filled(stage, &packaging.join(script), &format!("DEBIAN/{script}"), 0o755)?;
    }
    let documents = "usr/share/doc/staunch-dkms";
    stage.copy(&packaging.join("copyright"), &format!("{documents}/copyright"), 0o644)?;
    stage.copy_compressed(&packaging.join("changelog"), &format!("{documents}/changelog"))?;
    stage.copy_compressed(&root.join("docs/khttpd.md"), &format!("{documents}/khttpd.md"))?;
    let page = format!("usr/share/man/man4/{PAGE}");
    stage.copy_compressed(&root.join("kernel/khttpd").join(PAGE), &page)
}

/// Copies a file with the version in it.
fn filled(stage: &Stage, from: &Path, to: &str, mode: u32) -> Result<(), String> {
    let text = fs::read_to_string(from).map_err(|error| format!("{}: {error}", from.display()))?;
    stage.text(to, mode, &text.replace("@VERSION@", VERSION))
}
