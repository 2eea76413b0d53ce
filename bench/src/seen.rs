//! What looking at a plan costs whose tools are those of other programs: they were seen before, and
//! are not started.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Servers that the plan uses.
pub(crate) const SERVERS: usize = 5;
/// Tools of each of them.
pub(crate) const TOOLS: usize = 30;
const ROUNDS: usize = 31;

/// Half of the looks took less, and half of them more.
pub(crate) struct SeenLooks {
    /// A process that does nothing but say its version: no look can be faster.
    pub(crate) version: Duration,
    pub(crate) show: Duration,
    /// The first look, which starts the servers.
    pub(crate) first: Duration,
}

pub(crate) fn measure(binary: &Path, dir: &Path) -> Result<SeenLooks> {
    let workspace = dir.join("seen");
    let home = dir.join("seen-home");
    std::fs::create_dir_all(&workspace)?;
    std::fs::create_dir_all(home.join("planwright"))?;
    let starts = dir.join("seen-starts");
    std::fs::write(&starts, "")?;
    let program = std::env::current_exe()?;
    let server = |at: usize| {
        let args = json!(["bench-seen", starts]);
        format!(
            "[servers.s{at}]\ncommand = {:?}\nargs = {args}\n",
            program.display().to_string()
        )
    };
    let configuration: String = (0..SERVERS).map(server).collect();
    std::fs::write(home.join("planwright/planwright.toml"), configuration)?;
    let steps = (0..SERVERS).map(|at| {
        json!({ "id": format!("s{at}"), "tool": format!("s{at}.tool_{at}"), "args": { "text": "x" } })
    });
    let plan =
        json!({ "id": "p", "title": "Five servers", "steps": steps.collect::<Vec<Value>>() });
    std::fs::write(workspace.join("p.json"), plan.to_string())?;
    let look = |args: &[&str]| -> Result<Duration> {
        let started = Instant::now();
        let mut command = Command::new(binary);
        command
            .args(args)
            .current_dir(&workspace)
            .env("PLANWRIGHT_DIR", &workspace)
            .env("XDG_CONFIG_HOME", &home);
        let output = command.stderr(Stdio::null()).output()?;
        let took = started.elapsed();
        ensure!(output.status.success(), "{args:?} fails");
        Ok(took)
    };
    let number_of_starts = || std::fs::metadata(&starts).map(|file| file.len());
    let first = look(&["import", "p.json"])?;
    ensure!(
        number_of_starts()? == SERVERS as u64,
        "each is started once"
    );
    let repeat = |args: &[&str]| -> Result<Duration> {
        let mut times = (0..ROUNDS)
            .map(|_| look(args))
            .collect::<Result<Vec<_>>>()?;
        times.sort();
        Ok(times[ROUNDS / 2])
    };
    let version = repeat(&["version"])?;
    let show = repeat(&["show", "p"])?;
    ensure!(
        number_of_starts()? == SERVERS as u64,
        "none is started again"
    );
    Ok(SeenLooks {
        version,
        show,
        first,
    })
}

/// What a server of the measurement lists. It notes its start in this file.
pub(crate) fn list_tools(starts: &Path) -> Result<Vec<Value>> {
    let mut file = std::fs::File::options().append(true).open(starts)?;
    file.write_all(b".")?;
    Ok((0..TOOLS).map(tool).collect())
}

/// As long as those of real servers are.
fn tool(at: usize) -> Value {
    let fields = ["text", "path", "owner", "repository", "since", "limit"];
    let properties: serde_json::Map<String, Value> = fields
        .iter()
        .map(|field| {
            let about =
                format!("The {field} that is meant, as it is written in the system itself.");
            (
                (*field).to_owned(),
                json!({ "type": "string", "description": about }),
            )
        })
        .collect();
    json!({
        "name": format!("tool_{at}"),
        "description": "Does what its name says, and answers with what was done. ".repeat(6),
        "inputSchema": { "type": "object", "properties": properties, "required": ["text"] },
    })
}
