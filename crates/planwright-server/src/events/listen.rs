//! Sending a stream to one listener.
//!
//! A task of its own puts events into a short queue; the connection takes them out as fast as its
//! client reads. A client that does not read fills its queue, and when that does not move for some
//! time the task ends. No other listener notices.

use super::frame::{self, Format};
use super::global::GlobalStream;
use super::hub::Events;
use super::inbox_watch::InboxWatch;
use super::open_streams::StreamPermit;
use super::plan_stream::{Broken, PlanStream};
use super::reset::Reason;
use super::response::stream_response;
use super::wire::Types;
use crate::http::planning_jobs::Told;
use axum::body::Bytes;
use axum::response::Response;
use planwright_api::InboxCount;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Pieces that wait for a client. One holds at most a batch of events.
const QUEUE: usize = 8;

/// After this time, and up to half as long again, a client that lost its stream comes back.
const RETRY_MILLIS: u64 = 1_000;

/// Progress is told at most this often.
const PROGRESS_PAUSE: Duration = Duration::from_millis(200);

/// How a stream is sent.
#[derive(Debug, Clone)]
pub(super) struct Manner {
    pub(super) format: Format,
    pub(super) types: Types,
    /// Stay when the run is over.
    pub(super) follow: bool,
}

/// The client's end of a stream is gone, or takes nothing.
struct Gone;

struct Sender {
    events: Events,
    queue: mpsc::Sender<Bytes>,
    permit: StreamPermit,
}

/// The answer that carries a stream, and what is put into it.
fn stream(events: &Events, permit: StreamPermit) -> (Response, Sender) {
    let (queue, pieces) = mpsc::channel::<Bytes>(QUEUE);
    (
        stream_response(pieces),
        Sender {
            events: events.clone(),
            queue,
            permit,
        },
    )
}

impl Sender {
    async fn send(&self, text: String) -> Result<(), Gone> {
        let sent = self
            .queue
            .send_timeout(text.into(), self.events.options.stall_timeout);
        tokio::select! {
            sent = sent => sent.map_err(|_| Gone),
            () = self.stopped() => Err(Gone),
        }
    }

    /// The service stops, or the listener is no longer let in.
    async fn stopped(&self) {
        tokio::select! {
            () = self.events.stop.cancelled() => {}
            () = self.permit.revoked.cancelled() => {}
        }
    }

    /// The first piece: clients must not all come back at the same moment.
    async fn greet(&self) -> Result<(), Gone> {
        let noise = self.events.engine.entropy() % (RETRY_MILLIS / 2);
        self.send(format!("retry: {}\n\n", RETRY_MILLIS + noise))
            .await
    }

    async fn keep_alive(&self) -> Result<(), Gone> {
        self.send(":\n\n".to_owned()).await
    }
}

/// Streams the events of a plan. `reset` is told first where the listener has to begin anew.
pub(super) fn plan(
    events: &Events,
    permit: StreamPermit,
    stream_of: PlanStream,
    manner: Manner,
    reset: Option<String>,
) -> Response {
    let (response, sender) = stream(events, permit);
    tokio::spawn(async move {
        // An end for any reason is an end of the stream: the client comes back if it wants more.
        let _: Result<(), Gone> = send_plan(&sender, stream_of, &manner, reset).await;
    });
    response
}

async fn send_plan(
    sender: &Sender,
    mut plan: PlanStream,
    manner: &Manner,
    reset: Option<String>,
) -> Result<(), Gone> {
    sender.greet().await?;
    if let Some(data) = reset {
        let mut text = String::new();
        frame::write(&mut text, Some(&plan.after), "reset", &data);
        sender.send(text).await?;
    }
    let mut progress = plan.topic.progress.changes();
    let mut progress_seen = *progress.borrow_and_update();
    loop {
        plan.marks.mark_unchanged();
        let frames = match plan.next().await {
            Ok(frames) => frames,
            Err(broken) => return tell_broken(sender, &plan, broken).await,
        };
        if !frames.is_empty() {
            let mut text = String::new();
            for frame in frames
                .iter()
                .filter(|frame| manner.types.include_event(&frame.event))
            {
                frame.write(&mut text, frame.seq(), manner.format);
            }
            if !text.is_empty() {
                sender.send(text).await?;
            }
            continue;
        }
        if plan.is_over() && !manner.follow {
            return Ok(());
        }
        tokio::select! {
            changed = plan.marks.changed() => changed.map_err(|_| Gone)?,
            changed = progress.changed() => {
                changed.map_err(|_| Gone)?;
                let (news, seen) = plan.topic.progress.after(progress_seen);
                progress_seen = seen;
                let wanted = news
                    .iter()
                    .filter(|told| manner.types.include_passing(told.name, told.run.as_str()));
                let mut text = String::new();
                wanted.for_each(|told| frame::write(&mut text, None, told.name, &told.data));
                if !text.is_empty() {
                    sender.send(text).await?;
                }
                // What comes meanwhile is told together.
                tokio::time::timeout(PROGRESS_PAUSE, plan.marks.changed()).await.ok();
            }
            () = tokio::time::sleep(sender.events.options.keep_alive) => sender.keep_alive().await?,
            () = sender.stopped() => return Ok(()),
            () = sender.queue.closed() => return Ok(()),
        }
    }
}

