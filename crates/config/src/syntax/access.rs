//! Who may not have something.
//!
//! It must never judge an address: it says which networks are meant.

use crate::node::{Node, ValueKind};
use crate::syntax::choice::OnOff;
use crate::syntax::text::{AddressBlock, Block};
use crate::syntax::{Complaint, Many, Scalar, Syntax};

/// Who is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denied {
    /// Nobody.
    Nobody,
    /// Everybody.
    Everybody,
    /// The clients of these networks.
    Networks(Vec<AddressBlock>),
}

/// `on`, `off` (in a file also `true` and `false`), or networks.
#[derive(Debug)]
pub struct Denial;

impl Syntax for Denial {
    type Value = Denied;

    fn word() -> String {
        format!("{}|{}", OnOff::WORD, Many::<Block>::word())
    }

    fn read(node: &Node, complaints: &mut Vec<Complaint>) -> Option<Denied> {
        let switch = match &node.kind {
            ValueKind::Switch(switch) => Some(*switch),
            ValueKind::Text(text) => OnOff::parse(text).ok(),
            _ => None,
        };
        match switch {
            Some(true) => Some(Denied::Everybody),
            Some(false) => Some(Denied::Nobody),
            None => Many::<Block>::read(node, complaints).map(Denied::Networks),
        }
    }

    fn write(denied: &Denied) -> Node {
        match denied {
            Denied::Nobody => <OnOff as Scalar>::write(&false),
            Denied::Everybody => <OnOff as Scalar>::write(&true),
            Denied::Networks(blocks) => <Many<Block> as Syntax>::write(blocks),
        }
    }
}
