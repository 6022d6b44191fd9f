//! A kernel as QEMU boots it at once: its program, taken out of the packed image.
//!
//! A packed image unpacks itself at each boot, which costs an emulated processor more seconds than all else
//! of a boot. The program is unpacked here once. QEMU enters it where a note of its says (PVH); a kernel
//! without that note is booted packed.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

/// Where the boot protocol's header says how many sectors of 512 bytes follow the first one before the part
/// that unpacks, and at which offset in that part the packed program stands, and its length.
/// (Linux, `Documentation/arch/x86/boot.rst`: `setup_sects`, `payload_offset`, `payload_length`.)
const SECTORS_AT: usize = 0x1f1;
const OFFSET_AT: usize = 0x248;
const LENGTH_AT: usize = 0x24c;
/// The packed program ends in its unpacked length.
const TRAILER: usize = 4;
/// How a packed program begins, and what unpacks it.
const PACKINGS: [(&[u8], &str); 3] =
    [(b"\xfd7zXZ\0", "xz"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\x1f\x8b", "gzip")];
/// The note that says where QEMU enters: of the owner `Xen`, of type 18 (`XEN_ELFNOTE_PHYS32_ENTRY`).
const PVH_NOTE: [u8; 8] = [18, 0, 0, 0, b'X', b'e', b'n', 0];

/// The file that QEMU boots for a packed image: the program beside it, unpacked if it is not there, or the
/// image itself if its program cannot be entered by QEMU.
///
/// # Errors
/// The image is none, its packing is unknown, or what unpacks it fails.
pub(super) fn bootable(image: &Path) -> Result<PathBuf, String> {
    let program = image.with_file_name("vmlinux");
    if program.exists() {
        return Ok(program);
    }
    let said = |error: std::io::Error| format!("{}: {error}", image.display());
    let bytes = fs::read(image).map_err(said)?;
    let packed = packed(&bytes).ok_or_else(|| format!("{}: no packed kernel", image.display()))?;
    let (_, tool) = PACKINGS
        .iter()
        .find(|(start, _)| packed.starts_with(start))
        .ok_or_else(|| format!("{}: packed by neither xz, zstd nor gzip", image.display()))?;
    let unpacked = unpack(tool, packed)?;
    if !unpacked.windows(PVH_NOTE.len()).any(|window| window == PVH_NOTE) {
        return Ok(image.to_owned());
    }
    // Renamed when it is whole: an end in the middle leaves nothing to be booted.
    let unfinished = program.with_extension("unfinished");
    fs::write(&unfinished, unpacked).and_then(|()| fs::rename(&unfinished, &program)).map_err(said)?;
    Ok(program)
}

/// The packed program in an image.
fn packed(image: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?) as usize);
    let sectors = usize::from(*image.get(SECTORS_AT)?);
    let start = (sectors + 1) * 512 + word(OFFSET_AT)?;
    image.get(start..start + word(LENGTH_AT)?.checked_sub(TRAILER)?)
}

/// Packed bytes, as a tool unpacks them.
fn unpack(tool: &str, packed: &[u8]) -> Result<Vec<u8>, String> {
    let said = |error: std::io::Error| format!("{tool}: {error}");
    let mut command = Command::new(tool);
    let mut child = command.arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(said)?;
    let mut input = child.stdin.take().ok_or("no input of the tool")?;
    let output = thread::scope(|scope| {
        // A tool that ends early says why by its status.
        scope.spawn(move || input.write_all(packed));
        child.wait_with_output()
    })
    .map_err(said)?;
    if output.status.success() { Ok(output.stdout) } else { Err(format!("{tool}: {}", output.status)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image with two sectors before the part that unpacks, and `packed` at offset 16 of it.
    fn image(packed: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 3 * 512 + 16];
        image[SECTORS_AT] = 2;
        image[OFFSET_AT..OFFSET_AT + 4].copy_from_slice(&16_u32.to_le_bytes());
        let length = u32::try_from(packed.len() + TRAILER).expect("short");
        image[LENGTH_AT..LENGTH_AT + 4].copy_from_slice(&length.to_le_bytes());
        image.extend_from_slice(packed);
        image.extend_from_slice(&[9; TRAILER]);
        image
    }

    #[test]
    fn the_packed_program_is_found() {
        assert_eq!(packed(&image(b"program")), Some(&b"program"[..]));
        let whole = image(b"program");
        assert_eq!(packed(&whole[..whole.len() - TRAILER - 1]), None);
        assert_eq!(packed(b"no kernel"), None);
    }

    #[test]
    fn a_program_is_unpacked_once_if_it_can_be_entered() {
        let folder = std::env::temp_dir().join(format!("staunch-unpacked-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let gzip = |bytes: &[u8]| {
            let plain = folder.join("plain");
            fs::write(&plain, bytes).expect("a file");
            Command::new("gzip").args(["-c"]).arg(&plain).output().expect("gzip").stdout
        };
        let path = folder.join("vmlinuz");
        fs::write(&path, image(&gzip(b"cannot be entered"))).expect("a file");
        assert_eq!(bootable(&path), Ok(path.clone()));
        fs::write(&path, image(b"unknown packing")).expect("a file");
        assert!(bootable(&path).expect_err("unknown").contains("neither"));
        let program = [&b"program "[..], &PVH_NOTE].concat();
        fs::write(&path, image(&gzip(&program))).expect("a file");
        assert_eq!(bootable(&path), Ok(folder.join("vmlinux")));
        assert_eq!(fs::read(folder.join("vmlinux")).expect("unpacked"), program);
        fs::remove_dir_all(&folder).expect("removed");
    }
}
