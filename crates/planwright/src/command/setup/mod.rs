//! Commands about tools, servers, models, secrets, policy and the installation itself.

pub(crate) mod completion;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod executors;
pub(crate) mod models;
pub(crate) mod policy;
pub(crate) mod schema;
pub(crate) mod secrets;
pub(crate) mod servers;
pub(crate) mod tools;
pub(crate) mod trust;
