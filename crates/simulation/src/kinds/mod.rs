//! The kinds of the model: one for each way in which AWS behaves.

mod kind;
mod shapes;

pub use kind::all;
pub use shapes::{DEFAULT_MODE, Pace, SHAPES, Shape, shape_of};
