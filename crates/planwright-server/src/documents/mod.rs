//! Documents of `planwright-api` that need the engine: what they say is read from its stores.

mod answer_size;
mod plan;
mod run;
mod token;

pub use answer_size::{AnswerSize, step_href};
pub use plan::{load_plan_details, load_run_lines};
pub use run::{StepPage, read_asked_call, read_run_page, read_run_result};
pub use token::{new_token, token_line};
