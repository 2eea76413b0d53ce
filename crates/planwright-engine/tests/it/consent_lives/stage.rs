//! The world of these lives: tools that change under the plans, programs that work on steps, and a
//! record of everything that left.

use super::rules::{Choice, STRICT, TOOLS, only_reads, policies};
use crate::world::{VirtualClock, World};
use futures::FutureExt as _;
use planwright_core::journal::{StreamName, decode};
use planwright_core::principal::Principal;
use planwright_core::review::ReviewEvent;
use planwright_core::tool::{Annotations, Catalog, EffectClass, KnownTool, ToolDefinition};
use planwright_engine::memory::SequentialIds;
use planwright_engine::port::{
    BoxFuture, Call, CallError, DelegateError, Delegated, Delegation, Executors, FeedOf,
    Journal as _, Outcome, OwnerId, Placed, Position, Tools,
};
use planwright_engine::{AgentSettings, Engine};
use planwright_testing::dice::Dice;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// How things stand outside: each tool's version, the policy, and whether calls outside a scope are
/// only noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scene {
    pub(super) versions: [u32; TOOLS.len()],
    pub(super) policy: usize,
    pub(super) observe: bool,
}

impl Scene {
    pub(super) fn version(&self, tool: &str) -> Option<u32> {
        TOOLS
            .iter()
            .position(|name| *name == tool)
            .map(|at| self.versions[at])
    }
}

/// Something that left: a call of a tool, or a program that was started.
#[derive(Debug, Clone)]
pub(super) struct Left {
    /// How much was durable by then.
    pub(super) position: u64,
    pub(super) run: String,
    pub(super) step: String,
    pub(super) attempt: u32,
    /// Nothing for a program.
    pub(super) tool: Option<String>,
    pub(super) args: Value,
    pub(super) scene: Scene,
}

pub(super) struct Stage {
    pub(super) world: World,
    dice: Mutex<Dice>,
    /// From which position on things stood how.
    scenes: Mutex<Vec<(u64, Scene)>>,
    left: Mutex<Vec<Left>>,
    /// What executors asked for, as they wrote it.
    wanted: Mutex<Vec<(String, Value)>>,
    /// What was said with the approval at this position.
    said: Mutex<BTreeMap<u64, Vec<(String, Choice)>>>,
    /// Runs that a person ordered to stand still, and how much was durable by then.
    paused: Mutex<Vec<(String, u64)>>,
    story: Mutex<Vec<(u64, String)>>,
    position: Mutex<u64>,
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stage")
    }
}

impl Stage {
    pub(super) fn new(seed: u64) -> Arc<Self> {
        let mut dice = Dice::new(seed);
        // Where two have to agree, and neither of them the author, few runs begin.
        let policy = match dice.chance(10) {
            true => STRICT,
            false => dice.below(policies().len()),
        };
        let scene = Scene {
            versions: [0; TOOLS.len()],
            policy,
            observe: dice.chance(30),
        };
        Arc::new(Self {
            world: World::new(),
            dice: Mutex::new(dice),
            scenes: Mutex::new(vec![(0, scene)]),
            left: Mutex::default(),
            wanted: Mutex::default(),
            said: Mutex::default(),
            paused: Mutex::default(),
            story: Mutex::default(),
            position: Mutex::default(),
        })
    }

    pub(super) fn dice<T>(&self, throw: impl FnOnce(&mut Dice) -> T) -> T {
        throw(&mut self.dice.lock().unwrap())
    }

    pub(super) fn clock(&self) -> &Arc<VirtualClock> {
        &self.world.clock
    }

    /// An engine under the policy of the moment, with this world around it.
    pub(super) fn engine(self: &Arc<Self>, life: u64) -> (Engine, OwnerId) {
        let owner = OwnerId(format!("life {life}"));
        let scene = self.scene();
        let builder = Engine::builder(Arc::<Self>::clone(self))
            .clock(Arc::<VirtualClock>::clone(self.clock()))
            .ids(Arc::new(SequentialIds::starting_at(1 + life * 1_000_000)))
            .owner(owner.clone())
            .store(
                Arc::clone(&self.world.store) as _,
                Arc::clone(&self.world.artifacts) as _,
            )
            .model(Arc::<Self>::clone(self))
            .executors(Arc::<Self>::clone(self))
            .agents(AgentSettings {
                observe_scope: scene.observe,
            })
            .policy(Arc::clone(&policies()[scene.policy]));
        (builder.build(), owner)
    }

