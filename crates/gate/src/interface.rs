//! Network interfaces by name.
//!
//! It owns how one is found, and what is said when it is not there. It must never change one.
