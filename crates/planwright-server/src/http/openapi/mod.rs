//! The OpenAPI document: generated from the routes, completed with the schemas of the core.

mod document;
mod schemas;

pub(crate) use document::Document;
pub use document::document;
