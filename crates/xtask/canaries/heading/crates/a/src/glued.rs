//! Text that was glued to headings.
//!
//! # What a caller does There is one value for each worker, and it is asked
//! once.
//!
//! # What stands here
//! A title with text below it. It must never be found.

/// Gives a number.
///
/// # Errors When there is none.
///
/// ```
/// # use a_crate_with_a_long_name::a_module_with_a_long_name::number_that_is_given;
/// # Errors::of(number_that_is_given());
/// ```
///
/// # Panics
/// Never.
pub fn number() -> Result<u64, ()> {
    Ok(1)
}
