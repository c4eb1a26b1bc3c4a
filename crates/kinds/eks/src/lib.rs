//! AWS eks.
