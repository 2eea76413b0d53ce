//! The OpenAPI document: generated from the routes, completed with the schemas of the core.

mod document;
mod events;
mod patterns;
mod problem_codes;
mod schemas;
mod shape;

pub use document::document;
pub(crate) use document::{Document, QueryParameter};
pub(crate) use problem_codes::ProblemCodeShape;
