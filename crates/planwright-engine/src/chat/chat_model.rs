//! The model that a conversation is with.

use super::unfinished::Unfinished;
use crate::port::{BoxFuture, Model, ModelAnswer, ModelError, ModelInfo, ModelRequest, TextSink};
use planwright_core::model::{ModelRole, ModelUse, TokenUsage};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// The end of an answer that a person did not want to hear to its end.
const INTERRUPTED: &str = "[interrupted by the user]";

/// Stands for an answer that is empty.
const NOTHING: &str = "[the model said nothing]";

/// The model for chats, or the one the person chose. The listener hears every piece of its text,
/// and can interrupt it: an answer that is interrupted ends where it is. An answer that does not
/// come is a turn that says so: a provider that is down for a moment ends no conversation.
#[derive(Clone)]
pub struct ChatModel {
    inner: Arc<dyn Model>,
    chosen: Arc<Mutex<Option<String>>>,
    heard: TextSink,
    interrupted: Arc<watch::Sender<bool>>,
    failed: Arc<Mutex<Option<ModelError>>>,
    asked: Arc<AtomicBool>,
}

impl fmt::Debug for ChatModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatModel")
            .field("chosen", &self.chosen())
            .finish_non_exhaustive()
    }
}

impl ChatModel {
    /// Wraps a model for one conversation, which may have chosen a model by name.
    pub fn new(inner: Arc<dyn Model>, chosen: Option<String>, heard: TextSink) -> Self {
        let chosen = Arc::new(Mutex::new(chosen));
        let interrupted = Arc::new(watch::Sender::new(false));
        Self {
            inner,
            chosen,
            heard,
            interrupted,
            failed: Arc::default(),
            asked: Arc::default(),
        }
    }

    /// From here on this model answers.
    pub fn choose(&self, name: String) -> Result<ModelInfo, ModelError> {
        let found = self.inner.resolve(ModelRole::Chat, Some(&name))?;
        *self.chosen.lock().unwrap_or_else(PoisonError::into_inner) = Some(name);
        Ok(found)
    }

    /// The model that answers now.
    pub fn current(&self) -> Result<ModelInfo, ModelError> {
        self.inner
            .resolve(ModelRole::Chat, self.chosen().as_deref())
    }

    /// Ends the answer that is being given, and every other until [`ChatModel::listen`].
    pub fn interrupt(&self) {
        self.interrupted.send_replace(true);
    }

    /// The person wants to hear answers again.
    pub fn listen(&self) {
        self.interrupted.send_replace(false);
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.asked.store(false, Ordering::SeqCst);
    }

