//! One request and its answer.

pub(crate) mod rendered;
