//! Edits the text of a TOML file and leaves everything else as it is.

use serde_json::Value as Json;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value};

/// Sets the table `[above.name]`.
pub(super) fn set_table(
    text: &str,
    above: &str,
    name: &str,
    value: &Json,
) -> Result<String, String> {
    let mut document = parse(text)?;
    let tables = document.entry(above).or_insert_with(implicit_table);
    let Some(tables) = tables.as_table_like_mut() else {
        return Err(format!("`{above}` is not a table"));
    };
    let Json::Object(fields) = value else {
        return Err(format!("`{name}` is not a table"));
    };
    let mut table = Table::new();
    for (key, field) in fields {
        table.insert(key, Item::Value(convert(field)?));
    }
    tables.insert(name, Item::Table(table));
    Ok(document.to_string())
}

/// Removes the table `[above.name]`, if it is there.
pub(super) fn remove_table(text: &str, above: &str, name: &str) -> Result<String, String> {
    let mut document = parse(text)?;
    let Some(tables) = document.get_mut(above).and_then(Item::as_table_like_mut) else {
        return Ok(text.to_owned());
    };
    if tables.remove(name).is_none() {
        return Ok(text.to_owned());
    }
    if tables.is_empty() {
        document.remove(above);
    }
    Ok(document.to_string())
}

/// The value of a table of the file, as JSON.
pub(super) fn table(text: &str, above: &str) -> Result<Option<Json>, String> {
    let value: toml::Table =
        toml::from_str(text).map_err(|error| format!("it is not TOML: {}", error.message()))?;
    let found = value.get(above).map(serde_json::to_value).transpose();
    found.map_err(|error| format!("`{above}` cannot be read: {error}"))
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse()
        .map_err(|error: toml_edit::TomlError| format!("it is not TOML: {}", error.message()))
}

/// A table that is only written as the beginning of others' names.
fn implicit_table() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

fn convert(value: &Json) -> Result<Value, String> {
    Ok(match value {
        Json::String(text) => text.as_str().into(),
        Json::Bool(yes) => (*yes).into(),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            (None, Some(number)) => number.into(),
            (None, None) => return Err("a number is too large".to_owned()),
        },
        Json::Array(list) => {
            let mut array = Array::new();
            for value in list {
                array.push(convert(value)?);
            }
            array.into()
        }
        Json::Object(fields) => {
            let mut table = InlineTable::new();
            for (key, value) in fields {
                table.insert(key, convert(value)?);
            }
            table.into()
        }
        Json::Null => return Err("TOML has no null".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_table_is_set_and_taken_back_and_the_rest_stays() {
        let entry = json!({ "command": "planwright", "args": ["mcp"], "env": { "A": "1" } });
        for file in [
            "",
            "# mine\nmodel = \"x\" # the best\n\n[mcp_servers.a] # first\ncommand = 'a'\n\n[tui]\nx = 1\n",
        ] {
            let set = set_table(file, "mcp_servers", "planwright", &entry).unwrap();
            assert_eq!(
                table(&set, "mcp_servers").unwrap().unwrap()["planwright"],
                entry
            );
            for comment in ["# mine", "# the best", "# first"] {
                assert_eq!(set.contains(comment), file.contains(comment), "{set}");
            }
            assert_eq!(
                remove_table(&set, "mcp_servers", "planwright").unwrap(),
                file
            );
        }
        assert!(set_table("mcp_servers = 1", "mcp_servers", "x", &entry).is_err());
        assert!(set_table("[mcp_servers", "mcp_servers", "x", &entry).is_err());
    }
}