    /// Returns whether it was asked anything since then. What was said before a crash is not said
    /// again.
    pub fn was_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    /// Returns why the last answer is none, if it is none.
    pub fn last_error(&self) -> Option<ModelError> {
        self.failed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn chosen(&self) -> Option<String> {
        self.chosen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Model for ChatModel {
    fn models(&self) -> Vec<ModelInfo> {
        self.inner.models()
    }

    fn resolve(&self, _: ModelRole, _: Option<&str>) -> Result<ModelInfo, ModelError> {
        self.current()
    }

    fn price_use(
        &self,
        _: ModelRole,
        _: Option<&str>,
        usage: TokenUsage,
    ) -> Result<ModelUse, ModelError> {
        self.inner
            .price_use(ModelRole::Chat, self.chosen().as_deref(), usage)
    }

    fn ask(
        &self,
        mut request: ModelRequest,
    ) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        let asked = match self.current() {
            Ok(asked) => asked.name,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        self.asked.store(true, Ordering::SeqCst);
        (request.role, request.model) = (ModelRole::Chat, self.chosen());
        let heard = self.heard.clone();
        let told = request.told.clone();
        let said = Arc::new(Mutex::new(String::new()));
        let saying = Arc::clone(&said);
        request.told = TextSink::new(move |piece| {
            saying
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push_str(piece);
            heard.tell(piece);
            told.tell(piece);
        });
        let mut interrupted = self.interrupted.subscribe();
        let unwanted = request.cancelled.clone();
        let inner = Arc::clone(&self.inner);
        let failed = Arc::clone(&self.failed);
        let open = Unfinished::new(&self.inner, &request);
        Box::pin(async move {
            let mut begun = false;
            let stopped = async {
                // The sender lives as long as the model, which may be dropped before its answer
                // comes.
                if interrupted.wait_for(|stop| *stop).await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                biased;
                () = stopped => {
                    unwanted.cancel();
                    let text = std::mem::take(&mut *said.lock().unwrap_or_else(PoisonError::into_inner));
                    let used = if begun { open.estimate_use(text.len()) } else { None };
                    Ok(noted(&text, INTERRUPTED, used.unwrap_or_else(|| nothing(asked))))
                }
                answer = async { begun = true; inner.ask(request).await } => match answer {
                    Ok(answer) if answer.calls.is_empty() && answer.text.trim().is_empty() => {
                        Ok(ModelAnswer { text: NOTHING.to_owned(), ..answer })
                    }
                    Ok(answer) => Ok(answer),
                    Err(error) if ends_conversation(&error) => Err(error),
                    Err(error) => {
                        let text = std::mem::take(&mut *said.lock().unwrap_or_else(PoisonError::into_inner));
                        let note = format!("[no answer: {error}]");
                        let used = open.used_until(&error, text.len()).unwrap_or_else(|| nothing(asked));
                        *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                        Ok(noted(&text, &note, used))
                    }
                },
            }
        })
    }
}

/// Returns whether there is no use in saying anything more. After any other error of a provider,
/// the person may say something else.
fn ends_conversation(error: &ModelError) -> bool {
    matches!(
        error,
        ModelError::Cancelled | ModelError::NotConfigured { .. } | ModelError::Unknown { .. }
    )
}

/// What was said until it ended, and why it did.
fn noted(said: &str, why: &str, used: ModelUse) -> ModelAnswer {
    let text = if said.is_empty() {
        why.to_owned()
    } else {
        format!("{said} {why}")
    };
    ModelAnswer {
        text,
        calls: Vec::new(),
        used,
        cut: false,
    }
}

/// The use of no tokens: nothing was asked, or no provider worked on it.
fn nothing(model: String) -> ModelUse {
    ModelUse {
        role: ModelRole::Chat,
        model,
        usage: TokenUsage::default(),
        cost: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::endless::Endless;
    use super::*;
    use crate::memory::ScriptedModel;
    use planwright_core::model::Message;

    fn request() -> ModelRequest {
        ModelRequest::new(ModelRole::Executor, vec![Message::user("Tell me a story.")])
    }

    #[tokio::test]
    async fn an_answer_that_is_interrupted_ends_where_it_is() {
        let heard: Arc<Mutex<String>> = Arc::default();
        let hearing = Arc::clone(&heard);
        let sink = TextSink::new(move |piece| hearing.lock().unwrap().push_str(piece));
        let model = ChatModel::new(
            Arc::new(Endless {
                says: "Once upon",
                gives_up: None,
            }),
            None,
            sink,
        );
        let asked = request();
        let unwanted = asked.cancelled.clone();
        let (answer, ()) = tokio::join!(model.ask(asked), async {
            while heard.lock().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
            model.interrupt();
        });
        let answer = answer.unwrap();
        assert_eq!(answer.text, "Once upon [interrupted by the user]");
        // The provider sent no count, so it is estimated from the question and the text so far.
        let estimate = TokenUsage {
            input: 4,
            output: 3,
            cached: 0,
            estimated: true,
        };
        assert_eq!(
            (answer.used.role, answer.used.usage),
            (ModelRole::Chat, estimate)
        );
        assert!(unwanted.is_cancelled());
        // Until the person listens again, nothing is asked at all.
        let unasked = model.ask(request()).await.unwrap();
        assert_eq!(
            (unasked.text.as_str(), unasked.used.usage.total()),
            (INTERRUPTED, 0)
        );
    }

    #[tokio::test]
    async fn the_person_chooses_among_the_models_there_are() {
        let script = ScriptedModel::default().says("hello");
        let model = ChatModel::new(Arc::new(script.clone()), None, TextSink::default());
        assert!(matches!(
            model.choose("nobody/knows".to_owned()),
            Err(ModelError::Unknown { .. })
        ));
        model.choose(ScriptedModel::NAME.to_owned()).unwrap();
        assert_eq!(model.ask(request()).await.unwrap().text, "hello");
        let asked = script.requests().remove(0);
        assert_eq!(
            (asked.role, asked.model.as_deref()),
            (ModelRole::Chat, Some(ScriptedModel::NAME))
        );
    }
}
