//! The list of what the program is made of, as CycloneDX: its crates, and the packages of the page.

use crate::dist::contents::{Contents, Product};
use crate::dist::crates::Crate;
use crate::dist::description::{LICENSE, NAME, SUMMARY, VERSION};
use crate::dist::program::root;
use anyhow::{Context as _, Result, ensure};
use data_encoding::{BASE64, HEXLOWER};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn pack(contents: &Contents) -> Result<Product> {
    let lock = std::fs::read_to_string(root().join("web/package-lock.json"))
        .context("cannot read what the page is made of")?;
    let lock = serde_json::from_str(&lock).context("the lock file of the page is no JSON")?;
    let document = describe(&contents.crates, &read_page(&lock)?)?;
    Ok(Product {
        name: format!("{NAME}-{VERSION}-{}.cdx.json", contents.platform.triple),
        bytes: format!("{document:#}\n").into_bytes(),
    })
}

fn describe(crates: &[Crate], page: &[Value]) -> Result<Value> {
    let references: BTreeMap<&str, String> = crates
        .iter()
        .map(|found| (found.key.as_str(), reference(found)))
        .collect();
    let root = crates.iter().find(|found| found.name == NAME);
    let root = reference(root.context("the program is not among its crates")?);
    let mut components = Vec::new();
    let mut dependencies = Vec::new();
    for found in crates {
        let reference = reference(found);
        let used = found
            .uses
            .iter()
            .filter_map(|key| references.get(key.as_str()));
        let mut used: Vec<Value> = used.map(|used| json!(used)).collect();
        if reference == root {
            used.extend(page.iter().map(|package| package["bom-ref"].clone()));
        } else {
            components.push(describe_crate(found));
        }
        dependencies.push(json!({ "ref": reference, "dependsOn": used }));
    }
    components.extend(page.iter().cloned());
    let id = name_content(&json!([components, dependencies]).to_string());
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": format!("urn:uuid:{id}"),
        "version": 1,
        "metadata": {
            "tools": { "components": [{ "type": "application", "name": "cargo xtask dist" }] },
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": NAME,
                "version": VERSION,
                "description": SUMMARY,
                "licenses": [{ "license": { "id": LICENSE } }],
                "purl": root,
            },
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

/// A crate is referred to by the address that tools look up.
fn reference(found: &Crate) -> String {
    format!(
        "pkg:cargo/{}@{}",
        found.name,
        found.version.replace('+', "%2B")
    )
}

fn describe_crate(found: &Crate) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(found),
        "name": found.name,
        "version": found.version,
        "licenses": [{ "expression": found.license }],
        "purl": reference(found),
    });
    if let Some(checksum) = &found.checksum {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    component
}

/// Reads the packages of the page, without those that only build or test it. Types are not in it.
fn read_page(lock: &Value) -> Result<Vec<Value>> {
    let packages = lock["packages"].as_object();
    let packages = packages.context("the lock file of the page has no packages")?;
    let mut components = Vec::new();
    for (path, package) in packages {
        let Some((_, name)) = path.rsplit_once("node_modules/") else {
            continue;
        };
        if package["dev"] == true || name.starts_with("@types/") {
            continue;
        }
        let text = |field: &str| {
            let value = package[field].as_str();
            value.with_context(|| format!("{name} has no {field}"))
        };
        let version = text("version")?;
        let purl = format!("pkg:npm/{}@{version}", name.replace('@', "%40"));
        let hash = text("integrity")?.strip_prefix("sha512-");
        let hash = hash.and_then(|hash| BASE64.decode(hash.as_bytes()).ok());
        let hash = hash.with_context(|| format!("{name} has no SHA-512"))?;
        components.push(json!({
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": version,
            "hashes": [{ "alg": "SHA-512", "content": HEXLOWER.encode(&hash) }],
            "licenses": [{ "expression": text("license")? }],
            "purl": purl,
        }));
    }
    Ok(components)
}

