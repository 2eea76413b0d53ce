//! Statistics over all plans and runs. Folded entry by entry: the cost is linear in the entries,
//! and the memory does not grow with them.

mod durations;

mod models;
mod reviews;
mod runs;
mod statistics;
mod timeline;

pub use durations::Durations;
pub use models::{ModelCosts, ModelStats};
pub use reviews::ReviewTally;
pub use runs::RunTally;
pub use statistics::{PredictionStats, ReviewStats, Statistics, ToolStats};
pub use timeline::{Day, RunSeries, Timeline};
