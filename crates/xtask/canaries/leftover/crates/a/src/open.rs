//! Work that is not done.

// TODO: later.
pub fn later() {
    let name = "file-XXXXXX";
    dbg!(name);
    todo!()
}
