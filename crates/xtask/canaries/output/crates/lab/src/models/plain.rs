//! A model may.

pub fn say() {
    eprintln!("one");
}
