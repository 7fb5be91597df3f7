//! Shapes and their areas. 图形与面积。

use std::f64::consts::PI;

/// A circle around the origin.
#[derive(
    Clone,
    Debug,
)]
pub struct Circle {
    pub radius: f64,
}

impl Circle {
    #[inline]
    #[must_use]
    pub fn area(&self) -> f64 {
        PI * self.radius * self.radius
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn area_of_nothing() {
        assert_eq!(Circle { radius: 0.0 }.area(), 0.0);
    }
}
