//! Asking language models.

use super::BoxFuture;
use planwright_core::model::{
    AnswerSchema, Message, ModelRole, ModelUse, OfferedTool, TokenUsage, WantedCall,
};
use planwright_core::tool::KnownTool;
use std::fmt;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// One question to a model.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// The role, which decides about the model and is counted.
    pub role: ModelRole,
    /// A configured model by name; the one of the role when absent.
    pub model: Option<String>,
    /// The conversation so far, oldest first.
    pub messages: Vec<Message>,
    /// What the model may ask for. Empty: it can only answer.
    pub tools: Vec<OfferedTool>,
    /// The answer must be JSON of this schema. The adapter asks for it in the way the provider
    /// knows; the caller still checks.
    pub schema: Option<AnswerSchema>,
    /// The longest answer, in tokens; the adapter's own limit when absent.
    pub max_tokens: Option<u32>,
    /// Told every piece of text as it comes. It never waits.
    pub told: TextSink,
    /// Cancelled when the answer is no longer wanted.
    pub cancelled: CancellationToken,
}

impl ModelRequest {
    /// Makes a question without tools, schema and limit.
    pub fn new(role: ModelRole, messages: Vec<Message>) -> Self {
        Self {
            role,
            model: None,
            messages,
            tools: Vec::new(),
            schema: None,
            max_tokens: None,
            told: TextSink::default(),
            cancelled: CancellationToken::new(),
        }
    }

    /// Estimates the tokens that an answer of this many bytes takes, for when the provider sends no
    /// count.
    pub fn estimate(&self, answer: usize) -> TokenUsage {
        let input = TokenUsage::estimate(self.length());
        let output = TokenUsage::estimate(answer);
        TokenUsage {
            input,
            output,
            cached: 0,
            estimated: true,
        }
    }

    /// Returns how many bytes are asked.
    fn length(&self) -> usize {
        let said = |message: &Message| match message {
            Message::System { text } | Message::User { text } => text.len(),
            Message::Assistant { text, calls } => {
                text.len()
                    + calls
                        .iter()
                        .map(|call| call.args.to_string().len())
                        .sum::<usize>()
            }
            Message::Tool { text, .. } => text.len(),
        };
        let tool = |tool: &OfferedTool| tool.description.len() + tool.schema.to_string().len();
        self.messages.iter().map(said).sum::<usize>() + self.tools.iter().map(tool).sum::<usize>()
    }
}

/// Takes the text of an answer piece by piece.
#[derive(Clone)]
pub struct TextSink(Arc<dyn Fn(&str) + Send + Sync>);

impl TextSink {
    /// Makes a sink of a function that returns at once.
    pub fn new(sink: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(sink))
    }

    /// Passes on a piece of text.
    pub fn tell(&self, piece: &str) {
        (self.0)(piece);
    }
}

impl Default for TextSink {
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl fmt::Debug for TextSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TextSink")
    }
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelAnswer {
    /// The text of the answer; empty if it consists of calls only.
    pub text: String,
    /// Calls that the model wants to be made.
    pub calls: Vec<WantedCall>,
    /// Tokens and cost of the answer.
    pub used: ModelUse,
    /// The answer was cut off at the limit of tokens: it counts as no answer where a whole one is
    /// needed.
    pub cut: bool,
}

/// Why a model gave no answer. The message never repeats the prompt or a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// No model is configured for the role.
    #[error("no model is configured for the {role}")]
    NotConfigured {
        /// The role.
        role: ModelRole,
    },
    /// No model of this name is configured.
    #[error("there is no model `{name}`")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// The model needs a key and there is none.
    #[error("no API key for `{model}`: {hint}")]
    NoKey {
        /// Name of the model.
        model: String,
        /// The place where the key is looked for.
        hint: String,
    },
    /// The provider understood the request and will not answer it: a wrong key, an unknown model, a
    /// bad request.
    #[error("`{model}` refused: {message}")]
    Refused {
        /// Name of the model.
        model: String,
        /// HTTP status of the answer.
        status: u16,
        /// The provider's reason, bounded in length.
        message: String,
    },
    /// Retries included, the provider did not answer: it is down, overloaded or limits the rate.
    #[error("`{model}` is not available: {message}")]
    Unavailable {
        /// Name of the model.
        model: String,
        /// The last failure.
        message: String,
    },
    /// The answer took too long.
    #[error("`{model}` did not answer within {seconds} s")]
    TimedOut {
        /// Name of the model.
        model: String,
        /// Time that was waited.
        seconds: u64,
    },
    /// The answer broke off or makes no sense.
    #[error("the answer of `{model}` cannot be read: {message}")]
    Unreadable {
        /// Name of the model.
        model: String,
        /// The fault in the answer.
        message: String,
    },
    /// The caller cancelled the question.
    #[error("cancelled")]
    Cancelled,
}

/// What is known about a configured model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// As it is configured, `provider/name`.
    pub name: String,
    /// The roles it is configured for.
    pub roles: Vec<ModelRole>,
    /// Where it is reached.
    pub endpoint: String,
    /// Where its key comes from, and whether it is there. Never the key.
    pub key: Option<KeyState>,
    /// How many tokens it reads at most, if that is known.
    pub context_tokens: Option<u64>,
}

/// The place of a model's key, and its presence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyState {
    /// The variable or file that holds the key.
    pub source: String,
    /// True if the key was found there.
    pub present: bool,
}

/// All models that can be asked, behind one door.
pub trait Model: Send + Sync + fmt::Debug {
    /// The configured models.
    fn models(&self) -> Vec<ModelInfo>;

    /// The model that would be asked.
    fn resolve(&self, role: ModelRole, model: Option<&str>) -> Result<ModelInfo, ModelError>;

    /// What the model that would be asked takes for these tokens: money too, where a price is
    /// known.
    fn price_use(
        &self,
        role: ModelRole,
        model: Option<&str>,
        usage: TokenUsage,
    ) -> Result<ModelUse, ModelError> {
        Ok(ModelUse {
            role,
            model: self.resolve(role, model)?.name,
            usage,
            cost: None,
        })
    }

    /// Asks, with retries where they can help, until there is a whole answer or a reason why there
    /// is none.
    fn ask(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelAnswer, ModelError>>;
}

/// A tool as a model is told of it.
pub(crate) fn offer_tool(tool: &KnownTool) -> OfferedTool {
    OfferedTool {
        name: tool.name.to_string(),
        description: tool.definition.description.clone().unwrap_or_default(),
        schema: tool.definition.input_schema.clone(),
    }
}
