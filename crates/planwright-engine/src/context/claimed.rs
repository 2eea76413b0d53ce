//! The request that a task works on, so that the commits it makes can say what they were made for.
//!
//! A face sets it around the work for one request. Everything that the same task writes carries the
//! claim; what is handed to another task (the loop of a run) takes it along in its envelope. The
//! claim decides nothing: it only becomes part of the commit.

use crate::port::RequestClaim;

tokio::task_local! {
    static CLAIM: RequestClaim;
}

/// Does `work` for a request that was claimed: every commit of this task says so.
pub async fn for_request<W: Future>(claim: RequestClaim, work: W) -> W::Output {
    CLAIM.scope(claim, work).await
}

/// As [`for_request`], where there may be no request.
pub(crate) async fn for_same_request<W: Future>(claim: Option<RequestClaim>, work: W) -> W::Output {
    match claim {
        Some(claim) => for_request(claim, work).await,
        None => work.await,
    }
}

/// Returns the claim on the request that this task works on.
pub(crate) fn current_claim() -> Option<RequestClaim> {
    CLAIM.try_with(Clone::clone).ok()
}
