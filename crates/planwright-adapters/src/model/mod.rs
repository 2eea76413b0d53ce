//! Language models: the providers that have them, what they cost, and how they are asked.
//!
//! Everything goes through one library that knows the wire formats (`genai`); no type of it leaves
//! this folder. The library is always told where to ask and with which name: by itself it would
//! guess both. What it says in errors or logs may repeat the prompt, so neither is passed on:
//! errors are told in this program's words, and it logs nowhere.
//!
//! An answer is limited in length, an event of a stream only by the time there is: the library
//! holds it whole.

mod answer;
mod ask;
mod builtin;
mod calls;
mod dialect;
mod failure;
mod models;
mod names;
mod options;
mod price;
mod question;
mod settings;
mod trace;

pub use builtin::builtin;
pub use dialect::{Dialect, Structured};
pub use models::Models;
pub use options::{InvalidModels, ModelOptions, ProviderKind, ProviderOptions};
pub use price::Price;
pub use settings::{Effort, ParseEffortError, RoleSettings};
