//! What a conversation needs beside the loop of its agent step: one budget for everything it brings about, its own choice
//! of model, and plans as tools.

mod beside;
mod counted;
mod spending;
mod tools;

pub use counted::{ChatModel, CountedModel, CountedTools};
pub use spending::{Budget, Spending};
pub use tools::ConversationTools;
