//! The names by which requests about tasks of the earlier era reach the server.

use rmcp::model::TASKS_EXTENSION_ID;
use serde_json::Value;

const PREFIX: &str = "planwright/";
const CALL: &str = "tools/call";
/// What a request of the modern era says of itself.
const VERSION_META: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_META: &str = "io.modelcontextprotocol/clientCapabilities";
/// The request of a modern client to be told of changes, and what it listens to.
const LISTEN: &str = "subscriptions/listen";
const RESOURCES: &str = "resourceSubscriptions";
/// The addresses of tasks among those of resources.
const TASK: &str = "planwright-task:";
/// Part of every request about a task.
const MARK: &[u8] = b"\"task";

/// What a client of the earlier era wants of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskMethod {
    /// A call that becomes a task.
    Call,
    Get,
    Result,
    List,
    Cancel,
}

impl TaskMethod {
    const ALL: [Self; 5] = [
        Self::Call,
        Self::Get,
        Self::Result,
        Self::List,
        Self::Cancel,
    ];

    /// The method as the protocol has it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Call => CALL,
            Self::Get => "tasks/get",
            Self::Result => "tasks/result",
            Self::List => "tasks/list",
            Self::Cancel => "tasks/cancel",
        }
    }

    /// The method of a request that [`rename`] named.
    pub(super) fn from_renamed(method: &str) -> Option<Self> {
        let own = method.strip_prefix(PREFIX)?;
        Self::ALL.into_iter().find(|method| method.as_str() == own)
    }

    fn of_request(request: &Value) -> Option<Self> {
        let method = request["method"].as_str()?;
        let found = Self::ALL
            .into_iter()
            .find(|known| known.as_str() == method)?;
        let is_wanted = found != Self::Call || request["params"]["task"].is_object();
        is_wanted.then_some(found)
    }
}

/// A message as it reaches the server, if it is about tasks in a way that the library does not know.
pub(crate) fn rename(message: &[u8]) -> Option<Vec<u8>> {
    // Nearly all messages are not, and are read only once.
    if !message.windows(MARK.len()).any(|part| part == MARK) {
        return None;
    }
    let mut request: Value = serde_json::from_slice(message).ok()?;
    if request["method"] == LISTEN {
        hide_task_ids(&mut request["params"])?;
        return serde_json::to_vec(&request).ok();
    }
    let method = TaskMethod::of_request(&request)?;
    if request["params"]["_meta"].get(VERSION_META).is_some() {
        return None;
    }
    request["method"] = Value::String(format!("{PREFIX}{}", method.as_str()));
    serde_json::to_vec(&request).ok()
}

/// Puts the tasks that a modern client wants to hear of where the library looks for what is listened
/// to. Nothing if there are none, or the client did not say that it knows tasks.
fn hide_task_ids(params: &mut Value) -> Option<()> {
    let extensions = params["_meta"][CAPABILITIES_META].get("extensions")?;
    extensions.get(TASKS_EXTENSION_ID)?;
    let wanted = params.get_mut("notifications")?.as_object_mut()?;
    let ids = wanted.remove("taskIds")?;
    let ids = ids.as_array()?.iter().filter_map(Value::as_str);
    let hidden: Vec<Value> = ids.map(|id| format!("{TASK}{id}").into()).collect();
    let resources = wanted
        .entry(RESOURCES)
        .or_insert_with(|| Value::Array(Vec::new()));
    resources.as_array_mut()?.extend(hidden);
    Some(())
}

/// Says in the acknowledgement of what is listened to which tasks are, as the client named them.
pub(crate) fn restore_task_ids(params: &mut Value) -> Option<()> {
    let accepted = params.get_mut("notifications")?.as_object_mut()?;
    let resources = accepted.get_mut(RESOURCES)?.as_array_mut()?;
    let (tasks, others): (Vec<Value>, Vec<Value>) = std::mem::take(resources)
        .into_iter()
        .partition(|uri| uri.as_str().is_some_and(|uri| uri.starts_with(TASK)));
    let is_empty = others.is_empty();
    *resources = others;
    if tasks.is_empty() {
        return None;
    }
    let ids = tasks.iter().filter_map(|uri| task_of(uri.as_str()?));
    let ids: Value = ids.map(Value::from).collect();
    accepted.insert("taskIds".to_owned(), ids);
    if is_empty {
        accepted.remove(RESOURCES);
    }
    Some(())
}

/// The task that is listened to under this address.
pub(crate) fn task_of(uri: &str) -> Option<&str> {
    uri.strip_prefix(TASK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn renamed(request: &Value) -> Option<Value> {
        let renamed = rename(request.to_string().as_bytes())?;
        Some(serde_json::from_slice(&renamed).unwrap())
    }

    fn request(method: &str, params: &Value) -> Value {
        json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
    }

    #[test]
    fn a_request_about_a_task_keeps_everything_but_its_method() {
        let params = json!({ "name": "plan_execute", "arguments": { "planId": "p" }, "task": { "ttl": 1 }, "_meta": { "progressToken": "t" } });
        let own = renamed(&request("tools/call", &params)).unwrap();
        assert_eq!(own, request("planwright/tools/call", &params));
        for method in ["tasks/get", "tasks/result", "tasks/list", "tasks/cancel"] {
            let params = json!({ "taskId": "run_1" });
            let own = renamed(&request(method, &params)).unwrap();
            let name = own["method"].as_str().unwrap();
            assert_eq!(TaskMethod::from_renamed(name).unwrap().as_str(), method);
            assert_eq!(own["params"], params);
        }
    }

    #[test]
    fn the_tasks_that_a_modern_client_listens_to_come_back_as_it_named_them() {
        let knows = json!({ CAPABILITIES_META: { "extensions": { TASKS_EXTENSION_ID: {} } } });
        let wanted = json!({ "taskIds": ["run_1"], "resourceSubscriptions": ["plan://p"] });
        let listen = json!({ "notifications": wanted, "_meta": knows });
        let mut own = renamed(&request(LISTEN, &listen)).unwrap();
        let resources = json!(["plan://p", "planwright-task:run_1"]);
        assert_eq!(
            own["params"]["notifications"],
            json!({ "resourceSubscriptions": resources })
        );
        restore_task_ids(&mut own["params"]).unwrap();
        assert_eq!(own["params"]["notifications"], wanted);
        assert_eq!(restore_task_ids(&mut own["params"]), None);
        // One that does not know tasks hears of none.
        let listen = json!({ "notifications": wanted, "_meta": { CAPABILITIES_META: {} } });
        assert_eq!(renamed(&request(LISTEN, &listen)), None);
    }

    #[test]
    fn other_messages_are_left_as_they_are() {
        let modern = json!({ "taskId": "run_1", "_meta": { VERSION_META: "2026-07-28" } });
        let about_tasks = json!({ "name": "board", "arguments": { "task": { "ttl": 1 } } });
        for other in [
            request("tasks/get", &modern),
            request("tasks/update", &json!({ "taskId": "run_1" })),
            request("tools/call", &about_tasks),
            request("tools/call", &json!({ "name": "board", "task": "text" })),
            request("tools/list", &json!({})),
            json!([request("tasks/get", &json!({}))]),
        ] {
            assert_eq!(renamed(&other), None, "{other}");
        }
        assert_eq!(rename(b"{\"method\":\"tasks/get\""), None);
    }
}
