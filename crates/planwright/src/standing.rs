//! Where a plan stands, for lists: the engine's word, and whether anybody is at work.

use crate::exit::Failure;
use crate::wire_up::App;
use planwright_core::journal::StreamName;
use planwright_core::review::Review;

/// A plan's status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) word: String,
    /// What a person should know beside the word.
    pub(crate) note: Option<String>,
}

/// A run that goes on without a living owner is `stalled` once nothing was written for the configured time.
pub(crate) async fn standing(app: &App, review: &Review) -> Result<Standing, Failure> {
    let word = app.engine.status(review).await?.as_str().to_owned();
    let Some(opened) = review.runs().last().filter(|_| word == "executing") else {
        return Ok(Standing { word, note: None });
    };
    if app.engine.store().lease(&opened.run).await?.is_some() {
        return Ok(Standing { word, note: None });
    }
    let info = app.engine.store().info(&StreamName::Run(opened.run.clone())).await?;
    let idle = info.map(|info| app.now().since(info.updated_at));
    let stalled = idle.is_some_and(|idle| idle >= app.setting.config.stalled_after());
    let id = review.id();
    Ok(Standing {
        word: if stalled { "stalled".to_owned() } else { word },
        note: Some(format!(
            "no process executes it: planwright resume {id} goes on, planwright cancel {id} ends it"
        )),
    })
}
