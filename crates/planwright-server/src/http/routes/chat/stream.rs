//! An answer that is told as it comes.
//!
//! The model never waits for the listener: its pieces are gathered, and what has come since the
//! last one was taken is sent as one event. A listener that takes nothing is cut off, and the model
//! is told to stop.

use super::answer;
use crate::events::{StreamPermit, frame, stream_response};
use crate::http::state::Http;
use axum::body::Bytes;
use axum::response::Response;
use planwright_engine::MaskedText;
use planwright_engine::port::{ModelAnswer, ModelError, ModelRequest, TextSink};
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, mpsc};
use tracing::{Instrument as _, Span};

/// Events that wait for a client.
const QUEUE: usize = 8;

/// The client's end of the stream is gone, or takes nothing.
struct Gone;

/// What has come and was not sent yet. The adapter bounds how long an answer can be.
#[derive(Debug, Default)]
struct Pieces {
    text: Mutex<String>,
    more: Notify,
}

impl Pieces {
    fn add(&self, piece: &str) {
        self.text
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_str(piece);
        self.more.notify_one();
    }

    fn take(&self) -> String {
        std::mem::take(&mut self.text.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Sender {
    http: Http,
    queue: mpsc::Sender<Bytes>,
    masked: MaskedText,
}

/// The answer that carries the stream. The model is asked on a task of its own.
pub(super) fn answer(
    http: &Http,
    permit: StreamPermit,
    request: ModelRequest,
    trace: String,
    span: Span,
) -> Response {
    let (queue, pieces) = mpsc::channel::<Bytes>(QUEUE);
    let masked = MaskedText::new(http.service.engine.redaction().clone());
    let mut sender = Sender {
        http: http.clone(),
        queue,
        masked,
    };
    tokio::spawn(
        async move {
            // A listener that went away wants nothing more; the stream ends either way.
            let _: Option<Result<(), Gone>> = permit
                .revoked
                .run_until_cancelled(sender.run(request, trace))
                .await;
            drop(permit);
        }
        .instrument(span),
    );
    stream_response(pieces)
}

impl Sender {
    async fn run(&mut self, mut request: ModelRequest, trace: String) -> Result<(), Gone> {
        let pieces = Arc::new(Pieces::default());
        let told = Arc::clone(&pieces);
        request.told = TextSink::new(move |piece| told.add(piece));
        let http = self.http.clone();
        let mut asking = Box::pin(answer::ask_model(&http, request));
        let keep_alive = http.events.options().keep_alive;
        let answered = loop {
            tokio::select! {
                biased;
                () = pieces.more.notified() => self.deltas(&pieces.take()).await?,
                answered = &mut asking => break answered,
                () = self.queue.closed() => return Err(Gone),
                () = tokio::time::sleep(keep_alive) => self.send(":\n\n".to_owned()).await?,
            }
        };
        self.deltas(&pieces.take()).await?;
        let rest = self.masked.finish();
        self.delta(rest).await?;
        self.end(answered, trace).await
    }

    async fn deltas(&mut self, text: &str) -> Result<(), Gone> {
        let shown = self.masked.push(text);
        self.delta(shown).await
    }

    async fn delta(&self, text: String) -> Result<(), Gone> {
        if text.is_empty() {
            return Ok(());
        }
        self.event("chat.delta", &json!({ "text": text }).to_string())
            .await
    }

    async fn end(
        &self,
        answered: Result<ModelAnswer, ModelError>,
        trace: String,
    ) -> Result<(), Gone> {
        match answered {
            Ok(answer) => {
                let done = answer::chat_answer(&self.http, answer, trace);
                let data = serde_json::to_string(&done).expect("an answer has only string keys");
                self.event("chat.done", &data).await
            }
            Err(error) => {
                let problem = answer::problem(error);
                let mut data =
                    serde_json::to_value(&problem).expect("a problem has only string keys");
                data["traceId"] = trace.into();
                self.event("chat.error", &data.to_string()).await
            }
        }
    }

    async fn event(&self, name: &str, data: &str) -> Result<(), Gone> {
        let mut text = String::new();
        frame::write(&mut text, None, name, data);
        self.send(text).await
    }

    async fn send(&self, text: String) -> Result<(), Gone> {
        let stall = self.http.events.options().stall_timeout;
        self.queue
            .send_timeout(text.into(), stall)
            .await
            .map_err(|_| Gone)
    }
}
