//! Providers that need no description: where they are, and which variable holds their key.

use super::options::{ProviderKind, ProviderOptions};
use crate::secrets::SecretSource;

/// Name, format, place, variable of the key, variable of another place.
type Known = (
    &'static str,
    ProviderKind,
    &'static str,
    Option<&'static str>,
    Option<&'static str>,
);

const KNOWN: [Known; 8] = [
    (
        "openai",
        ProviderKind::OpenAi,
        "https://api.openai.com/v1",
        Some("OPENAI_API_KEY"),
        Some("OPENAI_BASE_URL"),
    ),
    (
        "anthropic",
        ProviderKind::Anthropic,
        "https://api.anthropic.com/v1",
        Some("ANTHROPIC_API_KEY"),
        Some("ANTHROPIC_BASE_URL"),
    ),
    (
        "gemini",
        ProviderKind::Gemini,
        "https://generativelanguage.googleapis.com/v1beta",
        Some("GEMINI_API_KEY"),
        Some("GOOGLE_GEMINI_BASE_URL"),
    ),
    (
        "openrouter",
        ProviderKind::OpenAi,
        "https://openrouter.ai/api/v1",
        Some("OPENROUTER_API_KEY"),
        None,
    ),
    // Servers of this machine, at their usual ports. They want no key.
    (
        "ollama",
        ProviderKind::OpenAi,
        "http://127.0.0.1:11434/v1",
        None,
        None,
    ),
    (
        "llamacpp",
        ProviderKind::OpenAi,
        "http://127.0.0.1:8080/v1",
        None,
        None,
    ),
    (
        "lmstudio",
        ProviderKind::OpenAi,
        "http://127.0.0.1:1234/v1",
        None,
        None,
    ),
    (
        "vllm",
        ProviderKind::OpenAi,
        "http://127.0.0.1:8000/v1",
        None,
        None,
    ),
];

/// The providers that need no description, given the variables of the environment.
pub fn builtin(variable: &dyn Fn(&str) -> Option<String>) -> Vec<(String, ProviderOptions)> {
    let provider = |&(name, kind, place, key, moved): &Known| {
        let moved = moved.and_then(variable).filter(|url| !url.is_empty());
        let place = moved.map_or_else(|| place.to_owned(), |url| versioned(kind, &url));
        let mut options = ProviderOptions::new(kind, place);
        options.key = key.map(|key| SecretSource::Environment(key.to_owned()));
        (name.to_owned(), options)
    };
    KNOWN.iter().map(provider).collect()
}

/// Other programs expect this variable without the version.
fn versioned(kind: ProviderKind, url: &str) -> String {
    let url = url.trim_end_matches('/');
    let version = match kind {
        ProviderKind::OpenAi => "",
        ProviderKind::Anthropic => "/v1",
        ProviderKind::Gemini => "/v1beta",
    };
    if url.ends_with(version) {
        url.to_owned()
    } else {
        format!("{url}{version}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::ModelOptions;
    use super::*;

    #[test]
    fn what_is_built_in_is_sound_and_can_be_moved() {
        let providers = builtin(&|_| None).into_iter().collect();
        assert_eq!(
            ModelOptions {
                providers,
                ..ModelOptions::default()
            }
            .check(),
            Ok(())
        );
        let moved = builtin(&|name| {
            name.ends_with("_BASE_URL")
                .then(|| "http://127.0.0.1:1/".to_owned())
        });
        let place = |wanted: &str| {
            moved
                .iter()
                .find(|(name, _)| name == wanted)
                .map(|(_, options)| options.base_url.as_str())
        };
        assert_eq!(place("openai"), Some("http://127.0.0.1:1"));
        assert_eq!(place("anthropic"), Some("http://127.0.0.1:1/v1"));
        assert_eq!(place("gemini"), Some("http://127.0.0.1:1/v1beta"));
    }
}
