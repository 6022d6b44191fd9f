//! What the gate says of itself, to be shown or kept.
//!
//! It owns the form of that. It must never change anything.
