//! Plans that were folded lately: the next reader folds only what was added since.
//!
//! What is kept was folded with its chain checked, and is used only if the journal still has the very
//! record it ended with. `verify`, decisions and starts fold the journal itself.

use crate::context::RecentReviews;
use crate::journal::load::{LoadError, PAGE, load_review};
use crate::port::{Journal, StoreError, is_last_page};
use planwright_core::id::PlanId;
use planwright_core::journal::{Head, StreamName, check_chain, decode};
use planwright_core::review::{Review, ReviewEvent};

/// A plan's review and where its journal ends, as [`load_review`] has it.
pub(crate) async fn load_recent_review(
    store: &dyn Journal,
    recent: &RecentReviews,
    id: &PlanId,
) -> Result<(Review, Head), LoadError> {
    if let Some((review, known)) = recent.find(id)
        && let Some((review, head)) = fold_on(store, review, known).await?
    {
        if head != known {
            recent.keep(&review, head);
        }
        return Ok((review, head));
    }
    let (review, head) = load_review(store, id).await?;
    recent.keep(&review, head);
    Ok((review, head))
}

/// Folds what came after `head`; nothing if the journal does not have the record that it names.
async fn fold_on(
    store: &dyn Journal,
    mut review: Review,
    mut head: Head,
) -> Result<Option<(Review, Head)>, LoadError> {
    let stream = StreamName::Plan(review.id().clone());
    let mut page = store
        .read(&stream, head.seq.saturating_sub(1), PAGE)
        .await?;
    if page.first().map(|record| record.head()) != Some(head) {
        return Ok(None);
    }
    let mut skipped = 1;
    loop {
        let fresh = page.get(skipped..).unwrap_or_default();
        head = check_chain(head, &stream, fresh)
            .map_err(|error| StoreError::chain(&stream, &error))?;
        for record in fresh {
            let entry = decode::<ReviewEvent>(record).map_err(LoadError::decode(&stream))?;
            review.apply(&entry).map_err(LoadError::corrupt(&stream))?;
        }
        if is_last_page(&page, PAGE) {
            return Ok(Some((review, head)));
        }
        page = store.read(&stream, head.seq, PAGE).await?;
        skipped = 0;
    }
}
