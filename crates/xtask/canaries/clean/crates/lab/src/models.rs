//! The list of models.

pub mod plain;
