//! Documents of `planwright-api` that need the engine: what they say is read from its stores.

mod answer_size;
mod markdown;
mod plan;
mod run;
mod threads;
mod token;
mod worker;

pub use answer_size::{AnswerSize, step_href};
pub use markdown::write_markdown;
pub use plan::{History, ListedRun, Reader, load_plan_details, load_plan_runs, load_run_lines};
pub use run::{StepPage, add_step_logs, read_asked_call, read_run_page, read_run_result};
pub(crate) use threads::{newest_part, thread_within};
pub use token::{new_token, token_line};
pub use worker::{
    count_workers, dead_notice_line, load_dead_notices, load_dispatch_stats, load_worker_states,
    load_workers, queue_line,
};
