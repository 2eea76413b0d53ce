use crate::workbench::{Workbench, call};
use planwright_engine::port::{CallError, Tools as _};
use serde_json::json;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Answers each connection with the next of `answers` and reports what it was asked.
fn server(answers: Vec<String>) -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (asked, requests) = channel();
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let request: Vec<String> = BufReader::new(stream.try_clone().unwrap())
                .lines()
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .collect();
            drop(asked.send(request.join("\n")));
            // The client may hang up on an answer that it does not like.
            drop(stream.write_all(answer.as_bytes()));
        }
    });
    (address, requests)
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
}

fn redirect(to: &str) -> String {
    answer("302 Found", &format!("Location: {to}\r\n"), "")
}

#[tokio::test]
async fn a_listed_host_is_asked_and_its_answer_returned() {
    let body = "text with ${x} ü";
    let (address, requests) = server(vec![answer("200 OK", "X-One: 1\r\nX-One: 2\r\n", body)]);
    let bench = Workbench::allowing(&[&address.to_string()]);
    let args = json!({ "url": format!("http://{address}/a?b=c"), "headers": { "X-Key": "k" } });
    let got = bench.call("local.http_get", args).await.unwrap();
    assert_eq!(
        (&got["status"], &got["body"], &got["headers"]["x-one"]),
        (&json!(200), &json!(body), &json!("1, 2"))
    );
    let request = requests.recv().unwrap();
    assert!(request.starts_with("GET /a?b=c HTTP/1.1"), "{request}");
    assert!(request.to_lowercase().contains("x-key: k"), "{request}");
}

#[tokio::test]
async fn a_name_that_is_listed_may_be_this_machine() {
    let (address, _requests) = server(vec![answer("200 OK", "", "here")]);
    let bench = Workbench::allowing(&["localhost"]);
    let got = bench
        .call(
            "local.http_get",
            json!({ "url": format!("http://localhost:{}/", address.port()) }),
        )
        .await;
    assert_eq!(got.unwrap()["body"], "here");
}

#[tokio::test]
async fn a_host_that_is_not_listed_is_not_asked() {
    let (address, requests) = server(vec![answer("200 OK", "", "")]);
    let port = address.port();
    let lists: [&[&str]; 4] = [&[], &["*"], &["example.com"], &["127.0.0.1:1"]];
    for list in lists {
        let bench = Workbench::allowing(list);
        for url in [
            format!("http://127.0.0.1:{port}/"),
            format!("http://localhost:{port}/"),
            format!("http://[::ffff:127.0.0.1]:{port}/"),
            format!("http://0x7f.1:{port}/"),
            format!("http://user@127.0.0.1:{port}/"),
            "file:///etc/passwd".to_owned(),
        ] {
            assert_eq!(
                bench.code("local.http_get", json!({ "url": url })).await,
                "forbidden_host",
                "{url} {list:?}"
            );
        }
    }
    assert!(requests.try_recv().is_err());
}

#[tokio::test]
async fn redirects_are_followed_as_far_as_the_list_goes() {
    let (last, last_requests) = server(vec![answer("200 OK", "", "end")]);
    let (first, _) = server(vec![
        redirect("/next"),
        redirect(&format!("http://{last}/end")),
    ]);
    let bench = Workbench::allowing(&[&first.to_string(), &last.to_string()]);
    let args = json!({ "url": format!("http://{first}/"), "headers": { "Authorization": "Bearer s3cret", "X-Key": "k" } });
    let got = bench.call("local.http_get", args).await.unwrap();
    assert_eq!(got["body"], "end");
    let request = last_requests.recv().unwrap().to_lowercase();
    assert!(
        !request.contains("s3cret") && !request.contains("x-key"),
        "headers went to another server: {request}"
    );
}

#[tokio::test]
async fn a_redirect_to_a_forbidden_host_is_refused() {
    let (forbidden, requests) = server(vec![answer("200 OK", "", "")]);
    let targets = [
        format!("http://{forbidden}/"),
        format!("//{forbidden}/"),
        format!("http://localhost:{}/", forbidden.port()),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "gopher://example.com/".to_owned(),
    ];
    for target in targets {
        let (address, _requests) = server(vec![redirect(&target)]);
        let bench = Workbench::allowing(&[&address.to_string(), "*"]);
        let code = bench
            .code(
                "local.http_get",
                json!({ "url": format!("http://{address}/") }),
            )
            .await;
        assert_eq!(code, "forbidden_host", "{target}");
    }
    assert!(requests.try_recv().is_err());
}

