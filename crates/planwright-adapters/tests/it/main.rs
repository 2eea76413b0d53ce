//! Tests of the adapters against the real outside.

mod laws;
