//! Comes from an egg.

use crate::Egg;

pub struct Chicken(pub Option<Box<Egg>>);
