//! Servers that no person here had anything to do with: one plan each, which reaches into what they
//! answer. Slow and many, so `cargo xtask prove servers` installs them and runs this.

use planwright_testing::peers::{Project, installed, interpreter};
use planwright_testing::steps::call;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

/// A server, its plan, and what a reference into its results comes to.
struct Stranger {
    name: &'static str,
    entry: Value,
    steps: Vec<Value>,
    reference: &'static str,
    expected: Value,
}

fn node(package: &str, file: &str, more: &[&str]) -> Value {
    let script = installed(&format!("node-strangers/node_modules/{package}/{file}"));
    let mut args = vec![json!(script)];
    args.extend(more.iter().map(|word| json!(word)));
    json!({ "command": interpreter("node"), "args": args })
}

fn python(folder: &str, program: &str, args: &[&str]) -> Value {
    json!({ "command": installed(&format!("{folder}/bin/{program}")), "args": args })
}

fn with_env(mut entry: Value, name: &str, value: &str) -> Value {
    entry["env"][name] = json!(value);
    entry
}

const PAGE: &str = r#"{"rows": [{"name": "Ada"}]}"#;

/// Answers each request with a page.
fn serve_page() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = [0; 4096];
            drop(stream.read(&mut asked));
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close";
            drop(write!(
                stream,
                "{head}\r\nContent-Length: {}\r\n\r\n{PAGE}",
                PAGE.len()
            ));
        }
    });
    port
}

fn strangers(project: &Project) -> Vec<Stranger> {
    let file = |name: &str| project.file(name);
    let of_modelcontextprotocol = "@modelcontextprotocol";
    let page = format!("http://127.0.0.1:{}/", serve_page());
    vec![
        Stranger {
            name: "thinking",
            entry: node(
                &format!("{of_modelcontextprotocol}/server-sequential-thinking"),
                "dist/index.js",
                &[],
            ),
            steps: vec![call(
                "s",
                "thinking.sequentialthinking",
                json!({ "thought": "x", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1 }),
                &[],
            )],
            reference: "${s.thoughtHistoryLength}",
            expected: json!(1),
        },
        Stranger {
            name: "pdfs",
            entry: node(
                &format!("{of_modelcontextprotocol}/server-pdf"),
                "dist/index.js",
                &["--stdio"],
            ),
            steps: vec![call("s", "pdfs.list_pdfs", json!({}), &[])],
            reference: "${s.truncated}",
            expected: json!(false),
        },
        Stranger {
            name: "calculator",
            entry: python("py-strangers-early", "mcp-server-calculator", &[]),
            steps: vec![call(
                "s",
                "calculator.calculate",
                json!({ "expression": "6*7" }),
                &[],
            )],
            reference: "${s.result}",
            expected: json!("42"),
        },
        Stranger {
            name: "duck",
            entry: python(
                "py-strangers",
                "mcp-server-motherduck",
                &["--db-path", ":memory:", "--read-write"],
            ),
            steps: vec![call(
                "s",
                "duck.execute_query",
                json!({ "sql": "SELECT 42 AS a, 'x' AS b" }),
                &[],
            )],
            reference: "${s.result.rows[0][0]}",
            expected: json!(42),
        },
        Stranger {
            name: "shell",
            entry: with_env(
                python("py-strangers-early", "mcp-shell-server", &[]),
                "ALLOW_COMMANDS",
                "echo",
            ),
            steps: vec![call(
                "s",
                "shell.shell_execute",
                json!({ "command": ["echo", "{\"a\": [1, 2]}"], "directory": file("files") }),
                &[],
            )],
            reference: "${s.a[1]}",
            expected: json!(2),
        },
        Stranger {
            name: "commands",
            entry: node("mcp-server-commands", "build/index.js", &[]),
            steps: vec![call(
                "s",
                "commands.run_command",
                json!({ "command": "echo '{\"n\": 7}'" }),
                &[],
            )],
            reference: "${s.n}",
            expected: json!(7),
        },
        Stranger {
            name: "runner",
            entry: node("mcp-server-code-runner", "dist/cli.js", &[]),
            steps: vec![call(
                "s",
                "runner.run-code",
                json!({ "code": "print('{\"answer\": [41, 42]}')", "languageId": "python" }),
                &[],
            )],
            reference: "${s.answer[1]}",
            expected: json!(42),
        },
        Stranger {
            name: "tasks",
            entry: with_env(
                node("@kazuph/mcp-taskmanager", "dist/index.js", &[]),
                "TASK_MANAGER_FILE_PATH",
                &file("tasks.json"),
            ),
            steps: vec![
                call(
                    "plan",
                    "tasks.request_planning",
                    json!({ "originalRequest": "r", "tasks": [{ "title": "a", "description": "b" }] }),
                    &[],
                ),
                call(
                    "s",
                    "tasks.get_next_task",
                    json!({ "requestId": "${plan.requestId}" }),
                    &[],
                ),
            ],
            reference: "${plan.tasks[0].id}",
            expected: json!("task-1"),
        },
        Stranger {
            name: "eslint",
            entry: node("@eslint/mcp", "src/mcp-cli.js", &[]),
            steps: vec![call(
                "s",
                "eslint.lint-files",
                json!({ "filePaths": [file("lint/a.js")] }),
                &[],
            )],
            reference: "${s.content[1].text.messages[0].ruleId}",
            expected: json!("no-undef"),
        },
        Stranger {
            name: "pdf",
            entry: node("@sylphlab/pdf-reader-mcp", "dist/src/index.js", &[]),
            steps: vec![call(
                "s",
                "pdf.read_pdf",
                json!({ "sources": [{ "path": "none.pdf" }] }),
                &[],
            )],
            reference: "${s.results[0].success}",
            expected: json!(false),
        },
        Stranger {
            name: "repository",
            entry: [
                ("MCP_TRANSPORT_TYPE", "stdio"),
                ("GIT_COMMITTER_NAME", "Ada"),
                ("GIT_COMMITTER_EMAIL", "ada@example.org"),
            ]
            .into_iter()
            .fold(
                node("@cyanheads/git-mcp-server", "dist/index.js", &[]),
                |entry, (name, value)| with_env(entry, name, value),
            ),
            steps: vec![
                call(
                    "init",
                    "repository.git_init",
                    json!({ "path": file("repo") }),
                    &[],
                ),
                call(
                    "commit",
                    "repository.git_commit",
                    json!({ "path": "${init.path}", "message": "first", "allowEmpty": true,
                            "author": { "name": "Ada", "email": "ada@example.org" } }),
                    &[],
                ),
                call(
                    "s",
                    "repository.git_log",
                    json!({ "path": file("repo") }),
                    &["commit"],
                ),
            ],
            reference: "${s.commits[0].subject}",
            expected: json!("first"),
        },
        Stranger {
            name: "workbooks",
            entry: python("py-strangers", "excel-mcp-server", &["stdio"]),
            steps: vec![
                call(
                    "new",
                    "workbooks.create_workbook",
                    json!({ "path": file("files/a.xlsx") }),
                    &[],
                ),
                call(
                    "s",
                    "workbooks.describe_workbook",
                    json!({ "path": "${new.path}" }),
                    &[],
                ),
            ],
            reference: "${s.sheets[0].name}",
            expected: json!("Sheet1"),
        },
        Stranger {
            name: "excel",
            entry: node("@negokaz/excel-mcp-server", "dist/launcher.js", &[]),
            steps: vec![call(
                "s",
                "excel.excel_describe_sheets",
                json!({ "fileAbsolutePath": file("files/a.xlsx") }),
                &[],
            )],
            reference: "${s.sheets[0].name}",
            expected: json!("Sheet1"),
        },
        Stranger {
            name: "word",
            entry: python("py-strangers", "word_mcp_server", &[]),
            steps: vec![
                call(
                    "new",
                    "word.create_document",
                    json!({ "filename": file("files/a.docx"), "title": "T" }),
                    &[],
                ),
                call(
                    "s",
                    "word.get_document_info",
                    json!({ "filename": file("files/a.docx") }),
                    &["new"],
                ),
            ],
            reference: "${s.title}",
            expected: json!("T"),
        },
        Stranger {
            name: "fetch",
            entry: python(
                "py-strangers",
                "mcp-server-fetch",
                &["--ignore-robots-txt", "--allow-private-ips"],
            ),
            steps: vec![call(
                "page",
                "fetch.fetch",
                json!({ "url": page, "raw": true }),
                &[],
            )],
            reference: "${page}",
            expected: json!(format!(
                "Content type application/json cannot be simplified to markdown, but here is the raw content:\n\
                 Contents of {page}:\n{PAGE}"
            )),
        },
    ]
}

