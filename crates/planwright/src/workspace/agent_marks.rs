//! How coding agents show in the environment of the commands they run.
//!
//! The list only grows: a mark makes a command an agent's, and so takes rights away. Configuration
//! can add marks and cannot remove one. Variables that people set to configure an agent are no
//! marks, unless the agent has no other.

/// Each agent and its marks: `NAME` (set to anything, also to nothing), `PREFIX_*`, `NAME=value` or
/// `NAME=start*`.
const KNOWN: &[(&str, &[&str])] = &[
    (
        "claude-code",
        &[
            "CLAUDECODE",
            "CLAUDE_CODE",
            "CLAUDE_CODE_ENTRYPOINT",
            "CLAUDE_CODE_CHILD_SESSION",
            "CLAUDE_CODE_SESSION_ID",
            "CLAUDE_CODE_IS_COWORK",
        ],
    ),
    (
        "codex",
        &[
            "CODEX_SANDBOX",
            "CODEX_SANDBOX_NETWORK_DISABLED",
            "CODEX_CI",
            "CODEX_THREAD_ID",
            "CODEX_INTERNAL_ORIGINATOR_OVERRIDE",
        ],
    ),
    // The trace id is in every terminal of that editor. Its agent uses the same terminals, so there
    // is no telling them apart.
    (
        "cursor",
        &[
            "CURSOR_AGENT",
            "CURSOR_TRACE_ID",
            "CURSOR_EXTENSION_HOST_ROLE=agent-exec",
        ],
    ),
    ("gemini-cli", &["GEMINI_CLI"]),
    ("goose", &["GOOSE_TERMINAL"]),
    // It has no mark of its own, and hands its settings on to what it runs.
    ("aider", &["AIDER_*"]),
    (
        "copilot",
        &[
            "COPILOT_CLI",
            "COPILOT_AGENT",
            "COPILOT_AGENT_*",
            "COPILOT_ALLOW_ALL",
        ],
    ),
    ("opencode", &["OPENCODE", "OPENCODE_CLIENT", "OPENCODE_PID"]),
    ("qwen-code", &["QWEN_CODE"]),
    ("amp", &["AMP_CURRENT_THREAD_ID"]),
    ("augment", &["AUGMENT_AGENT"]),
    ("cline", &["CLINE_ACTIVE"]),
    ("kilo", &["KILO_PID", "KILOCODE_FEATURE"]),
    ("antigravity", &["ANTIGRAVITY_AGENT"]),
    ("crush", &["CRUSH"]),
    ("grok", &["GROK_AGENT"]),
    ("pi", &["PI_CODING_AGENT"]),
    ("trae", &["TRAE_AI_SHELL_ID"]),
    ("amazon-q", &["AWS_EXECUTION_ENV=AmazonQ*"]),
    // Names that several agents use, with the agent's name as the value.
    ("", &["AGENT", "AI_AGENT"]),
];

/// A mark of an agent that was found in the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundMark {
    /// The name of the agent.
    pub(super) agent: String,
    /// The variable that shows it.
    pub(super) variable: String,
}

/// Finds the first mark in these variables: of a known agent, or one that configuration adds.
pub(super) fn find_mark<'a>(
    variables: &[(String, String)],
    added: impl IntoIterator<Item = &'a String>,
) -> Option<FoundMark> {
    let known = KNOWN
        .iter()
        .flat_map(|&(agent, marks)| marks.iter().map(move |&mark| (agent, mark)));
    let added = added.into_iter().map(|mark| ("", mark.as_str()));
    known.chain(added).find_map(|(agent, mark)| {
        let (variable, value) = variables
            .iter()
            .find(|(name, value)| matches_mark(mark, name, value))?;
        Some(FoundMark {
            agent: name_agent(agent, variable, value),
            variable: variable.clone(),
        })
    })
}

/// An agent that has no name here is called by the value of its mark, else by the mark itself.
fn name_agent(agent: &str, variable: &str, value: &str) -> String {
    let says_name = value.len() > 1 && value.chars().all(|c| c.is_ascii_graphic());
    match agent {
        "" if says_name => value.to_owned(),
        "" => variable.to_owned(),
        known => known.to_owned(),
    }
}

