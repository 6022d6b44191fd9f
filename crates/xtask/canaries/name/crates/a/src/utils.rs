//! A drawer.

mod helpers {}
mod manager_of_nothing {}
