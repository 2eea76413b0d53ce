//! Adapters that keep everything in memory: for tests, simulations and the demo.
//!
//! They obey the same laws as the durable ones (see the conformance suite), except that nothing
//! survives the process.

mod answers;
mod artifacts;
mod clock;
mod executor;
mod function_tools;
mod ids;
mod leftovers;
mod model;
mod outbox;
mod passes;
mod passkeys;
mod secrets;
mod service_notes;
mod step_logs;
mod store;
mod store_ports;
mod surroundings;
mod tokens;
mod transaction;

pub use artifacts::MemoryArtifacts;
pub use clock::{ManualClock, SystemClock};
pub use executor::NoExecutors;
pub use function_tools::FunctionTools;
pub use ids::{RandomIds, SequentialIds};
pub use leftovers::NoLeftovers;
pub use model::{NoModel, ScriptedModel};
pub use outbox::MemoryOutbox;
pub use passes::MemoryPasses;
pub use passkeys::MemoryPasskeys;
pub use secrets::MemorySecrets;
pub use service_notes::MemoryNotes;
pub use step_logs::NoStepLogs;
pub use store::MemoryStore;
pub use surroundings::NoSurroundings;
pub use tokens::MemoryTokens;
