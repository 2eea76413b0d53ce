//! The form in which an argument wants the bytes of an artifact.

use serde_json::Value;

/// The form in which an artifact is given to a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactForm {
    /// The path of a file that is there during the call.
    Path,
    /// The same as a `file:` address.
    FileUrl,
    /// The bytes in base64.
    Base64,
    /// The bytes in base64 within a `data:` address.
    DataUrl,
}

impl ArtifactForm {
    /// The form that an argument of this name and schema wants: as its schema says, else as its name
    /// does, else a path.
    pub fn of_argument(name: &str, schema: Option<&Value>) -> Self {
        let word = |key| schema.and_then(|schema| schema.get(key)?.as_str());
        if word("contentEncoding").is_some_and(|encoding| encoding.eq_ignore_ascii_case("base64")) {
            return Self::Base64;
        }
        match word("format") {
            Some("byte" | "base64" | "binary") => return Self::Base64,
            Some("data-url" | "data-uri") => return Self::DataUrl,
            Some("uri" | "url" | "uri-reference") => return Self::FileUrl,
            Some("path" | "file-path" | "file") => return Self::Path,
            Some(_) | None => {}
        }
        let name: String = name
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .map(|letter| letter.to_ascii_lowercase())
            .collect();
        if name.ends_with("dataurl") || name.ends_with("datauri") {
            return Self::DataUrl;
        }
        let data = ["base64", "b64", "data", "blob", "bytes"];
        if data.iter().any(|ending| name.ends_with(ending)) {
            return Self::Base64;
        }
        Self::Path
    }
}

/// Returns whether a text of a plan is nothing but a reference to an artifact: `${shot.artifact}`.
pub fn is_artifact_reference(written: &str) -> bool {
    let inside = written
        .strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'));
    inside.is_some_and(|path| path.ends_with(".artifact") && !path.contains(['$', '{', '}']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_says_more_than_a_name() {
        for (name, schema, form) in [
            ("path", json!({}), ArtifactForm::Path),
            ("image", json!({ "type": "string" }), ArtifactForm::Path),
            (
                "image",
                json!({ "contentEncoding": "base64" }),
                ArtifactForm::Base64,
            ),
            ("file", json!({ "format": "byte" }), ArtifactForm::Base64),
            ("image_base64", json!({}), ArtifactForm::Base64),
            ("imageData", json!({}), ArtifactForm::Base64),
            ("data", json!({ "format": "path" }), ArtifactForm::Path),
            ("source", json!({ "format": "uri" }), ArtifactForm::FileUrl),
            ("dataUrl", json!({}), ArtifactForm::DataUrl),
        ] {
            assert_eq!(
                ArtifactForm::of_argument(name, Some(&schema)),
                form,
                "{name}"
            );
        }
        assert_eq!(ArtifactForm::of_argument("x", None), ArtifactForm::Path);
    }

    #[test]
    fn only_a_whole_reference_is_one() {
        for written in [
            "${shot.artifact}",
            "${s.content[0].artifact}",
            "${item.artifact}",
        ] {
            assert!(is_artifact_reference(written), "{written}");
        }
        for written in [
            "${shot}",
            "digest ${shot.artifact}",
            "${a.artifact}${b.artifact}",
            "$${shot.artifact}",
            "${shot.artifacts}",
        ] {
            assert!(!is_artifact_reference(written), "{written}");
        }
    }
}