    /// How much is durable.
    pub(super) fn position(&self) -> u64 {
        let mut position = self.position.lock().unwrap();
        *position += self.feed(*position).len() as u64;
        *position
    }

    pub(super) fn feed(&self, after: u64) -> Vec<Placed> {
        let feed = self
            .world
            .store
            .feed(&FeedOf::All, Position(after), usize::MAX)
            .now_or_never();
        feed.expect("memory answers at once").unwrap()
    }

    pub(super) fn scene(&self) -> Scene {
        self.scenes
            .lock()
            .unwrap()
            .last()
            .expect("there is always a first one")
            .1
    }

    /// How things stood when the entry at this position was written.
    pub(super) fn scene_at(&self, position: u64) -> Scene {
        let scenes = self.scenes.lock().unwrap();
        scenes
            .iter()
            .rev()
            .find(|(since, _)| *since < position)
            .expect("there is always a first one")
            .1
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Scene, &mut Dice)) {
        let position = self.position();
        let mut scene = self.scene();
        self.dice(|dice| change(&mut scene, dice));
        if scene != self.scene() {
            self.tell(format!("{scene:?}"));
            self.scenes.lock().unwrap().push((position, scene));
        }
    }

    /// A tool is defined in another way, or again as it was.
    pub(super) fn perhaps_flip(&self, percent: usize) {
        if self.dice(|dice| dice.chance(percent)) {
            self.change(|scene, dice| {
                let tool = dice.pick(&[0, 1, 2, 3]);
                scene.versions[tool] = dice.pick(&[0, 0, 1]);
            });
        }
    }

    pub(super) fn remember(&self, name: &str, args: &Value) {
        self.wanted
            .lock()
            .unwrap()
            .push((name.to_owned(), args.clone()));
    }

    pub(super) fn was_wanted(&self, name: &str, args: &Value) -> bool {
        self.wanted
            .lock()
            .unwrap()
            .iter()
            .any(|(wanted, with)| wanted == name && with == args)
    }

    pub(super) fn say(&self, position: u64, choices: Vec<(String, Choice)>) {
        self.said.lock().unwrap().insert(position, choices);
    }

    /// Returns the choices that came with an approval; nothing if no person in this world gave it,
    /// and it is the product's own.
    pub(super) fn said_with(&self, position: u64) -> Option<Vec<(String, Choice)>> {
        self.said.lock().unwrap().get(&position).cloned()
    }

    /// A person's order that the run stands still was carried out, whether it had to be written
    /// down or not.
    pub(super) fn note_pause(&self, run: &str) {
        let position = self.position();
        self.paused.lock().unwrap().push((run.to_owned(), position));
    }

    /// Where people ordered that this run stands still.
    pub(super) fn pauses(&self, run: &str) -> Vec<u64> {
        let paused = self.paused.lock().unwrap();
        let of_run = paused.iter().filter(|(of, _)| of == run);
        of_run.map(|(_, position)| *position).collect()
    }

    pub(super) fn tell(&self, line: String) {
        let position = self.position();
        self.story.lock().unwrap().push((position, line));
    }

    /// What happened up to this position.
    pub(super) fn story(&self, until: u64) -> String {
        let story = self.story.lock().unwrap();
        let lines = story.iter().filter(|(position, _)| *position <= until);
        lines
            .map(|(position, line)| format!("{position:>4} {line}"))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// How often the program said something with this in it.
    pub(super) fn heard(&self, words: &str) -> u64 {
        self.heard_to("", words)
    }

    /// How often the program said something with this in it, to such an order.
    pub(super) fn heard_to(&self, order: &str, words: &str) -> u64 {
        let story = self.story.lock().unwrap();
        let lines = story.iter().map(|(_, line)| line);
        lines
            .filter(|line| line.starts_with(order) && line.contains(words))
            .count() as u64
    }

    pub(super) fn left(&self) -> Vec<Left> {
        self.left.lock().unwrap().clone()
    }

    fn leaves(&self, left: Left) {
        self.tell(format!(
            "LEFT {} {} #{} {:?} {}",
            left.run, left.step, left.attempt, left.tool, left.args
        ));
        self.left.lock().unwrap().push(left);
    }

    /// The steps of the plan as it is now.
    pub(super) fn current_steps(&self) -> Vec<Value> {
        let current = self.current_version();
        let document = current.map(|(document, _)| document);
        document
            .and_then(|document| document["steps"].as_array().cloned())
            .unwrap_or_default()
    }

    /// The plan as it is now, and the principal who wrote it.
    pub(super) fn current_version(&self) -> Option<(Value, Principal)> {
        let stream = StreamName::Plan("p".parse().unwrap());
        let records = self.world.store.read(&stream, 0, usize::MAX).now_or_never();
        let records = records.expect("memory answers at once").unwrap();
        let mut versions = records.iter().rev();
        versions.find_map(|record| match decode(record).unwrap().event {
            ReviewEvent::PlanProposed { document, by, .. } => {
                Some((serde_json::to_value(&*document).unwrap(), by))
            }
            _ => None,
        })
    }
}

