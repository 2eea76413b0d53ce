//! What a conversation needs beside the loop of its agent step: one budget for everything it brings
//! about, its own choice of model, and plans as tools.

mod chat_model;
mod counted;
#[cfg(test)]
mod endless;
mod fork_engine;
mod recall;
mod spending;
mod tools;
mod unfinished;

pub use crate::journal::conversation::{
    CHAT_LABEL, SESSION_LABEL, is_conversation, is_listed, is_session, listens,
};
pub use chat_model::ChatModel;
pub use counted::{CountedModel, CountedTools};
pub use spending::{ChatBudget, Spending};
pub use tools::ConversationTools;