#[tokio::test]
async fn redirects_have_a_limit() {
    let (address, requests) = server(vec![redirect("/"); 20]);
    let bench = Workbench::allowing(&[&address.to_string()]);
    let code = bench
        .code(
            "local.http_get",
            json!({ "url": format!("http://{address}/") }),
        )
        .await;
    assert_eq!(code, "too_many_redirects");
    assert_eq!(requests.try_iter().count(), 6);
}

#[tokio::test]
async fn an_error_status_is_a_failure_that_may_pass_if_it_is_the_servers() {
    for (status, retry) in [
        ("404 Not Found", false),
        ("401 Unauthorized", false),
        ("429 Too Many Requests", true),
        ("503 Busy", true),
    ] {
        let (address, _requests) = server(vec![answer(status, "", "the reason")]);
        let bench = Workbench::allowing(&[&address.to_string()]);
        let got = bench
            .call(
                "local.http_get",
                json!({ "url": format!("http://{address}/a?key=s3cret") }),
            )
            .await;
        let Err(CallError::Failed {
            code,
            message,
            retryable,
            ..
        }) = got
        else {
            panic!("{got:?}")
        };
        assert_eq!(
            (code.as_str(), retryable),
            ("http_status", retry),
            "{status}"
        );
        assert!(
            message.contains(&status[..3]) && message.ends_with("the reason"),
            "{message}"
        );
        assert!(!message.contains("s3cret"), "{message}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_may_come_back() {
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let bench = Workbench::allowing(&[&address.to_string()]);
    let got = bench
        .call(
            "local.http_get",
            json!({ "url": format!("http://{address}/?key=s3cret") }),
        )
        .await;
    let Err(CallError::Failed {
        code,
        message,
        retryable: true,
        ..
    }) = got
    else {
        panic!("{got:?}")
    };
    assert_eq!(code.as_str(), "http_error");
    assert!(!message.contains("s3cret"), "{message}");
}

#[tokio::test]
async fn an_answer_is_whole_text_or_an_error() {
    let body = "x".repeat(1000);
    let endless = format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{}",
        "x".repeat(100_000)
    );
    let (address, _requests) = server(vec![
        answer("200 OK", "", &body),
        answer("200 OK", "", &body),
        endless,
        "nonsense\r\n\r\n".to_owned(),
    ]);
    let bench = Workbench::allowing(&[&address.to_string()]);
    let get = |limit: u32| json!({ "url": format!("http://{address}/"), "maxBytes": limit });
    assert_eq!(
        bench.call("local.http_get", get(1000)).await.unwrap()["body"],
        body
    );
    assert_eq!(bench.code("local.http_get", get(999)).await, "too_large");
    assert_eq!(bench.code("local.http_get", get(1000)).await, "too_large");
    assert_eq!(bench.code("local.http_get", get(1000)).await, "http_error");
}

#[tokio::test]
async fn headers_that_change_the_request_are_refused() {
    let bench = Workbench::allowing(&["127.0.0.1"]);
    for name in ["Host", "content-length", "Transfer-Encoding", "a b", ""] {
        let args = json!({ "url": "http://127.0.0.1:9/", "headers": { name: "x" } });
        assert_eq!(
            bench.code("local.http_get", args).await,
            "invalid_args",
            "{name:?}"
        );
    }
    let args = json!({ "url": "http://127.0.0.1:9/", "headers": { "X": "a\r\nHost: b" } });
    assert_eq!(bench.code("local.http_get", args).await, "invalid_args");
    assert_eq!(
        bench
            .code("local.http_get", json!({ "url": "not a url" }))
            .await,
        "invalid_args"
    );
}

#[tokio::test]
async fn a_cancelled_request_ends_at_once() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let bench = Workbench::allowing(&[&address.to_string()]);
    let call = call(
        "local.http_get",
        json!({ "url": format!("http://{address}/") }),
    );
    let cancelled = call.cancelled.clone();
    let started = Instant::now();
    let (outcome, ()) = tokio::join!(bench.tools.call(call), async {
        tokio::task::spawn_blocking(move || silent.accept())
            .await
            .unwrap()
            .unwrap();
        cancelled.cancel();
    });
    assert_eq!(outcome, Err(CallError::Cancelled));
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn https_speaks_tls() {
    let (address, requests) = server(vec!["no TLS".to_owned()]);
    let bench = Workbench::allowing(&[&address.to_string()]);
    let got = bench
        .call(
            "local.http_get",
            json!({ "url": format!("https://{address}/") }),
        )
        .await;
    // A machine without certificates cannot speak TLS, and says so.
    assert!(
        matches!(&got, Err(CallError::Failed { code, .. }) if code.as_str() == "http_error")
            || matches!(&got, Err(CallError::Unavailable(_))),
        "{got:?}"
    );
    assert!(requests.try_iter().all(|request| !request.contains("GET")));
}
