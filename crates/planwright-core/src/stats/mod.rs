//! What happened over all plans and runs, as figures. Folded entry by entry: the cost is linear in
//! the entries, and the memory does not grow with them.

mod durations;
mod figures;
mod models;
mod reviews;
mod runs;

pub use durations::Durations;
pub use figures::{Statistics, PredictionStats, ReviewStats, ToolStats};
pub use models::{ModelCosts, ModelStats};
pub use reviews::ReviewTally;
pub use runs::RunTally;