/// Makes an id from a text, so that the same list has the same one (a UUID of version 8).
fn name_content(text: &str) -> String {
    let mut bytes = Sha256::digest(text);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = HEXLOWER.encode(&bytes[..16]);
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &hex[part]);
    parts.join("-")
}

/// Checks the rules of such a list that its readers rely on, and returns how many parts it names.
pub(super) fn examine(document: &Value) -> Result<usize> {
    ensure!(document["bomFormat"] == "CycloneDX", "it is no CycloneDX");
    ensure!(document["specVersion"] == "1.6", "it is not version 1.6");
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let components = list(&document["components"]);
    ensure!(!components.is_empty(), "it names nothing");
    let mut known = BTreeSet::new();
    for part in components
        .iter()
        .chain([&document["metadata"]["component"]])
    {
        for field in ["type", "name", "version", "bom-ref", "purl"] {
            let is_there = part[field].as_str().is_some_and(|text| !text.is_empty());
            ensure!(is_there, "{} has no {field}", part["name"]);
        }
        let license = &part["licenses"][0];
        let license = license["expression"]
            .as_str()
            .or_else(|| license["license"]["id"].as_str());
        ensure!(
            license.is_some_and(|license| !license.is_empty()),
            "{} has no license",
            part["name"]
        );
        let reference = part["bom-ref"].as_str().unwrap_or_default();
        ensure!(reference.starts_with("pkg:"), "{reference} is no address");
        ensure!(known.insert(reference), "{reference} is named twice");
    }
    for node in list(&document["dependencies"]) {
        let used = list(&node["dependsOn"]);
        for reference in used.iter().chain([&node["ref"]]) {
            let is_known = reference.as_str().is_some_and(|text| known.contains(text));
            ensure!(is_known, "{reference} is used and not named");
        }
    }
    Ok(components.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::contents::tests::example;

    fn page() -> Value {
        let integrity = format!("sha512-{}", BASE64.encode(&[7; 64]));
        json!({ "packages": {
            "": { "name": "page" },
            "node_modules/@a/b": { "version": "1.0.0", "license": "MIT", "integrity": integrity },
            "node_modules/vite": { "version": "1.0.0", "dev": true },
            "node_modules/@types/react": { "version": "1.0.0" },
        } })
    }

    #[test]
    fn the_list_holds_its_own_rules_and_a_broken_one_does_not() {
        let page = read_page(&page()).unwrap();
        let document = describe(&example().crates, &page).unwrap();
        assert_eq!(examine(&document).unwrap(), 2, "{document:#}");
        let addresses: Vec<&Value> = document["components"].as_array().unwrap().iter().collect();
        assert_eq!(addresses[0]["purl"], "pkg:cargo/leaf@1.2.3");
        assert_eq!(addresses[1]["purl"], "pkg:npm/%40a/b@1.0.0");
        for (path, value) in [
            ("/components/0/licenses", json!([])),
            ("/components/0/purl", json!("")),
            ("/components/1/bom-ref", json!("pkg:cargo/leaf@1.2.3")),
            ("/dependencies/0/ref", json!("pkg:cargo/unknown@1.0.0")),
            ("/specVersion", json!("0.9")),
        ] {
            let mut broken = document.clone();
            *broken.pointer_mut(path).unwrap() = value;
            assert!(examine(&broken).is_err(), "{path}");
        }
    }

    #[test]
    fn the_real_page_is_described() {
        let made = pack(&example()).unwrap();
        let document: Value = serde_json::from_slice(&made.bytes).unwrap();
        assert!(examine(&document).unwrap() > 10);
        assert!(String::from_utf8_lossy(&made.bytes).contains("pkg:npm/react@"));
    }

    #[test]
    fn the_same_list_has_the_same_id() {
        let id = name_content("text");
        assert_eq!(id, name_content("text"));
        assert_ne!(id, name_content("other"));
        assert_eq!((id.len(), &id[14..15]), (36, "8"));
    }
}
