//! HTTP as servers spoke it first: one stream of events for what they say, and an address to which
//! every message is posted. Deprecated, and still what many of them speak.

use super::http::{EventSize, HttpError, SignedRequests, bytes_of, chain, client_for, is_type};
use super::lines::Lines;
use super::oauth::Bearer;
use super::wire::{End, Wire};
use futures::{StreamExt as _, TryStreamExt as _};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, Response, Url};
use sse_stream::{Sse, SseStream};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex,
    split,
};
use tokio_util::sync::CancellationToken;

/// Bytes between the stream and its reader.
const PIPE: usize = 64 << 10;
/// The time a message may take to be accepted.
const POST_TIMEOUT: Duration = Duration::from_secs(30);

/// Opens the stream, and returns a transport over it. The first event says where messages go.
pub(super) async fn open(
    url: &str,
    (headers, bearer): (&BTreeMap<String, String>, Option<Bearer>),
    wire: &Arc<Wire>,
) -> Result<Lines, String> {
    let (url, client) = client_for(url, headers)?;
    let signed = SignedRequests(bearer);
    let request = client.get(url.clone()).header(ACCEPT, "text/event-stream");
    let response = signed
        .send(request)
        .await
        .map_err(|error| error.to_string())?;
    if !response.status().is_success() || !is_type(&response, "text/event-stream") {
        let status = response.status();
        return Err(format!(
            "the server answered {status}, and no stream of events"
        ));
    }
    let mut events = Box::pin(events(response));
    let endpoint = loop {
        match events.next().await {
            Some(Ok(event)) if event.event.as_deref() == Some("endpoint") => {
                break address(&url, event.data.as_deref().unwrap_or_default())?;
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(format!("its stream broke: {error}")),
            None => return Err("its stream ended before it said where messages go".to_owned()),
        }
    };
    let (ours, theirs) = duplex(PIPE);
    let (their_read, their_write) = split(theirs);
    let (our_read, our_write) = split(ours);
    tokio::spawn(until_end(
        Arc::clone(wire),
        pass_on(events, their_write, Arc::clone(wire)),
    ));
    let posting = post_lines((client, signed), endpoint, their_read, Arc::clone(wire));
    tokio::spawn(until_end(Arc::clone(wire), posting));
    // There is no process to wait for.
    let gone = CancellationToken::new();
    gone.cancel();
    Ok(Lines::new(our_write, our_read, Arc::clone(wire), gone))
}

async fn until_end(wire: Arc<Wire>, work: impl Future<Output = ()>) {
    tokio::select! {
        () = wire.wait_until_ended() => {}
        () = work => {}
    }
}

/// The address that the server names. It has to be the server's own: messages may hold secrets.
fn address(url: &Url, named: &str) -> Result<Url, String> {
    let address = url
        .join(named)
        .map_err(|_| "it says that messages go to something that is no address".to_owned())?;
    if address.origin() != url.origin() {
        return Err("it says that messages go to another server".to_owned());
    }
    Ok(address)
}

fn events(
    response: Response,
) -> impl futures::Stream<Item = Result<Sse, sse_stream::Error>> + Send + 'static {
    let mut size = EventSize::default();
    let bytes = bytes_of(response).map_err(|error| std::io::Error::other(chain(&error)));
    let bounded = bytes.and_then(move |chunk| {
        futures::future::ready(if size.fits(&chunk) {
            Ok(chunk)
        } else {
            Err(std::io::Error::other(HttpError::TooLarge))
        })
    });
    SseStream::from_bytes_stream(bounded)
}

/// What the server says, one message in a line.
async fn pass_on(
    mut events: impl futures::Stream<Item = Result<Sse, sse_stream::Error>> + Unpin,
    mut lines: WriteHalf<DuplexStream>,
    wire: Arc<Wire>,
) {
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            Err(error) => return wire.end(End::Gone(format!("its stream broke: {error}"))),
        };
        let is_message = event.event.as_deref().is_none_or(|kind| kind == "message");
        let Some(data) = event.data.filter(|_| is_message) else {
            continue;
        };
        // A line end between values is white space in JSON, and within one it cannot be.
        let line = data.replace(['\r', '\n'], " ") + "\n";
        if lines.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
    wire.end(End::Gone("its stream of events ended".into()));
}

/// Posts every line that is written.
async fn post_lines(
    (client, signed): (Client, SignedRequests),
    endpoint: Url,
    lines: ReadHalf<DuplexStream>,
    wire: Arc<Wire>,
) {
    let mut lines = BufReader::new(lines).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let request = client
            .post(endpoint.clone())
            .header(CONTENT_TYPE, "application/json")
            .timeout(POST_TIMEOUT)
            .body(line);
        let reason = match signed.send(request).await {
            Ok(response) if response.status().is_success() => continue,
            Ok(response) => format!("the server answered {}", response.status()),
            Err(error) => format!("a message could not be sent: {error}"),
        };
        return wire.end(End::Gone(reason));
    }
}
