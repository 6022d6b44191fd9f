//! Who tells figures.
//!
//! It owns nothing. It must never be built.

/// The same as a number.
pub struct Figure(pub u64);

/// Gives the figure.
/// It is never negative.
pub fn figure() -> Figure {
    // One is enough.
    let one = 1;
    // The figure is one.
    // Nobody changes it.
    /* It is told. */
    Figure(one) // It goes out.
}

/// See the module's text.
pub struct Told {
    /// Whoever was told.
    pub name: &'static str,
    /// Italic begins like a word of the list, and is none.
    pub shape: &'static str,
}
