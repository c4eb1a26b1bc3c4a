//! AWS rds.
