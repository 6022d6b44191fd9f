//! Tests that cannot run here.
//!
//! It must never let a test be left out where everything is meant to be tested (`CI=true`).

/// Says why a test, or a part of it, is left out.
///
/// # Panics
/// When `CI` is true.
#[track_caller]
pub fn skip(why: &str) {
    let continuous = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(!continuous, "cannot be tested: {why}");
    println!("skipped: {why}");
}
