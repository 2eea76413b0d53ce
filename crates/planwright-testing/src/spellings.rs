//! The encodings that tools are known to make of a text.

fn base64(bytes: &[u8], alphabet: &[u8; 64], pad: bool) -> String {
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let number = group
            .iter()
            .fold(0_u32, |number, &byte| number << 8 | u32::from(byte))
            << (8 * (3 - group.len()));
        for digit in 0..=group.len() {
            text.push(char::from(
                alphabet[(number >> (18 - 6 * digit) & 63) as usize],
            ));
        }
        text.push_str(if pad { &"=="[..3 - group.len()] } else { "" });
    }
    text
}

/// Base64 with padding.
pub fn standard(bytes: &[u8]) -> String {
    base64(
        bytes,
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        true,
    )
}

fn url_safe(bytes: &[u8]) -> String {
    base64(
        bytes,
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
        false,
    )
}

fn each_byte(text: &str, write: impl Fn(u8) -> String) -> String {
    text.bytes().map(write).collect()
}

fn each_unit(text: &str) -> String {
    text.encode_utf16()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect()
}

fn percent(text: &str) -> String {
    each_byte(text, |byte| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    })
}

fn wrapped(text: &str, width: usize) -> String {
    let lines: Vec<&str> = text
        .as_bytes()
        .chunks(width)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    lines.join("\n")
}

fn entities(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

/// Every known encoding of a text, with its name.
pub fn encodings(secret: &str) -> Vec<(&'static str, String)> {
    let json_text = serde_json::to_string(secret).unwrap();
    let twice = serde_json::to_string(&json_text).unwrap();
    let wide: Vec<u8> = secret.encode_utf16().flat_map(u16::to_le_bytes).collect();
    vec![
        ("plain", secret.to_owned()),
        ("base64", standard(secret.as_bytes())),
        (
            "base64, one byte before",
            standard(format!("u{secret}").as_bytes()),
        ),
        (
            "base64, two bytes before",
            standard(format!("u:{secret}:x").as_bytes()),
        ),
        ("base64 for URLs", url_safe(secret.as_bytes())),
        (
            "base64 for URLs, one byte before",
            url_safe(format!("~{secret}~").as_bytes()),
        ),
        (
            "base64, wrapped",
            wrapped(
                &standard(format!("{}{secret}", "x".repeat(70)).as_bytes()),
                76,
            ),
        ),
        ("base64 of UTF-16", standard(&wide)),
        (
            "base64 of JSON",
            standard(format!("{{\"a\":{json_text}}}").as_bytes()),
        ),
        ("percent", percent(secret)),
        (
            "percent, lower case",
            percent(secret)
                .to_lowercase()
                .replace(&secret.to_lowercase(), secret),
        ),
        (
            "percent, every byte",
            each_byte(secret, |byte| format!("%{byte:02x}")),
        ),
        ("percent twice", percent(&percent(secret))),
        ("form", percent(secret).replace("%20", "+")),
        ("JSON", json_text.clone()),
        ("JSON in JSON", twice),
        ("JSON, every character", each_unit(secret)),
        ("percent of JSON", percent(&json_text)),
        ("hex", each_byte(secret, |byte| format!("{byte:02x}"))),
        (
            "hex, upper case",
            each_byte(secret, |byte| format!("{byte:02X}")),
        ),
        (
            "hex with colons",
            each_byte(secret, |byte| format!("{byte:02x}:")),
        ),
        (
            "hex with spaces",
            each_byte(secret, |byte| format!("{byte:02x} ")),
        ),
        (
            "hex escapes",
            each_byte(secret, |byte| format!("\\x{byte:02x}")),
        ),
        (
            "octal escapes",
            each_byte(secret, |byte| format!("\\{byte:03o}")),
        ),
        ("entities", entities(secret)),
        (
            "entities, decimal",
            secret.chars().map(|c| format!("&#{};", c as u32)).collect(),
        ),
        (
            "entities, hex",
            secret
                .chars()
                .map(|c| format!("&#x{:X};", c as u32))
                .collect(),
        ),
        (
            "quoted-printable",
            each_byte(secret, |byte| format!("={byte:02X}")),
        ),
        ("reversed", secret.chars().rev().collect()),
        (
            "one character per line",
            secret.chars().map(|c| format!("{c}\n")).collect(),
        ),
        (
            "invisible characters between",
            secret
                .chars()
                .map(|c| format!("{c}\u{200b}\u{1b}"))
                .collect(),
        ),
        ("UTF-16", secret.chars().map(|c| format!("{c}\0")).collect()),
        ("bytes as numbers", format!("{:?}", secret.as_bytes())),
    ]
}
