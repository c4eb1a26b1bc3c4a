//! Cloud Control.
