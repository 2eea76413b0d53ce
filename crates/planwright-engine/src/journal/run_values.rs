//! The values a run can refer to: small ones live in the folded state, large ones are fetched once.

use super::secret_values::SecretValues;
use crate::port::{ArtifactError, Artifacts};
use planwright_core::plan::{StepIx, Values};
use planwright_core::run::{Run, StoredValue};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// At most this many bytes of large values stay in memory, as JSON. Every one of them is an
/// artifact, and is read again when a step needs it.
const MAX_KEPT_BYTES: u64 = 32 << 20;

/// Large values that were needed in this process.
#[derive(Debug, Default)]
pub(crate) struct LargeValues {
    values: BTreeMap<StepIx, Kept>,
    kept_bytes: u64,
    /// The number of times a value was kept, which says which one is the oldest.
    turns: u64,
    /// Counted with the first value: most runs have none.
    readers: Option<Readers>,
    /// The lists that open loops run over, by the step that loops.
    lists: BTreeMap<StepIx, Arc<Value>>,
}

#[derive(Debug)]
struct Kept {
    value: Arc<Value>,
    bytes: u64,
    turn: u64,
}

/// The number of steps that still have to look at each step's value.
#[derive(Debug)]
struct Readers {
    open: BTreeMap<StepIx, usize>,
    /// So many of the run's completed steps are counted out.
    counted: usize,
}

impl Readers {
    fn count(run: &Run) -> Self {
        let mut open = BTreeMap::new();
        for ix in (0..run.plan().len()).map(StepIx::new) {
            for needed in run.plan().needed_steps(ix) {
                *open.entry(needed).or_default() += 1;
            }
        }
        Self { open, counted: 0 }
    }

    /// Returns the steps whose values nothing looks at any more.
    fn count_out(&mut self, run: &Run) -> Vec<StepIx> {
        let done = &run.finished_steps()[self.counted..];
        self.counted = run.finished_steps().len();
        let mut unread = Vec::new();
        for &ix in done.iter().filter(|ix| run.instance(**ix).is_none()) {
            for needed in run.plan().needed_steps(ix) {
                if let Some(open) = self.open.get_mut(&needed) {
                    *open = open.saturating_sub(1);
                    if *open == 0 {
                        unread.push(needed);
                    }
                }
            }
        }
        unread
    }

    fn has_any(&self, step: StepIx) -> bool {
        self.open.get(&step).is_some_and(|open| *open > 0)
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadValueError {
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    #[error("the artifact is not JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl LargeValues {
    /// Keeps the value of a step for those that look at it, if there are any.
    pub(crate) fn keep(&mut self, run: &Run, step: StepIx, bytes: u64, value: Arc<Value>) {
        if self.readers_of(run).has_any(step) {
            self.insert(step, bytes, value);
            self.drop_oldest(&[step]);
        }
    }

    /// Drops the values that nothing looks at any more.
    pub(crate) fn drop_unread(&mut self, run: &Run) {
        if self.values.is_empty() {
            return;
        }
        for step in self.readers_of(run).count_out(run) {
            self.remove(step);
        }
    }

    fn readers_of(&mut self, run: &Run) -> &mut Readers {
        self.readers.get_or_insert_with(|| Readers::count(run))
    }

    fn insert(&mut self, step: StepIx, bytes: u64, value: Arc<Value>) {
        self.remove(step);
        self.turns += 1;
        self.kept_bytes += bytes;
        let turn = self.turns;
        self.values.insert(step, Kept { value, bytes, turn });
    }

    fn remove(&mut self, step: StepIx) {
        if let Some(kept) = self.values.remove(&step) {
            self.kept_bytes -= kept.bytes;
        }
    }

    /// Makes room by dropping the oldest values, except those that are needed now.
    fn drop_oldest(&mut self, needed: &[StepIx]) {
        while self.kept_bytes > MAX_KEPT_BYTES {
            let others = self.values.iter().filter(|(ix, _)| !needed.contains(ix));
            let oldest = others.min_by_key(|(_, kept)| kept.turn).map(|(ix, _)| *ix);
            let Some(oldest) = oldest else { return };
            self.remove(oldest);
        }
    }

    pub(crate) fn keep_list(&mut self, step: StepIx, list: Arc<Value>) {
        self.lists.insert(step, list);
    }

    pub(crate) fn forget_list(&mut self, step: StepIx) {
        self.lists.remove(&step);
    }

    /// Makes sure that every large value among `steps` is here, and the list whose element `of` is
    /// about.
    pub(crate) async fn load(
        &mut self,
        artifacts: &dyn Artifacts,
        run: &Run,
        steps: &[StepIx],
        of: StepIx,
    ) -> Result<(), LoadValueError> {
        for &ix in steps {
            if let Some(stored @ StoredValue::Artifact(artifact)) = run.step(ix).value()
                && !self.values.contains_key(&ix)
            {
                let value = load_stored(artifacts, stored).await?;
                self.insert(ix, artifact.bytes, value);
                self.drop_oldest(steps);
            }
        }
        if let Some(step) = run.instance(of).map(|instance| instance.step)
            && let Some(opened) = run.open_loop(step)
            && !self.lists.contains_key(&step)
        {
            self.lists
                .insert(step, load_stored(artifacts, &opened.items).await?);
        }
        Ok(())
    }
}

/// The value itself, wherever it is kept.
pub(crate) async fn load_stored(
    artifacts: &dyn Artifacts,
    stored: &StoredValue,
) -> Result<Arc<Value>, LoadValueError> {
    Ok(match stored {
        StoredValue::Inline(value) => Arc::clone(value),
        StoredValue::Artifact(artifact) => {
            Arc::new(serde_json::from_slice(&artifacts.get(artifact).await?)?)
        }
    })
}

/// A run's values as the references of one step see them.
pub(crate) struct RunValues<'a> {
    run: &'a Run,
    large: &'a LargeValues,
    /// The element whose turn it is, and its number.
    element: Option<(&'a Value, Value)>,
    secrets: Option<&'a SecretValues>,
}

impl<'a> RunValues<'a> {
    pub(crate) fn new(run: &'a Run, large: &'a LargeValues, step: StepIx) -> Self {
        let element = run.instance(step).and_then(|instance| {
            let list = large.lists.get(&instance.step)?.as_array()?;
            Some((
                list.get(instance.index as usize)?,
                Value::from(instance.index),
            ))
        });
        Self {
            run,
            large,
            element,
            secrets: None,
        }
    }

    /// Only what is sent has secrets, or stands for them.
    pub(crate) fn with_secrets(mut self, secrets: &'a SecretValues) -> Self {
        self.secrets = Some(secrets);
        self
    }
}

impl Values for RunValues<'_> {
    fn variable(&self, name: &str) -> Option<&Value> {
        // Variables hide the names of the loop, as they hide every other name.
        let element = || match (name, &self.element) {
            ("item", Some((item, _))) => Some(*item),
            ("index", Some((_, index))) => Some(index),
            _ => None,
        };
        self.run
            .plan()
            .document()
            .variables
            .get(name)
            .or_else(element)
            .or_else(|| self.run.plan().variable(name))
    }

    fn step(&self, ix: StepIx) -> Option<&Value> {
        match self.run.step(ix).value() {
            Some(StoredValue::Inline(value)) => Some(value),
            Some(StoredValue::Artifact(_)) => self.large.values.get(&ix).map(|kept| &*kept.value),
            // A skipped step has no value, and what depends on it goes on: it sees null.
            None => Some(&Value::Null),
        }
    }

    fn secret(&self, name: &str) -> Option<&Value> {
        self.secrets?.get(name)
    }
}
