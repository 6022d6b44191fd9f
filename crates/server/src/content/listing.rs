//! The listing of a folder: its entries as an HTML page or as JSON.
//!
//! Owns the order, the escaping and the look of a listing. Never decides who may see a folder, never caches,
//! never looks beneath a folder that lies out of the root. Reading takes system calls and must stay off the
//! workers; the rest is pure.
//!
//! Order of calls: [`read_folder`], then [`html()`] or [`json()`], both of which sort by what [`parse_order`]
//! found in the query.

mod date;
mod entry;
mod escape;
mod html;
mod json;
mod read;

pub use entry::{Entry, Kind, Order, parse_order};
pub use html::html;
pub use json::json;
pub use read::read_folder;

#[cfg(test)]
mod tests;
