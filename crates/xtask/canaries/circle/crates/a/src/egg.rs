//! Comes from a chicken.

pub struct Egg(pub Option<Box<super::chicken::Chicken>>);