fn catalog(versions: [u32; TOOLS.len()]) -> Catalog {
    static KNOWN: OnceLock<Mutex<BTreeMap<[u32; TOOLS.len()], Catalog>>> = OnceLock::new();
    let mut known = KNOWN.get_or_init(Mutex::default).lock().unwrap();
    let catalog = known.entry(versions).or_insert_with(|| {
        Catalog::new(TOOLS.iter().zip(versions).map(|(name, version)| {
            let (server, tool) = name.split_once('.').expect("a server and a tool");
            let schema = json!({"type": "object", "properties": {"to": {"type": "string"}}});
            let definition =
                ToolDefinition::new(server, tool, &format!("version {version}"), schema);
            let annotations = if only_reads(name) {
                Annotations::read_only()
            } else {
                Annotations::default()
            };
            let class = if *name == "w.write" {
                EffectClass::Unsafe
            } else {
                EffectClass::Safe
            };
            KnownTool::new(definition.with_annotations(annotations), class)
        }))
    });
    catalog.clone()
}

impl Tools for Stage {
    fn catalog(&self) -> Catalog {
        catalog(self.scene().versions)
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Outcome> {
        let known = self.catalog();
        let now = known
            .resolve(&call.tool.to_string())
            .map(|tool| tool.digest())
            .ok();
        if call.definition.is_some() && call.definition != now {
            let changed = CallError::refused("tool_changed", "it is another one by now");
            return Box::pin(std::future::ready(Err(changed)));
        }
        let args = Value::Object(call.args.clone());
        self.leaves(Left {
            position: self.position(),
            run: call.run.to_string(),
            step: call.step.to_string(),
            attempt: call.attempt,
            tool: Some(call.tool.to_string()),
            args: args.clone(),
            scene: self.scene(),
        });
        let outcome = self.dice(|dice| {
            if dice.chance(3) {
                return Err(CallError::Lost("the line broke".to_owned()));
            }
            if args["fail"] == true {
                return Err(CallError::failed("no such file"));
            }
            let word = json!(dice.pick(&super::author::WORDS));
            Ok(args.get("value").cloned().unwrap_or(word))
        });
        let millis = self.dice(|dice| 1 + dice.below(20) as u64);
        self.perhaps_flip(6);
        Box::pin(async move {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(millis)) => outcome,
                () = call.cancelled.cancelled() => Err(CallError::Cancelled),
            }
        })
    }
}

impl Executors for Stage {
    fn names(&self) -> Vec<String> {
        vec!["program".to_owned()]
    }

    fn delegate(&self, delegation: Delegation) -> BoxFuture<'static, Delegated> {
        self.leaves(Left {
            position: self.position(),
            run: delegation.run.to_string(),
            step: delegation.step.to_string(),
            attempt: delegation.attempt,
            tool: None,
            args: Value::Null,
            scene: self.scene(),
        });
        let wanted: Vec<_> = (0..1 + self.dice(|dice| dice.below(3)))
            .map(|_| self.want())
            .collect();
        let fails = self.dice(|dice| dice.chance(10));
        Box::pin(async move {
            for call in wanted {
                let asked = delegation.gateway.call(call.name, call.args);
                // It does not wait for people for ever.
                drop(tokio::time::timeout(Duration::from_secs(8), asked).await);
                if delegation.cancelled.is_cancelled() {
                    return Err(DelegateError::Cancelled).into();
                }
            }
            let outcome = if fails {
                Err(DelegateError::Failed("it could not".to_owned()))
            } else {
                Ok(json!("done"))
            };
            outcome.into()
        })
    }
}
