//! Talking with a model that can use the tools.

use crate::service::Served;
use planwright_testing::provider::{Provider, ScriptedReply};
use planwright_testing::terminal::Terminal;
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::{Bench, Said, said};
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::Stdio;

/// A workspace whose model answers with these.
fn bench(replies: impl IntoIterator<Item = ScriptedReply>) -> (Bench, Provider) {
    configured(Provider::scripted(replies), "")
}

fn configured(provider: Provider, more: &str) -> (Bench, Provider) {
    let bench = Bench::new();
    bench.configure(&format!("{more}\n{}", provider.config()));
    (bench, provider)
}

/// What the chat says to these lines.
fn chat(bench: &Bench, args: &[&str], lines: &str) -> Said {
    let args: Vec<&str> = ["chat"].into_iter().chain(args.iter().copied()).collect();
    typed(bench.command(&args), lines)
}

fn typed(mut command: std::process::Command, lines: &str) -> Said {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A program that has heard enough reads no further.
    drop(child.stdin.take().unwrap().write_all(lines.as_bytes()));
    said(child.wait_with_output().unwrap())
}

/// The only conversation of a workspace.
fn conversation(bench: &Bench) -> Option<String> {
    let listed = bench
        .run(&["list", "--label", "chat", "--json"])
        .ends(0)
        .json();
    listed
        .as_array()
        .unwrap()
        .first()
        .map(|plan| plan["id"].as_str().unwrap().to_owned())
}

fn append(text: &str) -> ScriptedReply {
    ScriptedReply::calls([(
        "local__append_file",
        json!({ "path": "effects.txt", "content": format!("{text}\n") }),
    )])
}

/// What the model was told in the last message of a request.
fn last_message(provider: &Provider, request: usize) -> Value {
    provider.asked()[request].body["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone()
}

const APPENDING_IS_ALLOWED: &str =
    "[[policy.rules]]\ntool = \"local.append_file\"\nthen = \"allow\"\n";

#[test]
fn what_the_model_says_is_data_and_everything_else_is_talk() {
    let (bench, provider) = bench([
        ScriptedReply::text("Hello there."),
        ScriptedReply::text("Still\nhere."),
    ]);
    let said = chat(&bench, &[], "hi ${HOME}\nare you there?\n").ends(0);
    assert_eq!(said.out, "Hello there.\nStill\nhere.\n");
    assert!(
        said.err.contains("240 tokens (200 in, 40 out), 0 calls"),
        "{}",
        said.err
    );
    let id = conversation(&bench).unwrap();
    assert!(
        said.err
            .contains(&format!("To continue: planwright chat --resume {id}")),
        "{}",
        said.err
    );
    // The person's words arrive as they were typed, and the whole conversation with them.
    let messages = provider.asked()[1].body["messages"].clone();
    let texts: Vec<&str> = messages
        .as_array()
        .unwrap()
        .iter()
        .skip(1)
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["hi ${HOME}", "Hello there.", "are you there?"]);
    // It is a plan like any other, and left out of the list of plans.
    assert_eq!(bench.run(&["list", "--json"]).ends(0).json(), json!([]));
    assert_eq!(
        bench.run(&["list", "--all", "--json"]).ends(0).json()[0]["id"],
        id.as_str()
    );
}

