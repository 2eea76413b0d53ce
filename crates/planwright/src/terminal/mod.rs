//! Output and prompts on the terminal.

pub(crate) mod approval_prompt;
pub(crate) mod approval_screen;
pub(crate) mod briefing_screen;
pub(crate) mod counts;
pub(crate) mod dag;
pub(crate) mod diff;
pub(crate) mod editor;
pub(crate) mod late_bound;
pub(crate) mod next_step;
pub(crate) mod no_model;
pub(crate) mod pending_calls;
pub(crate) mod plan_status;
pub(crate) mod planner_progress;
pub(crate) mod printer;
pub(crate) mod progress;
pub(crate) mod prompts;
pub(crate) mod quiet_panics;
pub(crate) mod requested_run;
pub(crate) mod spinner;
pub(crate) mod trust_prompt;
