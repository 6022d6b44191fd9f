//! The part of a handler that an exchange belongs to.

/// The part of a handler that an exchange belongs to. The handler says so when it begins the exchange
/// ([`crate::Answered::owned_by`]), or later to hand it on, and gives the number its meaning; every later
/// event of the exchange brings the number back. 0 where the handler has said nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Owner(pub u16);
