//! What a server is given to show who asks: values of variables and headers, secrets among them.
//! They are masked wherever they come back.

use super::McpOptions;
use super::child::is_inherited;
use super::oauth::{Bearer, ServerAccount};
use planwright_core::secret::{SecretName, SecretText};
use planwright_core::tool::ToolName;
use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

/// The time a helper has to say which headers are sent.
const HELPER_TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes it may say.
const MAX_HEADERS_BYTES: u64 = 64 << 10;
const MAX_HEADERS: usize = 100;
/// The beginning of a reference to a secret.
const SECRET: &str = "${secret.";
/// The header that a sign-in is sent in.
const AUTHORIZATION: &str = "Authorization";
/// Words in the names of variables that hold something secret.
const SECRET_WORDS: [&str; 8] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "KEY",
    "AUTH",
    "CREDENTIAL",
    "COOKIE",
];

/// Words in the names of headers that hold nothing secret.
const PLAIN_WORDS: [&str; 5] = ["VERSION", "ACCEPT", "AGENT", "REGION", "LANGUAGE"];

/// The variables of a server's process, with their secrets.
pub(super) async fn variables(
    server: &str,
    env: &BTreeMap<String, String>,
    options: &McpOptions,
) -> Result<BTreeMap<String, String>, String> {
    let mut given = BTreeMap::new();
    for (name, written) in env {
        let value = with_secrets(server, written, None, options).await?;
        let upper = name.to_ascii_uppercase();
        if value != *written || SECRET_WORDS.iter().any(|word| upper.contains(word)) {
            mask(server, name, &value, options)?;
        }
        given.insert(name.clone(), value);
    }
    Ok(given)
}

/// The headers of a server's requests, with their secrets. Each of them may be one.
pub(super) async fn headers(
    server: &str,
    url: &str,
    headers: &BTreeMap<String, String>,
    options: &McpOptions,
) -> Result<BTreeMap<String, String>, String> {
    let mut given = BTreeMap::new();
    for (name, written) in headers {
        let value = with_secrets(server, written, Some(url), options).await?;
        let upper = name.to_ascii_uppercase();
        if value != *written || !PLAIN_WORDS.iter().any(|word| upper.contains(word)) {
            mask(server, name, &value, options)?;
        }
        given.insert(name.clone(), value);
    }
    Ok(given)
}

/// The person's sign-in, unless the operator gives a token.
pub(super) async fn sign_in(
    account: ServerAccount,
    url: &str,
    headers: &BTreeMap<String, String>,
    options: &Arc<McpOptions>,
) -> Result<Option<Bearer>, String> {
    let has_own = headers
        .keys()
        .any(|name| name.eq_ignore_ascii_case(AUTHORIZATION));
    let Some(tokens) = options.tokens.as_ref().filter(|_| !has_own) else {
        return Ok(None);
    };
    if !tokens.has(&account, url).await? {
        return Ok(None);
    }
    let name = account.server().to_owned();
    let options = Arc::clone(options);
    Ok(Some(Bearer {
        tokens: tokens.clone(),
        account,
        url: url.to_owned(),
        mask: Arc::new(move |token| mask_token(&name, token, &options)),
    }))
}