#[test]
fn a_conversation_goes_on_where_it_was() {
    let (bench, provider) = bench([
        ScriptedReply::text("I will remember 42."),
        ScriptedReply::text("It was 42."),
    ]);
    chat(&bench, &[], "remember 42\n").ends(0);
    let id = conversation(&bench).unwrap();
    let said = chat(&bench, &["--resume", &id], "what was it?\n").ends(0);
    assert_eq!(said.out, "I will remember 42.\nIt was 42.\n");
    assert!(
        said.err.contains("240 tokens"),
        "what went before is counted: {}",
        said.err
    );
    assert_eq!(
        provider.asked()[1].body["messages"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
    bench.plan("other", json!([]));
    bench.run(&["import", "other.json"]).ends(0);
    chat(&bench, &["--resume", "other"], "").complains(2, "is no conversation");
}

#[test]
fn calls_that_only_read_are_made_and_shown() {
    let call = ScriptedReply::calls([("local__read_file", json!({ "path": "note.txt" }))]);
    let (bench, provider) = bench([
        call.saying("Let me look."),
        ScriptedReply::text("It says: buy milk."),
    ]);
    bench.write("note.txt", "buy milk");
    let said = chat(&bench, &[], "what is in the note?\n").ends(0);
    assert_eq!(said.out, "Let me look.\nIt says: buy milk.\n");
    assert!(
        said.err
            .contains("→ local.read_file {\"path\":\"note.txt\"}  allowed"),
        "{}",
        said.err
    );
    assert!(said.err.contains("✓ local.read_file  "), "{}", said.err);
    assert!(
        last_message(&provider, 1)["content"]
            .as_str()
            .unwrap()
            .contains("buy milk")
    );
}

#[test]
fn what_changes_something_waits_for_a_person_and_is_done_once() {
    let (bench, provider) = bench([append("once"), ScriptedReply::text("Done.")]);
    let said = chat(&bench, &[], "note it\n").ends(4);
    assert!(said.err.contains("→ local.append_file"), "{}", said.err);
    assert!(
        said.err.contains("asks: an executor wants this call"),
        "{}",
        said.err
    );
    assert!(!bench.path("effects.txt").exists());
    let hint = said
        .err
        .lines()
        .find_map(|line| line.strip_prefix("hint: planwright approve "))
        .unwrap();
    let approve: Vec<&str> = ["approve"]
        .into_iter()
        .chain(hint.split_whitespace())
        .collect();
    bench.run(&approve).ends(0);
    let id = conversation(&bench).unwrap();
    let said = chat(&bench, &["--resume", &id], "").ends(0);
    assert_eq!(said.out, "Done.\n");
    assert_eq!(bench.read("effects.txt"), "once\n");
    assert_eq!(provider.times_asked(), 2);
}

#[test]
fn the_service_leaves_conversations_out_but_not_what_they_wait_for() {
    let (bench, _provider) = bench([ScriptedReply::text("Hello."), append("once")]);
    chat(&bench, &[], "hi\n").ends(0);
    let idle = conversation(&bench).unwrap();
    chat(&bench, &[], "note it\n").ends(4);
    bench.plan(
        "p",
        json!([{ "id": "a", "tool": "demo.echo", "args": { "value": 7 } }]),
    );
    bench.run(&["import", "p.json"]).ends(0);
    let token = [
        "token", "create", "--role", "viewer", "--kind", "person", "--name", "ada", "--json",
    ];
    let bearer = format!(
        "Bearer {}",
        bench.run(&token).ends(0).json()["token"].as_str().unwrap()
    );
    let served = Served::start(bench.command(&["serve", "--listen", ":0", "--json"]));
    let listed = |path: &str| {
        let answer = served.get(path, &[("authorization", bearer.as_str())]);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        let page: Value = serde_json::from_str(&answer.body).unwrap();
        page["items"].as_array().unwrap().clone()
    };
    let ids = |path: &str| {
        let plans = listed(path);
        plans
            .iter()
            .map(|plan| plan["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids("/plan"), ["p"]);
    assert_eq!(ids("/plan?status=waiting"), [""; 0]);
    assert_eq!(ids("/plan?all=true").len(), 3);
    let chats = ids("/plan?label=chat");
    assert!(chats.len() == 2 && chats.contains(&idle), "{chats:?}");
    assert_eq!(ids("/plan?label=chat&limit=1").len(), 1);
    let kinds = |path: &str| {
        let waiting = listed(path);
        let kinds = waiting
            .iter()
            .map(|item| item["kind"].as_str().unwrap().to_owned());
        kinds
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
    };
    // The call that the model wants is there; whose turn it is in the other conversation is not.
    assert_eq!(kinds("/approvals"), ["plan", "step"]);
    let call = listed("/approvals")
        .into_iter()
        .find(|item| item["kind"] == "step")
        .unwrap();
    assert!(
        call["planId"] != idle.as_str() && call["step"] == "call",
        "{call}"
    );
    assert_eq!(kinds("/approvals?all=true"), ["input", "plan", "step"]);
}

#[test]
fn a_person_is_shown_the_call_and_says_yes_or_no() {
    for (answer, effects, told) in [
        ("y\n", "once\n", "Result of"),
        ("n\n", "", "said no"),
        ("\n", "", "said no"),
    ] {
        let (bench, provider) = bench([append("once"), ScriptedReply::text("As you wish.")]);
        let mut terminal = Terminal::start(&bench, &["chat"]);
        terminal.wait_for("› ");
        terminal.types("note it\n");
        terminal.wait_for("Make this call? [y/N]");
        for words in [
            "step call wants to call local.append_file",
            "appends to effects.txt",
            "│ once",
            "call digest sha256:",
        ] {
            assert!(
                terminal.seen().contains(words),
                "{words:?} is not in {}",
                terminal.seen()
            );
        }
        terminal.types(answer);
        wait_until("the answer", || provider.times_asked() == 2);
        wait_until("the prompt", || terminal.seen().matches("› ").count() >= 2);
        terminal.types("/quit\n");
        assert_eq!(terminal.ends(), Some(0));
        assert_eq!(bench.read("effects.txt"), effects);
        let heard = last_message(&provider, 1)["content"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(heard.contains(told), "{answer:?}: {heard}");
    }
}

#[test]
fn what_policy_denies_and_what_is_not_offered_is_refused() {
    let unknown = ScriptedReply::calls([("local__format_disk", json!({}))]);
    let outside = ScriptedReply::calls([("demo__echo", json!({ "value": 1 }))]);
    let provider = Provider::scripted([
        append("never"),
        unknown,
        outside,
        ScriptedReply::text("I cannot."),
    ]);
    let rule = "[[policy.rules]]\ntool = \"local.append_file\"\nthen = \"deny\"\nreason = \"read only today\"\n";
    let (bench, provider) = configured(provider, rule);
    let said = chat(&bench, &["--server", "local"], "note it\n").ends(0);
    assert_eq!(said.out, "I cannot.\n");
    assert_eq!(said.err.matches("  refused: ").count(), 3, "{}", said.err);
    assert!(
        said.err.contains("not available in plan scope"),
        "{}",
        said.err
    );
    assert!(
        last_message(&provider, 1)["content"]
            .as_str()
            .unwrap()
            .contains("read only today")
    );
    assert!(!bench.path("effects.txt").exists());
}

#[test]
fn what_steers_a_terminal_is_taken_out_of_everything_shown() {
    let hostile =
        ScriptedReply::calls([("local__read_file", json!({ "path": "\u{1b}[2J\u{202e}x" }))]);
    let (bench, _provider) = bench([
        hostile,
        ScriptedReply::text("a\u{1b}]0;owned\u{7}b\u{9b}31mc\r\u{200b}d"),
    ]);
    let said = chat(&bench, &[], "hi\n").ends(0);
    for text in [&said.out, &said.err] {
        assert!(
            !text.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}', '\u{200b}', '\r']),
            "{text:?}"
        );
    }
    assert_eq!(said.out, "a]0;ownedb31mc d\n");
}

#[test]
fn with_json_every_event_is_a_line() {
    let call = ScriptedReply::calls([("local__read_file", json!({ "path": "note.txt" }))]);
    let (bench, _provider) = bench([
        call,
        ScriptedReply::text("milk"),
        ScriptedReply::status(500, "{}"),
    ]);
    bench.write("note.txt", "buy milk");
    let said = chat(&bench, &["--json"], "look\n/cost\n/nosuch\nand now?\n").ends(7);
    let events: Vec<Value> = said
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let names: Vec<&str> = events
        .iter()
        .map(|event| event["event"].as_str().unwrap_or("(document)"))
        .collect();
    let expected = [
        "call",
        "result",
        "delta",
        "delta",
        "answer",
        "(document)",
        "error",
        "error",
        "answer",
        "end",
    ];
    assert_eq!(names, expected, "{events:#?}");
    assert_eq!(
        (&events[0]["verdict"], &events[1]["ok"]),
        (&json!("allowed"), &json!(true))
    );
    assert_eq!(events[4]["text"], "milk");
    assert_eq!(events[5]["tokens"], 240);
    assert!(
        events[7]["error"]
            .as_str()
            .unwrap()
            .contains("scripted/model"),
        "{}",
        events[7]
    );
    assert_eq!(
        events[9]["planId"].as_str(),
        conversation(&bench).as_deref()
    );
}

#[test]
fn a_provider_that_fails_ends_no_conversation() {
    let (bench, provider) = bench([
        ScriptedReply::status(500, "{}"),
        ScriptedReply::text("Here I am."),
        ScriptedReply::text("cut").cut(2),
    ]);
    let said = chat(&bench, &[], "hi\nonce more\n").ends(0);
    assert!(
        said.err.contains("error: ") && said.out.ends_with("Here I am.\n"),
        "{said:?}"
    );
    assert_eq!(
        provider.asked()[1].body["messages"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()["content"],
        "once more"
    );
    let id = conversation(&bench).unwrap();
    chat(&bench, &["--resume", &id], "and now?\n").ends(7);
    assert_eq!(bench.status(&id), "waiting");
}

/// Asks for a story, interrupts it, and waits until the person is asked again.
fn interrupt_a_story(terminal: &mut Terminal, provider: &Provider) {
    terminal.wait_for("› ");
    terminal.types("tell me a story\n");
    wait_until("the question", || provider.times_asked() == 1);
    terminal.interrupt();
    terminal.wait_for("interrupting");
    wait_until("the prompt", || terminal.seen().matches("› ").count() >= 2);
}

#[test]
fn ctrl_c_ends_the_answer_and_the_chat_goes_on() {
    let endless = ScriptedReply::text("Once upon a time there was").hanging(2);
    let (bench, provider) = bench([endless, ScriptedReply::text("Of course.")]);
    let mut terminal = Terminal::start(&bench, &["chat"]);
    interrupt_a_story(&mut terminal, &provider);
    terminal.types("stop\n");
    wait_until("the answer", || provider.times_asked() == 2);
    wait_until("the prompt", || terminal.seen().matches("› ").count() >= 3);
    terminal.types("/quit\n");
    assert_eq!(terminal.ends(), Some(0));
    let messages = provider.asked()[1].body["messages"].clone();
    assert!(
        messages.to_string().contains("[interrupted by the user]"),
        "{messages}"
    );
}

#[test]
fn an_answer_that_is_interrupted_counts_against_the_budget() {
    let endless = ScriptedReply::text("Once upon a time there was").hanging(2);
    let (bench, provider) = configured(Provider::scripted([endless]), "[chat]\nmax_tokens = 30\n");
    let mut terminal = Terminal::start(&bench, &["chat", "--no-tools"]);
    interrupt_a_story(&mut terminal, &provider);
    terminal.types("go on\n");
    terminal.wait_for("the budget of 30 tokens is used up");
    terminal.types("/quit\n");
    assert_eq!(terminal.ends(), Some(0));
    assert!(terminal.seen().contains("estimated"), "{}", terminal.seen());
    // It is in the journal, so it is still spent when the conversation is resumed.
    let id = conversation(&bench).unwrap();
    let said = chat(&bench, &["--resume", &id], "and now?\n");
    assert!(
        said.err.contains("budget of 30 tokens is used up"),
        "{}",
        said.err
    );
    assert_eq!(provider.times_asked(), 1);
}

#[test]
fn what_a_plan_took_before_a_crash_counts_against_the_budget() {
    let plan = json!({ "title": "Read it", "steps": [
        { "id": "s1", "title": "read", "tool": "local.read_file", "args": { "path": "note.txt" }, "dependsOn": [] },
        { "id": "s2", "title": "rest", "tool": "demo.sleep", "args": { "ms": 600_000 }, "dependsOn": ["s1"] },
    ] });
    let wanted = ScriptedReply::calls([("plan_create_and_execute", json!({ "goal": "read it" }))]);
    let provider = Provider::scripted([
        wanted,
        ScriptedReply::json(plan),
        ScriptedReply::text("Enough."),
    ]);
    let (bench, provider) = configured(provider, "[chat]\nmax_calls = 2\n");
    bench.write("note.txt", "buy milk");
    let mut command = bench.command(&["chat", "--plan-tools"]);
    let mut killed = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut typing = killed.stdin.take().unwrap();
    typing.write_all(b"read it\n").unwrap();
    let resting = |entry: &Value| entry["kind"] == "attempt_started" && entry["step"] == "s2";
    wait_until("the second step", || {
        let plans = bench.run(&["list", "--json"]).ends(0).json();
        plans[0]["id"]
            .as_str()
            .is_some_and(|plan| bench.log(plan).iter().any(resting))
    });
    killed.kill().unwrap();
    killed.wait().unwrap();
    drop(typing);
    // Two calls were made, and the second would be made again: there is nothing left for that.
    let id = conversation(&bench).unwrap();
    let said = chat(&bench, &["--resume", &id], "").ends(0);
    assert_eq!(said.out, "Enough.\n", "{}", said.err);
    let told = last_message(&provider, 2)["content"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        told.contains("Guard blocked: the budget of 2 calls is used up"),
        "{told}"
    );
    assert!(
        said.err.contains("360 tokens") && said.err.contains("2 calls of 2"),
        "{}",
        said.err
    );
}

#[test]
fn commands_inside_the_chat_are_those_of_the_command_line() {
    let (bench, provider) = bench([ScriptedReply::text("hello")]);
    bench.plan(
        "p",
        json!([{ "id": "a", "tool": "demo.echo", "args": { "value": 7 } }]),
    );
    bench.run(&["import", "p.json"]).ends(0);
    let lines = "/help\n/plans\n/plan show p\n/plan run p --dry-run\n/plan run p\n/plan-stats\n/tools read_f\n\
        /tools local.read_file\n/servers\n/model\n/model nobody/knows\n/plan show nosuch\n/plan nonsense\n/\n\
        /plan show \"p\n/plan delete p --yes\n/clear\n/cost\nhi\n/quit\nnever said\n";
    let said = chat(&bench, &[], lines).ends(0);
    for words in [
        "/plan create GOAL",
        "Plan p",
        "critical path: a",
        "p completed: 1 of 1 steps",
        "hello",
        "local.read_file",
        "\"inputSchema\"",
        "scripted/model  http://",
        "p  deleted",
        "0 tokens",
    ] {
        assert!(said.out.contains(words), "{words:?} is not in {}", said.out);
    }
    for words in [
        "there is no model `nobody/knows`",
        "nosuch",
        "unrecognized subcommand 'nonsense'",
        "is never closed",
        "hint: /help lists the commands",
    ] {
        assert!(said.err.contains(words), "{words:?} is not in {}", said.err);
    }
    assert_eq!(provider.times_asked(), 1);
    assert!(!said.out.contains("demo.echo") || said.out.contains("[demo.echo]"));
}

#[test]
fn the_model_can_make_and_run_plans_that_only_read() {
    let goal = json!({ "goal": "read the note twice" });
    let plan = json!({ "title": "Read it", "steps": [
        { "id": "s1", "title": "read", "tool": "local.read_file", "args": { "path": "note.txt" }, "dependsOn": [] },
        { "id": "s2", "title": "again", "tool": "local.read_file", "args": { "path": "note.txt" }, "dependsOn": ["s1"] },
    ] });
    let wanted = ScriptedReply::calls([("plan_create_and_execute", goal)]);
    let (bench, provider) = bench([
        wanted,
        ScriptedReply::json(plan),
        ScriptedReply::text("Read twice."),
    ]);
    bench.write("note.txt", "buy milk");
    let said = chat(&bench, &["--plan-tools"], "read the note twice\n").ends(0);
    assert_eq!(said.out, "Read twice.\n", "{}", said.err);
    assert!(
        said.err.contains("→ planwright.plan_create_and_execute"),
        "{}",
        said.err
    );
    assert!(said.err.contains("2 calls"), "{}", said.err);
    let told = last_message(&provider, 2)["content"]
        .as_str()
        .unwrap()
        .to_owned();
    for words in ["\"success\":true", "\"stepsCompleted\":2", "buy milk"] {
        assert!(told.contains(words), "{words:?} is not in {told}");
    }
    let plans = bench.run(&["list", "--json"]).ends(0).json();
    assert_eq!(
        (&plans[0]["title"], &plans[0]["status"]),
        (&json!("Read it"), &json!("completed"))
    );
}

#[test]
fn a_plan_of_the_model_that_changes_something_is_the_persons_to_approve() {
    let plan = json!({ "title": "Note it", "steps": [
        { "id": "s1", "title": "note", "tool": "local.append_file", "dependsOn": [],
          "args": { "path": "effects.txt", "content": "once\n" } },
    ] });
    let script = || {
        let wanted =
            ScriptedReply::calls([("plan_create_and_execute", json!({ "goal": "note it" }))]);
        [
            wanted,
            ScriptedReply::json(plan.clone()),
            ScriptedReply::text("Let us see."),
        ]
    };
    // No person is there: it comes back as pending.
    let (alone, provider) = bench(script());
    chat(&alone, &["--plan-tools"], "note it\n").ends(0);
    let told = last_message(&provider, 2)["content"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        told.contains("pending_approval") && told.contains("planwright approve"),
        "{told}"
    );
    assert!(!alone.path("effects.txt").exists());
    // A person at the terminal is shown the plan and asked.
    for (answer, effects) in [("y\n", "once\n"), ("n\n", "")] {
        let (bench, provider) = bench(script());
        let mut terminal = Terminal::start(&bench, &["chat", "--plan-tools"]);
        terminal.wait_for("› ");
        terminal.types("note it\n");
        terminal.wait_for("Approve and run?");
        assert!(terminal.seen().contains("Note it") && terminal.seen().contains("digest sha256:"));
        terminal.types(answer);
        wait_until("the answer", || provider.times_asked() == 3);
        wait_until("the prompt", || terminal.seen().matches("› ").count() >= 2);
        terminal.types("/quit\n");
        assert_eq!(terminal.ends(), Some(0));
        assert_eq!(bench.read("effects.txt"), effects, "{}", terminal.seen());
    }
}

#[test]
fn the_chat_and_the_plans_run_from_it_have_one_budget() {
    let read = || ScriptedReply::calls([("local__read_file", json!({ "path": "note.txt" }))]);
    let plan = json!({ "title": "Read it", "steps": [
        { "id": "s1", "title": "read", "tool": "local.read_file", "args": { "path": "note.txt" }, "dependsOn": [] },
        { "id": "s2", "title": "again", "tool": "local.read_file", "args": { "path": "note.txt" }, "dependsOn": ["s1"] },
    ] });
    let wanted = ScriptedReply::calls([("plan_create_and_execute", json!({ "goal": "read it" }))]);
    let provider = Provider::scripted([
        read(),
        wanted,
        ScriptedReply::json(plan),
        read(),
        ScriptedReply::text("Enough."),
    ]);
    let (bench, provider) = configured(provider, "[chat]\nmax_calls = 2\n");
    bench.write("note.txt", "buy milk");
    let said = chat(&bench, &["--plan-tools"], "read it\n").ends(0);
    let told = |request: usize| {
        last_message(&provider, request)["content"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(
        told(3).contains("Guard blocked: the budget of 2 calls is used up"),
        "{}",
        told(3)
    );
    assert!(
        told(4).contains("Guard blocked: the budget of 2 calls is used up"),
        "{}",
        told(4)
    );
    assert!(said.err.contains("2 calls of 2"), "{}", said.err);
}

#[test]
fn wherever_the_chat_is_killed_it_goes_on_and_the_effect_happens_once() {
    let answering = || {
        Provider::answering(|asked| {
            match asked.body["messages"].as_array().unwrap().last().unwrap()["role"].as_str() {
                Some("tool") => ScriptedReply::text("Done."),
                _ => append("once"),
            }
        })
    };
    let (bench, provider) = configured(answering(), APPENDING_IS_ALLOWED);
    let mut counted = bench.command(&["chat"]);
    counted.env("PLANWRIGHT_CRASH_COUNT", bench.path("points"));
    assert_eq!(typed(counted, "note it\n").ends(0).out, "Done.\n");
    drop(provider);
    let points: usize = bench.read("points").parse().unwrap();
    assert!(points > 10, "{points}");
    // Every few points; which ones differs with the number of them.
    for at in (1..=points).step_by(points.div_ceil(12)) {
        let (bench, _provider) = configured(answering(), APPENDING_IS_ALLOWED);
        let mut killed = bench.command(&["chat"]);
        killed.env("PLANWRIGHT_CRASH_AT", at.to_string());
        typed(killed, "note it\n");
        let done = match conversation(&bench) {
            Some(id) if !bench.log(&id).is_empty() => chat(&bench, &["--resume", &id], ""),
            // It was killed before anything was said.
            Some(_) | None => chat(&bench, &[], "note it\n"),
        };
        let effects = bench.read("effects.txt").lines().count();
        match done.code {
            0 => assert_eq!(
                (effects, done.out.ends_with("Done.\n")),
                (1, true),
                "{at}: {done:?}"
            ),
            // It is unknown whether it happened: a person is asked, and nothing is called again.
            4 => assert!(
                effects <= 1 && done.err.contains("planwright resolve"),
                "{at}: {done:?}"
            ),
            _ => panic!("{at}: {done:?}"),
        }
    }
}

#[test]
fn without_a_model_there_is_nobody_to_talk_to() {
    let bench = Bench::new();
    let said = chat(&bench, &[], "hi\n").complains(7, "no model is configured for the chat");
    assert!(
        said.err.contains("hint: set PLANWRIGHT_MODEL"),
        "{}",
        said.err
    );
    let (bench, _provider) = self::bench([]);
    chat(&bench, &["--model", "nobody/knows"], "hi\n").complains(7, "nobody/knows");
    chat(&bench, &["--server", "nosuch"], "hi\n").complains(2, "no file names a server `nosuch`");
}

#[test]
fn lines_that_end_in_a_backslash_are_one_message_and_long_ones_are_not_sent() {
    let (bench, provider) = bench([ScriptedReply::text("ok"), ScriptedReply::text("ok")]);
    let long = "x".repeat(300 << 10);
    let said = chat(
        &bench,
        &["--no-tools"],
        &format!("one\\\ntwo\n\n   \n{long}\nthree\n"),
    )
    .ends(0);
    assert!(said.err.contains("the message is too long"), "{}", said.err);
    let texts = |request: usize| {
        last_message(&provider, request)["content"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        (texts(0).as_str(), texts(1).as_str()),
        ("one\ntwo", "three")
    );
    assert!(provider.asked()[0].body.get("tools").is_none());
}

/// Waits until the editor is there again after these words: before that the terminal takes keys for
/// its own.
fn prompt_after(terminal: &Terminal, words: &str) {
    wait_until(words, || {
        terminal
            .seen()
            .rsplit_once(words)
            .is_some_and(|(_, after)| after.contains('›'))
    });
}

#[test]
fn at_a_terminal_there_is_a_line_editor_with_a_history_of_ones_own() {
    use std::os::unix::fs::MetadataExt as _;
    let (bench, provider) = bench([
        ScriptedReply::text("Hello there."),
        ScriptedReply::text("Again."),
    ]);
    let mut command = bench.command(&["chat"]);
    command.env("TERM", "xterm");
    let mut terminal = Terminal::whole(command);
    prompt_after(&terminal, "chatting with");
    terminal.types("hi there\r");
    prompt_after(&terminal, "Hello there.");
    // The arrow brings back what was typed before.
    terminal.types("\u{1b}[A\r");
    prompt_after(&terminal, "Again.");
    assert_eq!(last_message(&provider, 1)["content"], "hi there");
    terminal.types("\u{4}");
    assert_eq!(terminal.ends(), Some(0));
    let history = bench.home().join(".local/state/planwright/chat_history");
    assert_eq!(std::fs::metadata(&history).unwrap().mode() & 0o777, 0o600);
    let kept = std::fs::read_to_string(&history).unwrap();
    assert!(kept.contains("hi there"), "{kept}");
}
