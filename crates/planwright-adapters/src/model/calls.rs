//! Calls that come piece by piece.

use super::names::Names;
use planwright_core::model::WantedCall;
use serde_json::{Map, Value};

/// A model that wants more calls at once wants nothing sensible.
const MAX_CALLS: usize = 128;

#[derive(Debug, Default)]
pub(super) struct Calls {
    begun: Vec<Begun>,
}

#[derive(Debug)]
struct Begun {
    id: String,
    name: String,
    args: String,
}

/// More calls than a model may want at once.
#[derive(Debug)]
pub(super) struct TooManyCalls;

impl Calls {
    pub(super) fn count(&self) -> usize {
        self.begun.len()
    }

    /// Takes a piece that is the next part of a call's arguments. Only the first piece of a call
    /// has its name, and only that one its id; the others have `call_N`, N being its place.
    pub(super) fn add(&mut self, id: &str, name: &str, args: &str) -> Result<(), TooManyCalls> {
        let known = self.begun.iter().position(|call| call.id == id);
        let placed = || {
            id.strip_prefix("call_")?
                .parse()
                .ok()
                .filter(|&at: &usize| at < self.begun.len())
        };
        match known.or_else(|| if name.is_empty() { placed() } else { None }) {
            Some(at) => self.begun[at].args.push_str(args),
            None if !name.is_empty() => self.begin(id, name, args)?,
            None => {
                if let Some(last) = self.begun.last_mut() {
                    last.args.push_str(args);
                }
            }
        }
        Ok(())
    }

    /// Takes everything that is known of a call so far, and says what was not known before.
    pub(super) fn replace<'a>(
        &mut self,
        id: &str,
        name: &str,
        args: &'a str,
    ) -> Result<&'a str, TooManyCalls> {
        match self.begun.iter_mut().find(|call| call.id == id) {
            Some(call) => {
                let more = args.get(call.args.len()..).unwrap_or_default();
                call.args.push_str(more);
                Ok(more)
            }
            None => self.begin(id, name, args).map(|()| args),
        }
    }

    fn begin(&mut self, id: &str, name: &str, args: &str) -> Result<(), TooManyCalls> {
        if self.begun.len() == MAX_CALLS {
            return Err(TooManyCalls);
        }
        let call = Begun {
            id: id.to_owned(),
            name: name.to_owned(),
            args: args.to_owned(),
        };
        self.begun.push(call);
        Ok(())
    }

    /// Returns what the model said in place of an answer: the arguments of the tool that stands for
    /// it.
    pub(super) fn take_answer(&mut self, tool: &str) -> Option<String> {
        let at = self.begun.iter().position(|call| call.name == tool)?;
        Some(self.begun.remove(at).args)
    }

    pub(super) fn length(&self) -> usize {
        self.begun
            .iter()
            .map(|call| call.name.len() + call.args.len())
            .sum()
    }

    pub(super) fn finish(self, names: &Names) -> Vec<WantedCall> {
        let wanted = |(at, call): (usize, Begun)| WantedCall {
            id: if call.id.is_empty() {
                format!("call_{at}")
            } else {
                call.id
            },
            name: names.ours(&call.name),
            args: read(call.args),
        };
        self.begun.into_iter().enumerate().map(wanted).collect()
    }
}

/// No arguments are an empty object; what is no JSON is kept as it was written.
fn read(args: String) -> Value {
    if args.trim().is_empty() {
        return Value::Object(Map::new());
    }
    match serde_json::from_str(&args) {
        Ok(Value::Null) => Value::Object(Map::new()),
        Ok(value) => value,
        Err(_) => Value::String(args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pieces_find_their_call() {
        let mut calls = Calls::default();
        for (id, name, args) in [
            ("abc", "one", ""),
            ("call_0", "", "{\"a\""),
            ("def", "two", "{"),
            ("call_1", "", "\"b\": 2}"),
            ("call_0", "", ": 1}"),
            ("ghi", "three", ""),
            ("jkl", "four", "no json"),
        ] {
            calls.add(id, name, args).expect("they are few");
        }
        let finished = calls.finish(&Names::default());
        let args: Vec<&Value> = finished.iter().map(|call| &call.args).collect();
        assert_eq!(
            args,
            [
                &json!({"a": 1}),
                &json!({"b": 2}),
                &json!({}),
                &json!("no json")
            ]
        );
    }

    #[test]
    fn a_flood_of_calls_is_stopped() {
        let mut calls = Calls::default();
        let flooded = (0..1000).try_for_each(|at| calls.add(&format!("id{at}"), "tool", "{}"));
        assert!(flooded.is_err());
        assert!(
            calls.add("call_999", "", "x").is_ok(),
            "a piece of no call goes to the last one"
        );
    }
}
