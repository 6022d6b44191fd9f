//! Knows no bird, but its tests do.

/// Holds a bird.
pub struct Nest;

#[cfg(test)]
mod tests {
    use crate::Bird;

    #[test]
    fn a_bird_sits() {
        let _ = Bird(super::Nest);
    }
}
