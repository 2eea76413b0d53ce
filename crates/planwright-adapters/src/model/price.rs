//! Prices of answers.

use planwright_core::model::{Cost, TokenUsage};

/// Dollars per million tokens; the same number is millionths of a dollar per token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// For input that the provider had read before; as much as other input when absent.
    pub cached: Option<f64>,
}

/// List prices as they were published at the end of 2025, by the beginning of a model's name. An
/// operator who pays other prices writes them down.
const KNOWN: [(&str, Price); 14] = [
    ("anthropic/claude-opus-4-5", price(5.0, 25.0, 0.5)),
    ("anthropic/claude-opus-4", price(15.0, 75.0, 1.5)),
    ("anthropic/claude-sonnet-4", price(3.0, 15.0, 0.3)),
    ("anthropic/claude-haiku-4", price(1.0, 5.0, 0.1)),
    ("openai/gpt-5-mini", price(0.25, 2.0, 0.025)),
    ("openai/gpt-5-nano", price(0.05, 0.4, 0.005)),
    ("openai/gpt-5", price(1.25, 10.0, 0.125)),
    ("openai/gpt-4.1-mini", price(0.4, 1.6, 0.1)),
    ("openai/gpt-4.1", price(2.0, 8.0, 0.5)),
    ("openai/gpt-4o-mini", price(0.15, 0.6, 0.075)),
    ("openai/gpt-4o", price(2.5, 10.0, 1.25)),
    ("gemini/gemini-2.5-flash-lite", price(0.1, 0.4, 0.025)),
    ("gemini/gemini-2.5-flash", price(0.3, 2.5, 0.075)),
    ("gemini/gemini-2.5-pro", price(1.25, 10.0, 0.31)),
];

const fn price(input: f64, output: f64, cached: f64) -> Price {
    Price {
        input,
        output,
        cached: Some(cached),
    }
}

impl Price {
    /// The price that is built in, of the longest name that a model's name begins with.
    pub(super) fn built_in(model: &str) -> Option<Self> {
        let matching = KNOWN.iter().filter(|(name, _)| {
            // `gpt-5` is also the beginning of `gpt-5.1-…`, which costs something else.
            model
                .strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        });
        matching
            .max_by_key(|(name, _)| name.len())
            .map(|(_, price)| *price)
    }

    pub(super) fn is_sound(&self) -> bool {
        let all = [self.input, self.output, self.cached.unwrap_or_default()];
        all.iter().all(|dollars| (0.0..1e6).contains(dollars))
    }

    pub(super) fn of(&self, usage: TokenUsage) -> Cost {
        let cached = usage.cached.min(usage.input);
        let dollars = |tokens: u64, price: f64| tokens as f64 * price;
        let total = dollars(usage.input - cached, self.input)
            + dollars(cached, self.cached.unwrap_or(self.input))
            + dollars(usage.output, self.output);
        Cost(total.round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_costs_its_tokens() {
        let usage = TokenUsage {
            input: 1_000_000,
            output: 100_000,
            cached: 400_000,
            estimated: false,
        };
        assert_eq!(
            price(3.0, 15.0, 0.3).of(usage),
            Cost(1_800_000 + 120_000 + 1_500_000)
        );
        let plain = Price {
            input: 3.0,
            output: 15.0,
            cached: None,
        };
        assert_eq!(plain.of(usage), Cost(3_000_000 + 1_500_000));
        let absurd = TokenUsage {
            input: u64::MAX,
            output: u64::MAX,
            cached: u64::MAX,
            estimated: false,
        };
        assert_eq!(price(3.0, 15.0, 3.0).of(absurd), Cost(u64::MAX));
    }

    #[test]
    fn dated_names_have_the_price_of_their_model_and_other_models_have_none() {
        let input = |model| Price::built_in(model).map(|price| price.input);
        assert_eq!(input("anthropic/claude-sonnet-4-5-20250929"), Some(3.0));
        assert_eq!(input("openai/gpt-5-mini"), Some(0.25));
        assert_eq!(input("openai/gpt-5.9"), None);
        assert_eq!(input("local/gpt-5"), None);
        assert!(KNOWN.iter().all(|(_, price)| price.is_sound()));
    }
}
