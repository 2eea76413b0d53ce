//! Tickets: a browser's `EventSource` sends no headers, so it brings a ticket that is good once,
//! for one path, soon, at any service of the store.

use crate::http::auth::Caller;
use planwright_core::digest::Digest;
use planwright_core::policy::Role;
use planwright_core::principal::{Assurance, Principal};
use planwright_core::time::Timestamp;
use planwright_engine::port::{NoteKind, ServiceNote, ServiceNotes, StoreError};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The time a ticket can be used.
const LIFE: Duration = Duration::from_secs(30);

/// More tickets than are ever needed within their life.
const MAX: usize = 10_000;

/// A ticket that was given out and not used. Its text is not kept.
#[derive(Serialize, Deserialize)]
struct Ticket {
    principal: Principal,
    role: String,
    assurance: Assurance,
    credential: Digest,
    path: String,
}

/// Makes `ticket` good for one request of `caller` to `path`. Returns until when, or nothing if
/// there are too many.
pub(crate) async fn give_ticket(
    notes: &dyn ServiceNotes,
    ticket: &str,
    (caller, path): (Caller, String),
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let expires_at = now.plus(LIFE);
    let given = Ticket {
        principal: caller.principal,
        role: caller.role.as_str().to_owned(),
        assurance: caller.assurance,
        credential: caller.credential,
        path,
    };
    let value = serde_json::to_vec(&given)
        .map_err(|error| StoreError::Failed(format!("a ticket cannot be written: {error}")))?;
    let note = ServiceNote {
        kind: NoteKind::Ticket,
        key: Digest::of_bytes(ticket.as_bytes()),
        value,
        expires_at,
    };
    let kept = notes.put_note(&note, MAX, now).await?;
    Ok(kept.then_some(expires_at))
}

/// Whose ticket this is, if it is good here and now. It is spent in any case.
pub(crate) async fn spend_ticket(
    notes: &dyn ServiceNotes,
    ticket: &str,
    path: &str,
    now: Timestamp,
) -> Result<Option<Caller>, StoreError> {
    let key = Digest::of_bytes(ticket.as_bytes());
    let Some(value) = notes.take_note(NoteKind::Ticket, &key, now).await? else {
        return Ok(None);
    };
    // What cannot be read opens nothing.
    let given = serde_json::from_slice::<Ticket>(&value).ok();
    let given = given.filter(|given| given.path == path);
    Ok(given.and_then(|given| {
        Some(Caller {
            role: given.role.parse::<Role>().ok()?,
            principal: given.principal,
            assurance: given.assurance,
            credential: given.credential,
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use planwright_engine::memory::MemoryNotes;

    #[tokio::test]
    async fn a_ticket_is_good_once_for_one_path_and_not_for_long() {
        let notes = MemoryNotes::new();
        let now = Timestamp::from_millis(0);
        let caller = || Caller {
            principal: Principal::person("ada"),
            role: Role::Viewer,
            assurance: Assurance::Token,
            credential: Digest::of_bytes(b"token"),
        };
        let give = async |ticket: &str| {
            let wanted = (caller(), "/plan/a/events".to_owned());
            let given = give_ticket(&notes, ticket, wanted, now).await;
            given.unwrap().unwrap()
        };
        let spend = async |ticket: &str, path: &str, at: Timestamp| {
            spend_ticket(&notes, ticket, path, at).await.unwrap()
        };
        let expires_at = give("a").await;
        assert_eq!(spend("a", "/plan/a/events", now).await, Some(caller()));
        assert_eq!(spend("a", "/plan/a/events", now).await, None);
        give("b").await;
        assert_eq!(spend("b", "/plan/b/events", now).await, None);
        assert_eq!(spend("b", "/plan/a/events", now).await, None);
        give("c").await;
        assert_eq!(spend("c", "/plan/a/events", expires_at).await, None);
    }
}
