//! A model provider that answers from a script: a real HTTP server on this machine that speaks the
//! wire formats of OpenAI, Anthropic and Gemini, streamed and whole, and remembers what it was
//! asked.

mod anthropic;
mod gemini;
mod http;
mod openai;
mod reply;
#[cfg(test)]
mod tests;

pub use http::RecordedRequest;
pub use reply::ScriptedReply;

use http::Connection;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// What comes next, given what is asked.
type Answerer = Box<dyn FnMut(&RecordedRequest) -> ScriptedReply + Send>;

struct Shared {
    answerer: Mutex<Answerer>,
    asked: Mutex<Vec<RecordedRequest>>,
    stopped: AtomicBool,
}

/// The server. It stops when it is dropped.
pub struct Provider {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

impl Provider {
    /// Answers with these, in order. A client that asks once more is told that the script is used
    /// up (status 500).
    pub fn scripted(replies: impl IntoIterator<Item = ScriptedReply>) -> Self {
        let mut script: VecDeque<ScriptedReply> = replies.into_iter().collect();
        let used_up =
            || ScriptedReply::status(500, r#"{"error": {"message": "the script is used up"}}"#);
        Self::answering(move |_| script.pop_front().unwrap_or_else(used_up))
    }

    /// Answers with the reply that `answerer` makes of the question.
    pub fn answering(
        answerer: impl FnMut(&RecordedRequest) -> ScriptedReply + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of this machine is free");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let shared = Arc::new(Shared {
            answerer: Mutex::new(Box::new(answerer)),
            asked: Mutex::default(),
            stopped: AtomicBool::new(false),
        });
        let for_thread = Arc::clone(&shared);
        let accepting = std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if for_thread.stopped.load(Ordering::SeqCst) {
                    break;
                }
                let shared = Arc::clone(&for_thread);
                drop(std::thread::spawn(move || serve(&shared, stream)));
            }
        });
        Self {
            address,
            shared,
            accepting: Some(accepting),
        }
    }

    /// Where it is, without a path: `http://127.0.0.1:PORT`. OpenAI's format is below `/v1`,
    /// Anthropic's too, Gemini's below `/v1beta`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every question for an answer so far, in order. Questions for the list of models are left
    /// out.
    pub fn asked(&self) -> Vec<RecordedRequest> {
        self.shared
            .asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// How often it was asked so far: what was said need not be copied for that.
    pub fn times_asked(&self) -> usize {
        let asked = self.shared.asked.lock();
        asked.unwrap_or_else(PoisonError::into_inner).len()
    }

    /// A `planwright.toml` with it as the provider `scripted` (OpenAI's format), of which
    /// `scripted/model` is the default model. Nothing is tried twice, so that a failing test fails
    /// fast.
    pub fn config(&self) -> String {
        format!(
            "[models]\ndefault = \"scripted/model\"\n[models.providers.scripted]\nkind = \"openai\"\n\
             base_url = \"{}/v1\"\nretries = 0\ntimeout_seconds = 20\n",
            self.url()
        )
    }
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provider")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for connections.
        drop(TcpStream::connect(self.address));
        if let Some(accepting) = self.accepting.take() {
            accepting
                .join()
                .expect("the thread that accepts does not panic");
        }
    }
}

/// One connection, one request.
fn serve(shared: &Shared, stream: TcpStream) {
    let Some((mut connection, asked)) = Connection::accept(stream) else {
        return;
    };
    if asked.method == "GET" {
        let models = json!({"object": "list", "data": [{"id": "model", "object": "model"}]});
        connection.whole(200, &[], &models.to_string());
        return;
    }
    let reply = {
        let mut answerer = shared
            .answerer
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        shared
            .asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(asked.clone());
        answerer(&asked)
    };
    std::thread::sleep(reply.delay);
    if let Some((status, body)) = &reply.refused {
        connection.whole(*status, &reply.headers, body);
        return;
    }
    let (events, whole): (Vec<Event>, Value) = match asked
        .path
        .split('?')
        .next()
        .unwrap_or_default()
    {
        path if path.contains(":streamGenerateContent") || path.contains(":generateContent") => (
            gemini::events(&reply, &asked),
            gemini::whole(&reply, &asked),
        ),
        path if path.ends_with("/messages") => (
            anthropic::events(&reply, &asked),
            anthropic::whole(&reply, &asked),
        ),
        path if path.ends_with("/chat/completions") => (
            openai::events(&reply, &asked),
            openai::whole(&reply, &asked),
        ),
        other => {
            connection.whole(
                404,
                &[],
                &json!({"error": {"message": format!("no {other}")}}).to_string(),
            );
            return;
        }
    };
    let streamed =
        asked.body["stream"] == json!(true) || asked.path.contains(":streamGenerateContent");
    if !streamed {
        connection.whole(200, &reply.headers, &whole.to_string());
        return;
    }
    connection.begin_stream(&reply.headers);
    let kept = events.len().saturating_sub(reply.withheld);
    for event in &events[..kept] {
        std::thread::sleep(reply.pause);
        if !connection.send(&event.to_string()) {
            return;
        }
    }
    if reply.withheld == 0 {
        connection.end_stream();
    } else if reply.hangs {
        connection.wait_until_closed();
    }
}

/// An event of a streamed answer.
struct Event {
    name: Option<&'static str>,
    data: String,
}

impl Event {
    fn data(data: &Value) -> Self {
        Self {
            name: None,
            data: data.to_string(),
        }
    }
}

impl std::fmt::Display for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(name) = self.name {
            writeln!(f, "event: {name}")?;
        }
        write!(f, "data: {}\n\n", self.data)
    }
}
