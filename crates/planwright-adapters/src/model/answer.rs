//! An answer as it comes.

use super::calls::Calls;
use super::failure::{Failure, Judge};
use super::names::Names;
use super::options::{ProviderKind, ProviderOptions};
use futures::StreamExt as _;
use genai::chat::{ChatStream, ChatStreamEvent, StopReason, StreamEnd, Usage};
use planwright_core::model::{TokenUsage, WantedCall, find_json};
use planwright_core::secret::SecretText;
use planwright_engine::port::{ModelError, TextSink};
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;

/// No answer is longer, thoughts included.
const MAX_BYTES: usize = 4 << 20;

/// The reply of a provider to one question.
#[derive(Debug)]
pub(super) struct ProviderReply {
    pub(super) text: String,
    pub(super) calls: Vec<WantedCall>,
    /// Absent where the provider does not count.
    pub(super) usage: Option<TokenUsage>,
    /// The number of characters that came, to estimate tokens from.
    pub(super) length: usize,
    pub(super) cut: bool,
    pub(super) reason: &'static str,
}

/// Reads one answer.
pub(super) struct Reader<'a> {
    pub(super) judge: Judge<'a>,
    pub(super) provider: &'a ProviderOptions,
    pub(super) told: &'a TextSink,
    /// The secret that must not be reported, not even piece by piece.
    pub(super) key: Option<&'a SecretText>,
    pub(super) names: Names,
    /// The answer comes as a call of this name.
    pub(super) answer_name: Option<String>,
    pub(super) structured: bool,
    pub(super) progress: Progress,
}

#[derive(Debug, Default)]
pub(super) struct Progress {
    text: String,
    calls: Calls,
    thoughts: usize,
    /// The beginning of the key, perhaps: what comes next decides whether it is told.
    held: String,
    /// The caller knows a part of the answer.
    told: bool,
}

