//! The scope of an approval, as one data structure that every face shows.
//!
//! A [`Briefing`] is made from the plan as it would run, the tools as they are now and the policy:
//! what is shown is what will be sent. [`render_briefing`] turns it into lines of text for terminals, chats
//! and protocols; web pages and programs use the data itself.
//!
//! Titles, goals and values are the words of the plan's author, who may be the one to be wary of.
//! They are quoted or stand behind a bar, what cannot be seen in them is spelt out, and the
//! sentences about effects never use them as a source.

mod build;
mod call;
mod effect;
mod file_change;
mod model;
mod render;
mod risk;
mod value_lines;
mod wrap;

pub use build::{BriefingFacts, PlanAuthor, brief_call, brief_plan, path_written_by, wanted_files};
pub use effect::{Effect, EffectKind};
pub use file_change::{CurrentContent, CurrentFile, DiffLine, DiffSign, FileChange};
pub use model::{
    ActionBriefing, Briefing, CallBriefing, LoopBriefing, ScopedTool, StepBriefing, StepCounts,
};
pub use render::{RenderOptions, render_briefing, render_call, render_steps};
pub use risk::Risk;
pub use wrap::{BriefingLine, Tone, wrap_text};
