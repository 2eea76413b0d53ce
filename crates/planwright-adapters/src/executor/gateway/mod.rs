//! The gateway between an executor and the plan's tools: a loopback listener with a token of its
//! own, which lives exactly as long as the attempt it belongs to.
//!
//! It knows two requests, `GET /tools` and `POST /call`, and one request per connection. hyper
//! speaks HTTP; its types appear in this folder only.

mod connection;
mod guard;
mod listener;
mod reply;
#[cfg(test)]
mod tests;

pub(super) use listener::GatewayListener;
