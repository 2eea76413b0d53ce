//! Plans that were folded lately.

use planwright_core::id::PlanId;
use planwright_core::journal::Head;
use planwright_core::review::Review;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Bytes that the plans may take, about.
const MAX_BYTES: usize = 16 << 20;

/// The bytes of a version without its document, as measured with plans of three steps.
const LEAST_BYTES: usize = 16 << 10;

/// A document that was read takes about so many times the bytes of its text.
const TIMES_ITS_TEXT: usize = 8;

/// Folded plans, those that were asked for lately.
#[derive(Debug, Default)]
pub(crate) struct RecentReviews(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    plans: HashMap<PlanId, KeptReview>,
    bytes: usize,
    turn: u64,
}

#[derive(Debug)]
struct KeptReview {
    review: Review,
    head: Head,
    bytes: usize,
    turn: u64,
}

impl RecentReviews {
    /// The plan as it was, and where its journal ended then.
    pub(crate) fn find(&self, id: &PlanId) -> Option<(Review, Head)> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.turn += 1;
        let turn = kept.turn;
        let found = kept.plans.get_mut(id)?;
        found.turn = turn;
        Some((found.review.clone(), found.head))
    }

    /// Keeps a plan as it is now, if it is not too large.
    pub(crate) fn keep(&self, review: &Review, head: Head) {
        let document = &review.current().document;
        let length = serde_json::to_vec(&**document).map_or(MAX_BYTES, |text| text.len());
        let bytes = length.saturating_mul(TIMES_ITS_TEXT) + LEAST_BYTES * review.versions().len();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.remove(review.id());
        if bytes > MAX_BYTES {
            return;
        }
        while kept.bytes + bytes > MAX_BYTES && kept.remove_oldest() {}
        kept.turn += 1;
        let turn = kept.turn;
        kept.bytes += bytes;
        kept.plans.insert(
            review.id().clone(),
            KeptReview {
                review: review.clone(),
                head,
                bytes,
                turn,
            },
        );
    }
}

impl Kept {
    fn remove(&mut self, id: &PlanId) {
        if let Some(removed) = self.plans.remove(id) {
            self.bytes -= removed.bytes;
        }
    }

    fn remove_oldest(&mut self) -> bool {
        let oldest = self.plans.iter().min_by_key(|(_, kept)| kept.turn);
        let Some(id) = oldest.map(|(id, _)| id.clone()) else {
            return false;
        };
        self.remove(&id);
        true
    }
}
