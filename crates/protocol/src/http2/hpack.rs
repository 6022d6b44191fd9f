//! HPACK: fields in few bytes (RFC 7541).
//!
//! It owns both directions. Reading keeps a dynamic table per connection, whose fields are those of the
//! worker; writing keeps nothing. It must never know what a request is.

mod decoder;
mod encoder;
mod fault;
mod huffman;
mod integer;
mod interned;
mod static_table;
mod table;

pub(super) use decoder::{FieldReader, NamedField};
pub use encoder::PreparedFields;
pub(super) use encoder::{push_field, push_fields};
pub(super) use fault::HpackFault;
pub(super) use table::DynamicTable;
