//! Tools of MCP servers: other processes and other machines, of any vendor and of both eras of the
//! protocol.
//!
//! [`McpServers`] holds one connection per configured server, or one per run for those that plans do
//! not share, and is a set of tools itself;
//! [`AllTools`] joins it with the tools of this process. Everything a server says is data: nothing
//! of it is obeyed, and all of it is bounded.

mod all_tools;
mod answer;
mod call;
mod child;
mod client;
mod connection;
mod credentials;
mod era_memory;
mod exchange;
pub mod fuzzing;
mod hint_memory;
mod http;
mod lines;
mod listing;
mod message;
mod message_filter;
mod oauth;
mod offers;
mod options;
mod outline;
mod own_connections;
mod questions;
mod report;
mod resources;
mod seen_shapes;
mod server;
mod servers;
mod sign_in_question;
pub use sign_in_question::takes_sign_in;
mod spec;
mod sse;
mod stderr_log;
mod tasks;
mod tool_memory;
mod wire;

pub use all_tools::AllTools;
pub use hint_memory::hint_file;
pub use oauth::{
    KnownAs, OAuthSignIn, OAuthSignInError, OAuthTokens, ServerAccount, ServiceServer,
    ServiceSignIns, SignInTokens,
};
pub use options::{McpOptions, PassedRequests};
pub use report::{Connected, Era, RefusedTool, ServerState, ServerStatus};
pub use seen_shapes::SeenShapes;
pub use servers::McpServers;
pub use spec::{ServerSpec, Transport};
pub use tool_memory::{SeenTools, ToolMemory};
