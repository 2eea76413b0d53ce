//! What the files of a folder may say, each in several ways, and what the oracle knows of it by
//! heart. Way 0 of everything is silence.

use serde_json::json;
use std::collections::BTreeMap;

/// What a file can bring that counts only once a person trusts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Brought {
    Policy,
    RunCommand,
    HttpGet,
    Executor,
    Server,
    Provider,
    Prompt,
}

pub(super) const ALL: [Brought; 7] = [
    Brought::Policy,
    Brought::RunCommand,
    Brought::HttpGet,
    Brought::Executor,
    Brought::Server,
    Brought::Provider,
    Brought::Prompt,
];

/// The policies, as they are written and as they count without trust in them: rules that ask or
/// deny, and how long an approval lasts, stay.
const POLICIES: [(&str, &str); 6] = [
    ("", ""),
    ("[[policy.rules]]\ntool = \"*\"\nthen = \"allow\"\n", ""),
    (
        "[[policy.rules]]\nname = \"mine\"\ntool = \"local.append_file\"\nthen = \"allow\"\n",
        "",
    ),
    (
        "[[policy.rules]]\ntool = \"local.append_file\"\nthen = \"deny\"\n",
        "[[policy.rules]]\ntool = \"local.append_file\"\nthen = \"deny\"\n",
    ),
    (
        "[[policy.rules]]\ntool = \"local.append_file\"\nthen = \"allow\"\n\
         [[policy.rules]]\ntool = \"local.run_command\"\nthen = \"deny\"\n",
        "[[policy.rules]]\ntool = \"local.run_command\"\nthen = \"deny\"\n",
    ),
    (
        "[policy.approval]\nexpires_after = \"1h\"\nuses = 2\n",
        "[policy.approval]\nexpires_after = \"1h\"\n",
    ),
];

/// How many ways there are to write something.
fn ways(of: Brought) -> usize {
    match of {
        Brought::Policy => POLICIES.len(),
        Brought::RunCommand | Brought::HttpGet => 2,
        Brought::Executor | Brought::Server | Brought::Provider | Brought::Prompt => 3,
    }
}

/// Whether this way only tightens, and so needs no trust.
pub(super) fn tightens(of: Brought, way: usize) -> bool {
    way == 0 || of == Brought::Policy && POLICIES[way].0 == POLICIES[way].1
}

/// What a policy says about a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    Allow,
    Ask,
    Deny,
}

/// The policy that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Effective {
    way: usize,
    trusted: bool,
}

impl Effective {
    pub(super) fn new(way: usize, trusted: bool) -> Self {
        Self { way, trusted }
    }

    /// The text that counts. An approval is good under the same text.
    pub(super) fn text(self) -> &'static str {
        let (written, left) = POLICIES[self.way];
        if self.trusted { written } else { left }
    }

    pub(super) fn says(self, tool: &str) -> Says {
        let usual = match tool {
            // It only reads.
            "local.http_get" => Says::Allow,
            _ => Says::Ask,
        };
        match (self.way, tool) {
            // What allows tools says nothing of programs that work on steps.
            (_, "worker") => Says::Ask,
            (1, _) if self.trusted => Says::Allow,
            (2 | 4, "local.append_file") if self.trusted => Says::Allow,
            (3, "local.append_file") | (4, "local.run_command") => Says::Deny,
            _ => usual,
        }
    }

    /// How many runs an approval is good for.
    pub(super) fn uses(self) -> u32 {
        if self.way == 5 && self.trusted { 2 } else { 1 }
    }
}

/// What the files of the folder say now.
#[derive(Debug, Clone, Default)]
pub(super) struct Files {
    ways: BTreeMap<Brought, usize>,
}

impl Files {
    pub(super) fn way(&self, of: Brought) -> usize {
        self.ways.get(&of).copied().unwrap_or_default()
    }

    /// The author of the folder writes something in another way.
    pub(super) fn change(&mut self, of: Brought, draw: impl FnOnce(usize) -> usize) {
        self.ways.insert(of, draw(ways(of)));
    }

    /// `planwright.toml`. `place` is where models and fetches lead.
    pub(super) fn configuration(&self, place: &str) -> String {
        let host = place.trim_start_matches("http://");
        let host = host.split(':').next().unwrap_or_default();
        let executor = self.way(Brought::Executor);
        let provider = self.way(Brought::Provider);
        let said = [
            (true, POLICIES[self.way(Brought::Policy)].0.to_owned()),
            (
                self.way(Brought::RunCommand) == 1,
                "[local]\nrun_command = true\n".to_owned(),
            ),
            (
                self.way(Brought::HttpGet) == 1,
                format!("[local.http_get]\nenabled = true\nallow = [\"{host}\"]\n"),
            ),
            (
                executor > 0,
                format!(
                    "[executors.worker]\ncommand = [\"sh\", \"-c\", \"echo {executor} >> executor.txt; echo {{}}\"]\n"
                ),
            ),
            (
                provider > 0,
                format!(
                    "[models.providers.near]\nkind = \"openai\"\nbase_url = \"{place}/model-{provider}/v1\"\n\
                     retries = 0\n"
                ),
            ),
        ];
        let written = said.into_iter().filter(|(is_said, _)| *is_said);
        written.map(|(_, text)| text).collect()
    }

    /// `.mcp.json`, if there is a server.
    pub(super) fn servers(&self) -> Option<String> {
        let server = self.way(Brought::Server);
        let line = format!("echo {server} >> server.txt");
        let servers = json!({"mcpServers": {"s": {"command": "sh", "args": ["-c", line]}}});
        (server > 0).then(|| servers.to_string())
    }

    /// The prompt for conversations, if there is one.
    pub(super) fn prompt(&self) -> Option<String> {
        let prompt = self.way(Brought::Prompt);
        (prompt > 0).then(|| format!("{} {{{{tools}}}}", told(prompt)))
    }
}

/// What only a prompt of the folder says.
pub(super) fn told(way: usize) -> String {
    format!("OBEY FOLDER {way}")
}