#[test]
#[ignore = "installs many packages: cargo xtask prove servers"]
fn plans_reach_into_the_results_of_servers_of_strangers() {
    let project = Project::with(&[]);
    for (name, text) in [
        (
            "lint/eslint.config.js",
            "export default [{ rules: { \"no-undef\": \"error\" } }];\n",
        ),
        ("lint/package.json", "{\"type\": \"module\"}\n"),
        ("lint/a.js", "export const a = b;\n"),
    ] {
        std::fs::create_dir_all(project.file("lint")).unwrap();
        project.bench.write(name, text);
    }
    std::fs::create_dir_all(project.file("repo")).unwrap();
    let mut failed = Vec::new();
    let all = strangers(&project);
    let count = all.len();
    assert!(count >= 12);
    for stranger in all {
        let Stranger {
            name,
            entry,
            mut steps,
            reference,
            expected,
        } = stranger;
        project.name(&json!({ name: entry }));
        let reach = json!({ "id": "reach", "tool": "demo.echo", "args": { "value": reference } });
        steps.push(reach);
        let plan = project.bench.plan(name, json!(steps));
        let said = project.run(&["run", &plan, "--yes", "--json"]);
        let result: Value = serde_json::from_str(&said.out).unwrap_or_default();
        let reached = result["steps"].as_array().into_iter().flatten();
        let reached = reached
            .filter(|step| step["id"] == "reach")
            .find_map(|step| (step["status"] == "completed").then(|| step["value"].clone()));
        match reached {
            Some(reached) if reached == expected => println!("{name:12}  {reference} is {reached}"),
            other => failed.push(format!(
                "{name}: {other:?} instead of {expected}\n{}\n{}",
                said.out, said.err
            )),
        }
        project.leaves_no_server_behind();
    }
    println!("{} of {count} servers reached into", count - failed.len());
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}
