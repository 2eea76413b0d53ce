//! Tools and models whose use is counted against one budget, regardless of the caller.

use super::spending::Spending;
use super::unfinished::Unfinished;
use crate::port::{
    BoxFuture, Call, CallError, Model, ModelAnswer, ModelError, ModelInfo, ModelRequest, Outcome,
    TextSink, Tools,
};
use planwright_core::id::RunId;
use planwright_core::model::{ModelRole, ModelUse, TokenUsage};
use planwright_core::run::StepErrorCode;
use planwright_core::tool::Catalog;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Tools that are called as long as the budget lasts.
#[derive(Debug, Clone)]
pub struct CountedTools {
    inner: Arc<dyn Tools>,
    spending: Spending,
}

impl CountedTools {
    /// Counts the calls of these tools against the budget.
    pub fn new(inner: Arc<dyn Tools>, spending: Spending) -> Self {
        Self { inner, spending }
    }
}

impl Tools for CountedTools {
    fn catalog(&self) -> Catalog {
        self.inner.catalog()
    }

    /// A call that the budget does not allow never leaves and is not charged.
    fn call(&self, call: Call) -> BoxFuture<'static, Outcome> {
        match self.spending.call() {
            Ok(()) => self.inner.call(call),
            Err(reason) => {
                let blocked = CallError::refused(
                    StepErrorCode::GuardBlocked,
                    format!("Guard blocked: {reason}"),
                );
                Box::pin(std::future::ready(Err(blocked)))
            }
        }
    }

    fn server_limit(&self, server: &str) -> Option<usize> {
        self.inner.server_limit(server)
    }

    fn serial_writes(&self, server: &str) -> bool {
        self.inner.serial_writes(server)
    }

    fn release(&self, top_run: &RunId) {
        self.inner.release(top_run);
    }
}

/// Models that are asked as long as the budget lasts.
#[derive(Debug, Clone)]
pub struct CountedModel {
    inner: Arc<dyn Model>,
    spending: Spending,
}

impl CountedModel {
    /// Counts the tokens of this model against the budget.
    pub fn new(inner: Arc<dyn Model>, spending: Spending) -> Self {
        Self { inner, spending }
    }
}

impl Model for CountedModel {
    fn models(&self) -> Vec<ModelInfo> {
        self.inner.models()
    }

    fn resolve(&self, role: ModelRole, model: Option<&str>) -> Result<ModelInfo, ModelError> {
        self.inner.resolve(role, model)
    }

    fn price_use(
        &self,
        role: ModelRole,
        model: Option<&str>,
        usage: TokenUsage,
    ) -> Result<ModelUse, ModelError> {
        self.inner.price_use(role, model, usage)
    }

    fn ask(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        if let Err(reason) = self.spending.ask() {
            let asked = self.inner.resolve(request.role, request.model.as_deref());
            let refused = asked.and_then(|model| {
                let status = 0;
                let message = format!("Guard blocked: {reason}");
                Err(ModelError::Refused {
                    model: model.name,
                    status,
                    message,
                })
            });
            return Box::pin(std::future::ready(refused));
        }
        let (counting, request) = Counting::begin(self, request);
        let asking = self.inner.ask(request);
        Box::pin(async move {
            let answered = asking.await;
            counting.end(&answered);
            answered
        })
    }
}

/// Counts one answer, regardless of its outcome: also one that no caller waits for any more.
struct Counting {
    spending: Spending,
    /// Absent once it is counted.
    open: Option<Unfinished>,
    /// The number of bytes that came.
    said: Arc<AtomicUsize>,
}

impl Counting {
    /// Also the request as it has to be asked.
    fn begin(model: &CountedModel, mut request: ModelRequest) -> (Self, ModelRequest) {
        let said = Arc::new(AtomicUsize::new(0));
        let told = request.told.clone();
        let saying = Arc::clone(&said);
        request.told = TextSink::new(move |piece| {
            saying.fetch_add(piece.len(), Ordering::Relaxed);
            told.tell(piece);
        });
        let open = Some(Unfinished::new(&model.inner, &request));
        (
            Self {
                spending: model.spending.clone(),
                open,
                said,
            },
            request,
        )
    }

    fn end(mut self, answered: &Result<ModelAnswer, ModelError>) {
        let Some(open) = self.open.take() else { return };
        match answered {
            Ok(answer) => self.spending.count_use(&answer.used),
            Err(error) => {
                let used = open.used_until(error, self.said.load(Ordering::Relaxed));
                used.iter().for_each(|used| self.spending.count_use(used));
            }
        }
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        let used = self
            .open
            .take()
            .and_then(|open| open.estimate_use(self.said.load(Ordering::Relaxed)));
        used.iter().for_each(|used| self.spending.count_use(used));
    }
}

#[cfg(test)]
mod tests {
    use super::super::endless::Endless;
    use super::*;
    use crate::memory::ScriptedModel;
    use planwright_core::model::Message;

    fn request() -> ModelRequest {
        ModelRequest::new(
            ModelRole::Chat,
            vec![Message::user("Tell me a long story.")],
        )
    }

    fn endless(gives_up: Option<ModelError>) -> Endless {
        Endless {
            says: "Once upon a time",
            gives_up,
        }
    }

    fn counted(inner: impl Model + 'static) -> (CountedModel, Spending) {
        let spending = Spending::new(crate::chat::ChatBudget {
            calls: None,
            tokens: Some(10),
        });
        (
            CountedModel::new(Arc::new(inner), spending.clone()),
            spending,
        )
    }

    const ESTIMATE: TokenUsage = TokenUsage {
        input: 6,
        output: 4,
        cached: 0,
        estimated: true,
    };

    #[tokio::test]
    async fn an_answer_that_nobody_waits_for_has_still_been_given() {
        let (model, spending) = counted(endless(None));
        drop(model.ask(request()));
        assert_eq!(spending.tokens(), ESTIMATE);
        // That was all there is.
        let refused = model.ask(request()).await.unwrap_err();
        assert!(
            refused
                .to_string()
                .contains("the budget of 10 tokens is used up"),
            "{refused}"
        );
        assert_eq!(spending.tokens(), ESTIMATE);
    }

    #[tokio::test]
    async fn an_answer_that_breaks_off_is_counted_and_a_provider_that_is_not_there_is_not() {
        let gone = || ModelError::Unavailable {
            model: "m".into(),
            message: "it broke off".into(),
        };
        let (model, spending) = counted(endless(Some(gone())));
        model.ask(request()).await.unwrap_err();
        assert_eq!(spending.tokens(), ESTIMATE);
        let (model, spending) = counted(ScriptedModel::default().then(Err(gone())));
        model.ask(request()).await.unwrap_err();
        assert_eq!(spending.tokens(), TokenUsage::default());
    }

    #[tokio::test]
    async fn what_the_provider_counted_is_not_estimated() {
        let (model, spending) = counted(ScriptedModel::default().says("hello"));
        model.ask(request()).await.unwrap();
        assert_eq!(
            spending.tokens(),
            TokenUsage {
                input: 10,
                output: 5,
                cached: 0,
                estimated: false
            }
        );
    }
}