/// The headers that a command of the operator's prints, as a JSON object.
pub(super) async fn headers_of_helper(
    server: &str,
    url: &str,
    helper: &str,
    options: &McpOptions,
) -> Result<BTreeMap<String, String>, String> {
    let failed = |reason: String| format!("its `headersHelper` failed: {reason}");
    let mut command = Command::new("sh");
    command
        .args(["-c", helper])
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_inherited)))
        .env("PLANWRIGHT_AGENT", server)
        .env("CLAUDE_CODE_MCP_SERVER_NAME", server)
        .env("CLAUDE_CODE_MCP_SERVER_URL", url)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    if let Some(workspace) = &options.workspace {
        command.current_dir(workspace);
    }
    let mut group = options
        .children
        .start(&mut command, None)
        .map_err(|error| failed(error.to_string()))?;
    let stdout = group.take_pipes().stdout;
    let stdout = stdout.ok_or_else(|| failed("it has no output".to_owned()))?;
    let mut said = Vec::new();
    let reading = async {
        let mut bounded = stdout.take(MAX_HEADERS_BYTES + 1);
        bounded.read_to_end(&mut said).await
    };
    let read = tokio::time::timeout(HELPER_TIMEOUT, reading).await;
    let ended = group.kill().await;
    match read {
        Err(_) => {
            let seconds = HELPER_TIMEOUT.as_secs();
            return Err(failed(format!("no answer within {seconds} s")));
        }
        Ok(Err(error)) => return Err(failed(error.to_string())),
        Ok(Ok(_)) => {}
    }
    drop(ended);
    if said.len() as u64 > MAX_HEADERS_BYTES {
        return Err(failed("it says too much".to_owned()));
    }
    let given: BTreeMap<String, String> = serde_json::from_slice(&said)
        .map_err(|_| failed("it did not print an object of texts".to_owned()))?;
    if given.len() > MAX_HEADERS {
        return Err(failed(format!("it names more than {MAX_HEADERS} headers")));
    }
    for (name, value) in &given {
        mask(server, name, value, options)?;
    }
    Ok(given)
}

/// The text with each `${secret.NAME}` replaced.
async fn with_secrets(
    server: &str,
    written: &str,
    url: Option<&str>,
    options: &McpOptions,
) -> Result<String, String> {
    let mut text = String::new();
    let mut rest = written;
    while let Some((before, after)) = rest.split_once(SECRET) {
        let (name, after) = after
            .split_once('}')
            .ok_or_else(|| "a `${secret.` is never closed with `}`".to_owned())?;
        text.push_str(before);
        text.push_str(&secret(server, name, url, options).await?);
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}

async fn secret(
    server: &str,
    name: &str,
    url: Option<&str>,
    options: &McpOptions,
) -> Result<String, String> {
    let name = SecretName::new(name).ok_or_else(|| format!("`{name}` is no name of a secret"))?;
    let secrets = options
        .secrets
        .as_ref()
        .ok_or_else(|| format!("the secret `{name}` cannot be read here"))?;
    let whole = ToolName {
        server: server.to_owned(),
        tool: "*".to_owned(),
    };
    if !secrets.allows(&name, &whole) {
        return Err(format!("the server may not have the secret `{name}`"));
    }
    if let Some(hosts) = secrets.hosts(&name) {
        let host = url
            .and_then(|url| reqwest::Url::parse(url).ok())
            .and_then(|url| url.host_str().map(str::to_owned));
        if !host.is_some_and(|host| hosts.contains(&host)) {
            return Err(format!("the secret `{name}` may not go to this server"));
        }
    }
    let text = secrets
        .get(&name)
        .await
        .map_err(|error| error.to_string())?;
    options
        .redaction
        .learn(&name, &text)
        .map_err(|error| error.to_string())?;
    Ok(text.expose().to_owned())
}

/// Has a value masked from now on. What is too short to be recognised is no secret.
fn mask(server: &str, name: &str, value: &str, options: &McpOptions) -> Result<(), String> {
    let Some((name, text)) = as_secret(server, name, value) else {
        return Ok(());
    };
    let learnt = options.redaction.learn(&name, &text);
    learnt.map_err(|error| error.to_string())
}

/// Has a token masked from now on, which another one takes the place of when it has ended.
fn mask_token(server: &str, token: &str, options: &McpOptions) {
    if let Some((name, text)) = as_secret(server, AUTHORIZATION, token) {
        options.redaction.learn_token(&name, &text);
    }
}

/// A value of a variable or header with a name of its own. `None`: it is too short to be recognised.
fn as_secret(server: &str, name: &str, value: &str) -> Option<(SecretName, SecretText)> {
    // `Bearer` and the like are no part of what is secret.
    let value = value.rsplit(' ').next().unwrap_or(value);
    let text = SecretText::new(value.to_owned()).ok()?;
    let plain =
        format!("{server}-{name}").replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
    let short: String = plain.chars().take(SecretName::MAX_CHARS).collect();
    Some((SecretName::new(&short)?, text))
}