impl Reader<'_> {
    /// Reads to the end. What is told is told once: after that, a failure is final.
    pub(super) async fn read(mut self, mut stream: ChatStream) -> Result<ProviderReply, Failure> {
        let deadline = Instant::now() + self.provider.timeout;
        let ended = loop {
            match self.next(&mut stream, deadline).await {
                Ok(Some(ChatStreamEvent::End(end))) => break end,
                Ok(Some(event)) => self.take(event).map_err(|failure| self.judged(failure))?,
                Ok(None) => return Err(self.judged(self.broke_off())),
                Err(failure) => return Err(self.judged(failure)),
            }
        };
        self.finish(&ended)
    }

    /// The next event, within the time there is. The library's own words go nowhere, and if it
    /// cannot cope with what a provider sends, only this answer is lost.
    async fn next(
        &self,
        stream: &mut ChatStream,
        deadline: Instant,
    ) -> Result<Option<ChatStreamEvent>, Failure> {
        let left = deadline.saturating_duration_since(Instant::now());
        let next = AssertUnwindSafe(stream.next().with_subscriber(NoSubscriber::new()));
        let patience = self.provider.silence.min(left);
        let Ok(next) = timeout(patience, futures::FutureExt::catch_unwind(next)).await else {
            return Err(Failure::final_(
                self.timed_out(left < self.provider.silence),
            ));
        };
        match next {
            Ok(Some(Ok(event))) => Ok(Some(event)),
            Ok(Some(Err(error))) => Err(self.judge.judge(&error)),
            Ok(None) => Ok(None),
            Err(_) => Err(Failure::unreadable(
                self.judge.model,
                "its figures make no sense",
            )),
        }
    }

    fn timed_out(&self, whole: bool) -> ModelError {
        let waited: Duration = if whole {
            self.provider.timeout
        } else {
            self.provider.silence
        };
        ModelError::TimedOut {
            model: self.judge.model.to_owned(),
            seconds: waited.as_secs().max(1),
        }
    }

    fn broke_off(&self) -> Failure {
        Failure::passing(self.judge.model, "the answer broke off", None)
    }

    fn judged(&self, failure: Failure) -> Failure {
        if self.progress.told {
            failure.after_beginning()
        } else {
            failure
        }
    }

    fn take(&mut self, event: ChatStreamEvent) -> Result<(), Failure> {
        match event {
            ChatStreamEvent::Chunk(chunk) => {
                self.tell(&chunk.content);
                self.progress.text.push_str(&chunk.content);
            }
            ChatStreamEvent::ReasoningChunk(chunk) => self.progress.thoughts += chunk.content.len(),
            ChatStreamEvent::ToolCallChunk(chunk) => self.take_call(&chunk.tool_call)?,
            ChatStreamEvent::Start
            | ChatStreamEvent::ThoughtSignatureChunk(_)
            | ChatStreamEvent::Heartbeat
            | ChatStreamEvent::End(_) => {}
        }
        let Progress {
            text,
            calls,
            thoughts,
            ..
        } = &self.progress;
        if text.len() + calls.length() + thoughts > MAX_BYTES {
            let message = format!("it is longer than {} MiB", MAX_BYTES >> 20);
            return Err(Failure::unreadable(self.judge.model, message).after_beginning());
        }
        Ok(())
    }

    fn take_call(&mut self, call: &genai::chat::ToolCall) -> Result<(), Failure> {
        let args = match &call.fn_arguments {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let calls = &mut self.progress.calls;
        let more = match self.provider.kind {
            ProviderKind::OpenAi => calls
                .add(&call.call_id, &call.fn_name, &args)
                .map(|()| args.as_str()),
            ProviderKind::Anthropic => calls.replace(&call.call_id, &call.fn_name, &args),
            // Made-up ids may be the same in several events, and every event has the whole call.
            ProviderKind::Gemini => {
                let id = format!("{}#{}", call.call_id, calls.count());
                calls
                    .replace(&id, &call.fn_name, &args)
                    .map(|_| args.as_str())
            }
        };
        let more = more.map_err(|_| {
            Failure::unreadable(self.judge.model, "it wants too many calls at once")
        })?;
        // Where the answer is a call, nothing else is called.
        if self.answer_name.is_some() {
            let more = more.to_owned();
            self.tell(&more);
        }
        Ok(())
    }

    fn tell(&mut self, piece: &str) {
        self.progress.held.push_str(piece);
        let held = self
            .key
            .map_or(0, |key| begun(&self.progress.held, key.expose()));
        let rest = self
            .progress
            .held
            .split_off(self.progress.held.len() - held);
        let piece = std::mem::replace(&mut self.progress.held, rest);
        self.pass_on(&piece);
    }

    fn pass_on(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.progress.told = true;
            self.told.tell(&self.judge.redactor.text(piece));
        }
    }

    fn finish(mut self, end: &StreamEnd) -> Result<ProviderReply, Failure> {
        let held = std::mem::take(&mut self.progress.held);
        self.pass_on(&held);
        let Progress {
            text,
            mut calls,
            thoughts,
            told,
            ..
        } = std::mem::take(&mut self.progress);
        let length = text.len() + calls.length() + thoughts;
        let (cut, reason) = match &end.captured_stop_reason {
            Some(StopReason::MaxTokens(_)) => (true, "length"),
            Some(StopReason::ContentFilter(_)) => {
                let message = "the provider's filter stopped the answer".to_owned();
                return Err(Failure::final_(self.judge.refused(200, message)));
            }
            Some(StopReason::ToolCall(_)) => (false, "tool_calls"),
            Some(StopReason::Completed(_) | StopReason::StopSequence(_) | StopReason::Other(_)) => {
                (false, "stop")
            }
            // One format has no other sign of a whole answer than the reason why it ended.
            None if self.provider.kind == ProviderKind::Gemini => {
                let broke_off = self.broke_off();
                return Err(if told {
                    broke_off.after_beginning()
                } else {
                    broke_off
                });
            }
            None => (false, "stop"),
        };
        let as_call = self
            .answer_name
            .as_deref()
            .and_then(|name| calls.take_answer(name));
        let text = as_call.unwrap_or(text);
        let text = if self.structured && !cut {
            read_json(text)
        } else {
            text
        };
        let text = self.judge.redactor.text(&text).into_owned();
        let mut calls = calls.finish(&self.names);
        for call in &mut calls {
            self.judge.redactor.value(&mut call.args);
        }
        let usage = end.captured_usage.as_ref().and_then(counted);
        Ok(ProviderReply {
            text,
            calls,
            usage,
            length,
            cut,
            reason,
        })
    }
}

/// Counts the bytes at the end of a text that are the beginning of a secret.
fn begun(text: &str, secret: &str) -> usize {
    let ends = secret.char_indices().map(|(at, _)| at).filter(|&at| at > 0);
    ends.filter(|&at| text.ends_with(&secret[..at]))
        .max()
        .unwrap_or(0)
}

/// The JSON that was asked for, without what was written around it. Without any, everything that
/// was written.
fn read_json(text: String) -> String {
    if serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok() {
        return text;
    }
    find_json(&text).map_or(text, |value| value.to_string())
}

/// Reads the tokens that the provider counted; `None` if it counted none.
fn counted(usage: &Usage) -> Option<TokenUsage> {
    let tokens = |count: Option<i32>| {
        count
            .and_then(|count| u64::try_from(count).ok())
            .unwrap_or(0)
    };
    let input = tokens(usage.prompt_tokens);
    let output = tokens(usage.completion_tokens);
    let cached = tokens(
        usage
            .prompt_tokens_details
            .as_ref()
            .and_then(|details| details.cached_tokens),
    );
    (input + output > 0).then_some(TokenUsage {
        input,
        output,
        cached: cached.min(input),
        estimated: false,
    })
}
