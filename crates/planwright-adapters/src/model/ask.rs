//! Asks until there is an answer or a reason why there is none.

use super::answer::{Progress, ProviderReply, Reader};
use super::dialect::Dialect;
use super::failure::{Failure, Judge, Remedy};
use super::models::{Shared, Target};
use super::names::Names;
use super::{question, trace};
use backon::{BackoffBuilder as _, ExponentialBuilder};
use planwright_core::secret::SecretText;
use planwright_engine::port::{ModelAnswer, ModelError, ModelRequest};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tracing::Instrument as _;
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;

/// No pause between two attempts is longer, regardless of what the provider wants.
const MAX_PAUSE: Duration = Duration::from_mins(1);
/// Between two looks at a server that loads its model.
const LOADING_PAUSE: Duration = Duration::from_millis(500);

pub(super) async fn ask(shared: &Shared, request: ModelRequest) -> Result<ModelAnswer, ModelError> {
    let target = shared.usable(request.role, request.model.as_deref())?;
    let span = trace::span(&request, target.provider, target.name, &shared.redaction);
    let asking = async {
        let key = shared.key(&target).await?;
        let question = Question {
            shared,
            target,
            request: &request,
            key: key.as_ref(),
        };
        question.ask_on().await
    };
    let asked = async {
        tokio::select! {
            biased;
            () = request.cancelled.cancelled() => Err(ModelError::Cancelled),
            answer = asking => answer,
        }
    };
    let answer = asked.instrument(span.clone()).await;
    let reason = answer.as_ref().ok().map(|answer| answer.reason);
    let answer = answer.map(|answer| counted(shared, &target, &request, answer));
    trace::record_end(&span, &answer, reason);
    answer
}

/// The answer with what it cost.
fn counted(
    shared: &Shared,
    target: &Target<'_>,
    request: &ModelRequest,
    answer: ProviderReply,
) -> ModelAnswer {
    let usage = answer
        .usage
        .unwrap_or_else(|| request.estimate(answer.length));
    let used = shared.price_use(target, request.role, usage);
    ModelAnswer {
        text: answer.text,
        calls: answer.calls,
        used,
        cut: answer.cut,
    }
}

struct Question<'a> {
    shared: &'a Shared,
    target: Target<'a>,
    request: &'a ModelRequest,
    key: Option<&'a SecretText>,
}

impl Question<'_> {
    /// Asks again where that can help.
    async fn ask_on(&self) -> Result<ProviderReply, ModelError> {
        let provider = self.target.provider;
        let mut pauses = ExponentialBuilder::default()
            .with_min_delay(provider.pause)
            .with_max_delay(MAX_PAUSE)
            .with_max_times(provider.retries)
            .with_jitter()
            .build();
        let loaded_by = Instant::now() + provider.loading;
        let schema = self
            .request
            .schema
            .as_ref()
            .map(|schema| schema.name.as_str());
        let first = self
            .shared
            .dialect(&self.target, schema.unwrap_or_default());
        let mut dialect = first;
        loop {
            let Failure { error, remedy } = match self.ask_once(dialect).await {
                Ok(answer) => {
                    if let Some(schema) = schema.filter(|_| dialect != first) {
                        self.shared.learn_dialect(&self.target, schema, dialect);
                    }
                    return Ok(answer);
                }
                Err(failure) => failure,
            };
            match remedy {
                Remedy::None => return Err(error),
                Remedy::OtherDialect => {
                    dialect = dialect.after(provider.structured).ok_or(error)?;
                }
                Remedy::Loaded if Instant::now() < loaded_by => {
                    sleep(LOADING_PAUSE.min(provider.loading)).await;
                }
                Remedy::Loaded => return Err(error),
                Remedy::Later { after } => {
                    let pause = pauses.next().ok_or(error)?;
                    sleep(after.map_or(pause, |after| after.max(pause)).min(MAX_PAUSE)).await;
                }
            }
        }
    }

    async fn ask_once(&self, dialect: Dialect) -> Result<ProviderReply, Failure> {
        let request = self.request;
        let target = &self.target;
        let redactor = self.shared.redaction.redactor();
        let structured = request.schema.is_some();
        let judge = Judge {
            model: target.model,
            redactor: &redactor,
            structured,
        };
        let client = self.shared.client(target).map_err(Failure::final_)?;
        let settings = self.shared.settings(request.role);
        let options = question::options(request, (target.provider, target.name), dialect, settings);
        let begun = client
            .exec_chat_stream(
                question::target(target.provider, target.name, self.key),
                question::chat(request, target.provider.kind, dialect),
                Some(&options),
            )
            .with_subscriber(NoSubscriber::new());
        let stream = begun.await.map_err(|error| judge.judge(&error))?.stream;
        let reader = Reader {
            judge,
            provider: target.provider,
            told: &request.told,
            key: self.key,
            names: Names::of(&request.tools),
            answer_name: question::answer_name(request, dialect),
            structured,
            progress: Progress::default(),
        };
        reader.read(stream).await
    }
}
