//! Secrets: texts that are sent to tools and never written down or shown.
//!
//! A plan says `${secret.NAME}`. The value is put in when the call is made and is held in memory
//! only; everything that comes back is searched for it, in every spelling that tools are known to
//! give a text, and masked before anything is kept. No search can find what was compressed,
//! encrypted or cut into pieces that lie far apart: a tool that is given a secret is trusted with
//! it.

mod forms;
mod hosts;
mod name;
mod redact;
mod stream;
mod text;
mod view;

pub use hosts::{HostError, check_hosts};
pub use name::{SecretName, matches_tool};
pub use redact::Redactor;
pub use stream::RedactedStream;
pub use text::{SecretText, SecretTextError};
