//! Passing on a name is no circle; it must never be taken for one.
#![forbid(unsafe_code)]

mod chicken;
mod egg;

pub use chicken::Chicken;
pub use egg::Egg;
