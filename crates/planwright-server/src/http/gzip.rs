//! Answers that are sent packed to clients that take gzip.
//!
//! Event streams are not: each event leaves when it happens. Neither are answers that hold a secret: how
//! well one packs beside a text that an attacker chose would tell something about it.

use super::routes::answers_secret;
use super::web::takes_gzip;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::StreamExt as _;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, VARY};
use http::{HeaderValue, Method};
use std::collections::VecDeque;
use std::io::Write as _;

/// Smaller answers are not worth it.
const SMALLEST: u64 = 1_024;

/// Bytes that are packed at a time: no other request waits for a large answer.
const PIECE: usize = 64 << 10;

pub(super) async fn layer(request: Request, next: Next) -> Response {
    let secret = answers_secret(&request);
    let wanted = takes_gzip(request.headers()) && request.method() != Method::HEAD && !secret;
    let mut response = next.run(request).await;
    if !can_be_packed(&response) {
        return response;
    }
    let vary = HeaderValue::from_static("accept-encoding");
    response.headers_mut().append(VARY, vary);
    if !wanted || response.body().size_hint().lower() < SMALLEST {
        return response;
    }
    let headers = response.headers_mut();
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.remove(CONTENT_LENGTH);
    response.map(pack)
}

/// Returns whether an answer is a text that is sent whole, and not packed yet.
fn can_be_packed(response: &Response) -> bool {
    let headers = response.headers();
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    let text = kind.starts_with("application/json")
        || (kind.starts_with("text/") && !kind.starts_with("text/event-stream"));
    // Errors get their form further out, and are short.
    text && response.status().is_success()
        && !headers.contains_key(CONTENT_ENCODING)
        && response.body().size_hint().exact().is_some()
}

/// A body on its way through the packer.
struct Packing {
    source: axum::body::BodyDataStream,
    waiting: VecDeque<Bytes>,
    /// Gone once the end was packed.
    packer: Option<GzEncoder<Vec<u8>>>,
}

fn pack(body: Body) -> Body {
    let packing = Packing {
        source: body.into_data_stream(),
        waiting: VecDeque::new(),
        packer: Some(GzEncoder::new(Vec::new(), Compression::fast())),
    };
    Body::from_stream(futures::stream::unfold(packing, next_piece))
}

/// The next packed bytes. A body that ends early is cut off: its client must not take it for whole.
async fn next_piece(mut packing: Packing) -> Option<(Result<Bytes, axum::Error>, Packing)> {
    loop {
        let mut packer = packing.packer.take()?;
        if let Some(piece) = packing.waiting.pop_front() {
            if let Err(error) = packer.write_all(&piece) {
                return Some((Err(axum::Error::new(error)), packing));
            }
            let packed = std::mem::take(packer.get_mut());
            packing.packer = Some(packer);
            if packed.is_empty() {
                tokio::task::yield_now().await;
                continue;
            }
            return Some((Ok(packed.into()), packing));
        }
        match packing.source.next().await {
            Some(Ok(mut bytes)) => {
                while !bytes.is_empty() {
                    let piece = bytes.split_to(bytes.len().min(PIECE));
                    packing.waiting.push_back(piece);
                }
                packing.packer = Some(packer);
            }
            Some(Err(error)) => return Some((Err(error), packing)),
            None => {
                let last = packer.finish().map_err(axum::Error::new);
                return Some((last.map(Bytes::from), packing));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read as _;

    #[tokio::test]
    async fn what_is_packed_is_unpacked_the_same() {
        let text: String = (0..100_000).map(|number| format!("{number} ")).collect();
        let packed = axum::body::to_bytes(pack(Body::from(text.clone())), usize::MAX);
        let packed = packed.await.unwrap();
        assert!(packed.len() < text.len() / 2);
        let mut unpacked = String::new();
        let mut reader = GzDecoder::new(packed.as_ref());
        reader.read_to_string(&mut unpacked).unwrap();
        assert_eq!(unpacked, text);
    }

    #[tokio::test]
    async fn a_body_that_fails_is_not_taken_for_whole() {
        let pieces = [
            Ok(Bytes::from("a good beginning")),
            Err(std::io::Error::other("lost")),
        ];
        let body = Body::from_stream(futures::stream::iter(pieces));
        let packed = axum::body::to_bytes(pack(body), usize::MAX).await;
        assert!(packed.is_err());
    }
}
