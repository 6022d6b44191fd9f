// Says nothing about itself.
pub struct Silent;