async fn tell_broken(sender: &Sender, plan: &PlanStream, broken: Broken) -> Result<(), Gone> {
    match broken {
        Broken::Slow => Ok(()),
        Broken::Store(error) => {
            tracing::warn!(plan = %plan.topic.plan, %error, "a stream of events ends early");
            Ok(())
        }
        Broken::Damaged => {
            let data = json!({ "event": "error", "planId": plan.topic.plan,
                "summary": "the journal of the plan is damaged: nothing more can be told" });
            let mut text = String::new();
            frame::write(&mut text, None, "error", &data.to_string());
            sender.send(text).await
        }
    }
}

/// Progress of an order is told at most this often.
const JOB_PAUSE: Duration = Duration::from_millis(100);

/// Streams how far a plan is that is being written.
pub(crate) fn job_stream(events: &Events, permit: StreamPermit, told: Arc<Told>) -> Response {
    let (response, sender) = stream(events, permit);
    tokio::spawn(async move {
        let _: Result<(), Gone> = send_job(&sender, &told).await;
    });
    response
}

async fn send_job(sender: &Sender, told: &Told) -> Result<(), Gone> {
    sender.greet().await?;
    let mut changes = told.changes();
    loop {
        changes.mark_unchanged();
        let is_running = told.is_running();
        let data = serde_json::to_string(&told.document()).map_err(|_| Gone)?;
        let mut text = String::new();
        frame::write(&mut text, None, "planning", &data);
        sender.send(text).await?;
        if !is_running {
            return Ok(());
        }
        loop {
            tokio::select! {
                changed = changes.changed() => {
                    changed.map_err(|_| Gone)?;
                    tokio::time::sleep(JOB_PAUSE).await;
                    break;
                }
                () = tokio::time::sleep(sender.events.options.keep_alive) => sender.keep_alive().await?,
                () = sender.stopped() => return Ok(()),
                () = sender.queue.closed() => return Ok(()),
            }
        }
    }
}

/// Changes of the inbox are told at most this often.
const INBOX_PAUSE: Duration = Duration::from_millis(500);

/// Streams how much waits for people.
pub(crate) fn inbox_stream(events: &Events, permit: StreamPermit, watch: InboxWatch) -> Response {
    let (response, sender) = stream(events, permit);
    tokio::spawn(async move {
        let _: Result<(), Gone> = send_inbox(&sender, &watch).await;
    });
    response
}

async fn send_inbox(sender: &Sender, watch: &InboxWatch) -> Result<(), Gone> {
    sender.greet().await?;
    let mut changes = sender.events.journals.changes();
    let mut told: Option<InboxCount> = None;
    loop {
        changes.mark_unchanged();
        let counted = watch.count(&sender.events.engine).await;
        let count = counted.map_err(|error| {
            tracing::warn!(%error, "a stream of the inbox ends early");
            Gone
        })?;
        if told.as_ref() != Some(&count) {
            let mut text = String::new();
            let data = serde_json::to_string(&count).map_err(|_| Gone)?;
            frame::write(&mut text, None, "inbox", &data);
            sender.send(text).await?;
            told = Some(count);
        }
        tokio::select! {
            changed = changes.changed() => {
                changed.map_err(|_| Gone)?;
                // What comes meanwhile is counted together, after the count that others share is old.
                tokio::time::sleep(INBOX_PAUSE).await;
            }
            () = tokio::time::sleep(sender.events.options.keep_alive) => sender.keep_alive().await?,
            () = sender.stopped() => return Ok(()),
            () = sender.queue.closed() => return Ok(()),
        }
    }
}

/// Streams the events of all plans.
pub(super) fn global(
    events: &Events,
    permit: StreamPermit,
    stream_of: GlobalStream,
    manner: Manner,
    reset: Option<Reason>,
) -> Response {
    let (response, sender) = stream(events, permit);
    tokio::spawn(async move {
        let _: Result<(), Gone> = send_global(&sender, stream_of, &manner, reset).await;
    });
    response
}

async fn send_global(
    sender: &Sender,
    mut stream: GlobalStream,
    manner: &Manner,
    reset: Option<Reason>,
) -> Result<(), Gone> {
    sender.greet().await?;
    if let Some(reason) = reset {
        let data = json!({ "event": "reset", "reason": reason.as_str(), "last": stream.after.to_string() });
        let mut text = String::new();
        frame::write(&mut text, Some(&stream.after), "reset", &data.to_string());
        sender.send(text).await?;
    }
    let mut changes = sender.events.journals.changes();
    loop {
        changes.mark_unchanged();
        let (frames, more) = match stream.next().await {
            Ok(next) => next,
            Err(error) => {
                tracing::warn!(%error, "a stream of events ends early");
                return Ok(());
            }
        };
        let mut text = String::new();
        for (id, frame) in frames
            .iter()
            .filter(|(_, frame)| manner.types.include(frame.event.event.as_str()))
        {
            frame.write(&mut text, id, manner.format);
        }
        if !text.is_empty() {
            sender.send(text).await?;
        }
        if more {
            continue;
        }
        tokio::select! {
            changed = changes.changed() => changed.map_err(|_| Gone)?,
            () = tokio::time::sleep(sender.events.options.keep_alive) => sender.keep_alive().await?,
            () = sender.stopped() => return Ok(()),
            () = sender.queue.closed() => return Ok(()),
        }
    }
}
