//! Secrets that pass from one process to the next: in memory that has no name and that nobody can change any
//! more (memfd_create(2), F_SEAL_WRITE).
//!
//! It must never write anything to a disk, nor believe in a descriptor that is not of such memory.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};
use rustix::io::Errno;
use zeroize::Zeroizing;

/// Bytes that are read at most: what is left here is much shorter.
const BYTES_MAX: u64 = 4_096;
const SEALS: SealFlags =
    SealFlags::SEAL.union(SealFlags::SHRINK).union(SealFlags::GROW).union(SealFlags::WRITE);

/// Memory with these bytes, which pass on as long as a descriptor of it is open.
///
/// # Errors
/// EMFILE, ENOMEM.
pub(super) fn write(bytes: &[u8]) -> io::Result<OwnedFd> {
    let make = |more| memfd_create(c"secrets", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | more);
    // Linux 6.3 wants to be told that nobody will execute it; before, the flag is unknown.
    let memory = match make(MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => make(MemfdFlags::empty()),
        made => made,
    };
    let mut file = File::from(memory?);
    file.write_all(bytes)?;
    fcntl_add_seals(&file, SEALS)?;
    Ok(file.into())
}

/// What [`write()`] has written.
///
/// # Errors
/// The descriptor is one of something else.
pub(super) fn read(memory: OwnedFd) -> io::Result<Zeroizing<Vec<u8>>> {
    let file = File::from(memory);
    let length = file.metadata()?.len();
    if !fcntl_get_seals(&file)?.contains(SEALS) || length > BYTES_MAX {
        return Err(Errno::INVAL.into());
    }
    let mut bytes = Zeroizing::new(vec![0; usize::try_from(length).map_err(io::Error::other)?]);
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_cannot_be_changed() {
        let memory = write(b"secret").expect("memory");
        let mut same = File::from(memory.try_clone().expect("a descriptor"));
        assert!(same.write_all(b"x").is_err() && same.set_len(0).is_err());
        assert_eq!(&**read(memory).expect("sealed memory"), b"secret");
    }

    #[test]
    fn memory_without_seals_long_memory_and_devices_are_refused() {
        let open = memfd_create(c"open", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).expect("memory");
        assert!(read(open).is_err());
        assert!(read(write(&[0; 4_097]).expect("memory")).is_err());
        assert!(read(File::open("/dev/null").expect("a device").into()).is_err());
    }
}
