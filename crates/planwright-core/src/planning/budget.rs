//! Budgets for the parts of a prompt. Tokens are estimated: four characters each.

/// Estimates the tokens of a text.
pub fn estimate_tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

/// Tokens for each part of a planner's prompt. Parts that do not fit are left out, and the prompt
/// says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptBudget {
    /// The tools.
    pub catalog: usize,
    /// Of these, the tools that everything is told about.
    pub detailed: usize,
    /// The workspace.
    pub snapshot: usize,
    /// Texts the caller gives.
    pub context: usize,
    /// Open comments, rejections, requests for changes.
    pub remarks: usize,
    /// The plan that is to be changed, and how it went.
    pub plan: usize,
    /// The answer that is sent back to be repaired, and what is wrong with it.
    pub repair: usize,
    /// The schema of the answer, in bytes: beyond this it says less.
    pub schema_bytes: usize,
    /// True if the model reads so little that everything but the necessary is left out.
    pub small: bool,
}

impl Default for PromptBudget {
    fn default() -> Self {
        Self {
            catalog: 13_000,
            detailed: 3_200,
            snapshot: 2_000,
            context: 12_000,
            remarks: 3_000,
            plan: 12_000,
            repair: 6_000,
            schema_bytes: 48 << 10,
            small: false,
        }
    }
}

impl PromptBudget {
    /// A model that reads no more than this is told only what it needs.
    const SMALL: u64 = 8_192;

    /// Returns the budget for a model that reads this many tokens. A good part is left for its
    /// answer.
    pub fn of(context_tokens: Option<u64>) -> Self {
        let full = Self::default();
        let Some(context) = context_tokens else {
            return full;
        };
        let context = usize::try_from(context).unwrap_or(usize::MAX);
        let share = |percent: usize, most: usize| most.min(context / 100 * percent);
        Self {
            catalog: share(30, full.catalog),
            detailed: share(20, full.detailed),
            snapshot: share(4, full.snapshot),
            context: share(8, full.context),
            remarks: share(5, full.remarks),
            plan: share(12, full.plan),
            repair: share(15, full.repair),
            small: context <= usize::try_from(Self::SMALL).unwrap_or(usize::MAX),
            ..full
        }
    }

    /// The number of steps that are asked for when the caller does not say.
    pub fn default_steps(&self) -> usize {
        if self.small { 6 } else { 20 }
    }
}