fn matches_mark(mark: &str, name: &str, value: &str) -> bool {
    match mark.split_once('=') {
        None => matches_text(mark, name),
        Some((variable, wanted)) => {
            variable == name && matches_text(&wanted.to_lowercase(), &value.to_lowercase())
        }
    }
}

fn matches_text(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => text.starts_with(start),
        None => pattern == text,
    }
}

/// Returns what is wrong with a mark that a file adds.
pub(crate) fn check_mark(mark: &str) -> Result<(), String> {
    let name = mark.split_once('=').map_or(mark, |(name, _)| name);
    let name = name.strip_suffix('*').unwrap_or(name);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(is_name) || mark.len() > 200 {
        return Err(format!(
            "{mark:?} is no mark: write NAME, PREFIX_* or NAME=value"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)], added: &[&str]) -> Option<(String, String)> {
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        let variables: Vec<_> = variables.iter().map(owned).collect();
        let added: Vec<String> = added.iter().map(|&mark| mark.to_owned()).collect();
        find_mark(&variables, &added).map(|mark| (mark.agent, mark.variable))
    }

    #[test]
    fn known_agents_are_recognised_by_what_they_set() {
        for (variable, value, agent) in [
            ("CLAUDECODE", "1", "claude-code"),
            ("CODEX_SANDBOX", "seatbelt", "codex"),
            ("CODEX_THREAD_ID", "t", "codex"),
            ("CURSOR_AGENT", "1", "cursor"),
            ("CURSOR_EXTENSION_HOST_ROLE", "agent-exec", "cursor"),
            ("GEMINI_CLI", "1", "gemini-cli"),
            ("GOOSE_TERMINAL", "1", "goose"),
            ("AIDER_MODEL", "x", "aider"),
            ("COPILOT_CLI", "1", "copilot"),
            ("COPILOT_AGENT_JOB_ID", "7", "copilot"),
            ("AGENT", "amp", "amp"),
            ("AI_AGENT", "crush", "crush"),
            (
                "AWS_EXECUTION_ENV",
                "AmazonQ-For-CLI Version/1.1",
                "amazon-q",
            ),
        ] {
            let wanted = Some((agent.to_owned(), variable.to_owned()));
            assert_eq!(found(&[("PATH", "/bin"), (variable, value)], &[]), wanted);
        }
    }

    #[test]
    fn people_have_no_marks() {
        let shell = [
            ("PATH", "/bin"),
            ("SSH_AGENT_PID", "1"),
            ("CODEX_HOME", "/home/me/.codex"),
            ("CURSOR_EXTENSION_HOST_ROLE", "user"),
            ("AWS_EXECUTION_ENV", "CloudShell"),
            ("COPILOT_MODEL", "x"),
        ];
        assert_eq!(found(&shell, &[]), None);
    }

    #[test]
    fn a_mark_set_to_nothing_or_to_zero_is_a_mark() {
        assert!(found(&[("CLAUDECODE", "")], &[]).is_some());
        assert!(found(&[("GEMINI_CLI", "0")], &[]).is_some());
        let unnamed = Some(("AGENT".to_owned(), "AGENT".to_owned()));
        assert_eq!(found(&[("AGENT", "1")], &[]), unnamed);
    }

    #[test]
    fn configuration_adds_marks() {
        let shell = [("OUR_BOT", "helper"), ("THEIRS_ID", "1")];
        let helper = Some(("helper".to_owned(), "OUR_BOT".to_owned()));
        assert_eq!(found(&shell, &["OUR_BOT"]), helper);
        assert_eq!(found(&shell, &["OUR_BOT=help*"]), helper);
        assert_eq!(found(&shell, &["OUR_BOT=other"]), None);
        assert!(found(&shell, &["THEIRS_*"]).is_some());
        for wrong in ["", "*", "A B", "=x", "Ä"] {
            assert!(check_mark(wrong).is_err(), "{wrong}");
        }
    }
}
