//! The page for people, as a browser loads it: whether it was built or not, it is there, it is public, and it loads
//! nothing from elsewhere.

use crate::service::Service;

#[test]
fn browsers_are_answered_with_the_page_at_every_address_of_its_own() {
    let service = Service::new();
    for path in [
        "/",
        "/ui",
        "/ui/",
        "/ui/plans",
        "/ui/plans/tidy",
        "/ui/plans/tidy/runs/run_1",
    ] {
        let page = service.bare("GET", path).send().ends(200);
        let kind = page.header("content-type").unwrap();
        assert!(kind.starts_with("text/html"), "{path}: {kind}");
        let text = String::from_utf8(page.body.clone()).unwrap();
        assert!(text.contains("<title>Planwright</title>"), "{path}");
        assert!(
            !text.contains("http://") && !text.contains("https://"),
            "{path}"
        );
        let policy = page.header("content-security-policy").unwrap();
        assert!(
            policy.contains("script-src 'self'")
                && policy.contains("trusted-types 'none'")
                && policy.contains("frame-ancestors 'none'")
                && !policy.contains("unsafe"),
            "{policy}"
        );
        assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    }
}

#[test]
fn what_is_not_the_page_is_not_answered_with_it() {
    let service = Service::new();
    service
        .bare("GET", "/ui/assets/nosuch.js")
        .send()
        .refuses(404, "no such file");
    service
        .bare("GET", "/nothing")
        .send()
        .refuses(404, "nothing here");
    assert_eq!(service.bare("POST", "/").send().status, 405);
    assert_eq!(service.bare("GET", "/plan").send().status, 401);
}
