//! Plans of what is to be done next for a job: a function of its record, its workflow and its tasks, without side effects.
//!
//! Tasks have fixed places, so two owners of a partition, or one owner before and after a restart, plan the same tasks, and the store keeps
//! the first of equal creations.

use crate::record::{Job, JobState, Task, TaskKey, TaskState};
use hekaton_orchestrator_client::{Collect, Digest, MAX_BLOBS, MAX_TASKS, Name, Workflow};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A write that a plan asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Make a task.
    Create(TaskKey, Box<Task>),
    /// Make a task ready again for a later generation.
    Revive(TaskKey),
    /// Take a task back.
    Cancel(TaskKey),
    /// The job has come to an end.
    End(JobState),
}

/// The outputs available to a stage.
#[derive(Debug)]
pub struct Sources<'a> {
    /// The outputs of each source by index, as far as they are there.
    pub outputs: &'a [Vec<Option<Digest>>],
    /// `true` if the number of outputs of every source is final.
    pub complete: bool,
    /// Time since the last output was added.
    pub quiet: Duration,
}

/// The groups that a strategy forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Inputs of tasks, by their index. A strategy must return the same inputs for an index each time.
    pub groups: Vec<Option<Vec<Digest>>>,
    /// `true` if the number of groups is final.
    pub complete: bool,
}

/// Decides which outputs make a task.
pub trait Strategy: Send + Sync {
    /// The groups that are known by now.
    ///
    /// # Errors
    /// The reason why the job cannot be done with these outputs, which makes it dead.
    fn collect(&self, sources: &Sources<'_>) -> Result<Groups, String>;
}

/// Custom strategies, by the names that workflows use.
#[derive(Clone, Default)]
pub struct Strategies(BTreeMap<Name, Arc<dyn Strategy>>);

impl Strategies {
    /// Adds a strategy, or replaces one.
    #[must_use]
    pub fn with(mut self, name: Name, strategy: Arc<dyn Strategy>) -> Self {
        self.0.insert(name, strategy);
        self
    }
}

impl fmt::Debug for Strategies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The input of a plan.
#[derive(Debug)]
pub struct Situation<'a> {
    /// The job.
    pub job: &'a Job,
    /// Its workflow.
    pub workflow: &'a Workflow,
    /// Its tasks, by stage, index and copy.
    pub tasks: &'a BTreeMap<TaskKey, Task>,
    /// Custom strategies.
    pub strategies: &'a Strategies,
    /// Milliseconds since 1970.
    pub now: u64,
    /// Time since the last output was added.
    pub quiet: Duration,
}

/// The outputs of an input or a stage by their index, as far as they are there.
struct Known {
    outputs: Vec<Option<Digest>>,
    /// `true` if there will be no more of them.
    complete: bool,
}

impl Situation<'_> {
    /// The writes that are due, in the order in which they are to be made.
    pub fn plan(&self) -> Vec<Step> {
        // A task has a later generation: the job was written since, and the record known here is outdated.
        if self.tasks.values().any(|task| task.generation > self.job.generation) {
            return vec![];
        }
        match self.job.state {
            JobState::Live => self.live(),
            // Also after it is done: a copy may have been claimed at the last moment.
            JobState::Done { .. }
            | JobState::Dead { .. }
            | JobState::Skipped { .. }
            | JobState::Cancelled { .. } => {
                let open = self.tasks.iter().filter(|(_, task)| !task.state.is_final());
                open.map(|(key, _)| Step::Cancel(*key)).collect()
            }
        }
    }

    /// Plans a job that is live.
    fn live(&self) -> Vec<Step> {
        // The tasks of a dead job are cancelled by the next plan, once its end is written.
        self.stages()
            .unwrap_or_else(|reason| vec![Step::End(JobState::Dead { reason, at: self.now })])
    }

    /// Plans the stages one after the other, or returns the reason why the job cannot be done.
    fn stages(&self) -> Result<Vec<Step>, String> {
        let order = self.workflow.order().map_err(|error| error.to_string())?;
        let depths = self.workflow.depths().map_err(|error| error.to_string())?;
        let (mut steps, mut known, mut count) = (Vec::new(), self.inputs(), 0);
        for at in order {
            let stage = &self.workflow.stages[at];
            let in_stage = |why: String| format!("stage '{}': {why}", stage.name);
            let Groups { groups, complete } = self.groups(at, &known).map_err(in_stage)?;
            // What follows a custom strategy could not be counted when the job was submitted (`Workflow::check_inputs`).
            count += groups.len() * usize::from(stage.copies);
            if count > MAX_TASKS {
                let why = format!("task limit reached: {count} of {MAX_TASKS} in the job");
                return Err(in_stage(why));
            }
            let mut outputs = Vec::with_capacity(groups.len());
            for (index, group) in groups.into_iter().enumerate() {
                outputs.push(self.group((at, depths[at]), index, group, &mut steps)?);
            }
            known.insert(&stage.name, Known { outputs, complete });
        }
        if let Some(outputs) = self.outputs(&known) {
            self.finish(&mut steps, outputs);
        }
        Ok(steps)
    }

    /// The inputs of the job, which are all there from the beginning.
    fn inputs(&self) -> BTreeMap<&Name, Known> {
        let mut known = BTreeMap::new();
        for (name, blobs) in &self.job.inputs {
            let outputs = blobs.iter().copied().map(Some).collect();
            known.insert(name, Known { outputs, complete: true });
        }
        for name in self.workflow.inputs.keys() {
            // An input of which a job may have none.
            known.entry(name).or_insert(Known { outputs: vec![], complete: true });
        }
        known
    }

    /// The groups of a stage's sources that make a task.
    fn groups(&self, at: usize, known: &BTreeMap<&Name, Known>) -> Result<Groups, String> {
        let stage = &self.workflow.stages[at];
        let outputs: Vec<_> = stage.from.iter().map(|name| known[name].outputs.clone()).collect();
        let complete = stage.from.iter().all(|name| known[name].complete);
        let sources = Sources { outputs: &outputs, complete, quiet: self.quiet };
        let partial = stage.partial_after_millis.map(u64::from).map(Duration::from_millis);
        let collected = match &stage.collect {
            Collect::Each => sequential(&sources, 1),
            Collect::Sequential(size) => sequential(&sources, *size as usize),
            Collect::All => all(&sources, partial),
            Collect::Custom(name) => match self.strategies.0.get(name) {
                Some(strategy) => strategy.collect(&sources),
                None => Err(format!("no strategy '{name}' is known here")),
            },
        }?;
        // A barrier that was full once stays full: its task exists and keeps its inputs, even if an output came later and the group
        // would have to wait again.
        let is_made = || self.tasks.contains_key(&self.key(at, 0, 0));
        match stage.collect == Collect::All && collected.groups.is_empty() && is_made() {
            true => Ok(Groups { groups: vec![None], complete: true }),
            false => Ok(collected),
        }
    }

    fn key(&self, at: usize, index: usize, copy: u8) -> TaskKey {
        TaskKey {
            partition: self.job.key().partition(),
            job: self.job.identity(),
            stage: u16::try_from(at).expect("a workflow has at most 64 stages"),
            index: u32::try_from(index).expect("a job has at most 4,096 tasks"),
            copy,
        }
    }

    /// Plans the copies of the task of a group. Returns the output, if there is one, or the reason why there will be none.
    fn group(
        &self,
        (at, depth): (usize, u16),
        index: usize,
        group: Option<Vec<Digest>>,
        steps: &mut Vec<Step>,
    ) -> Result<Option<Digest>, String> {
        let stage = &self.workflow.stages[at];
        let keys = (0..stage.copies).map(|copy| self.key(at, index, copy));
        let copies: Vec<_> = keys.map(|key| (key, self.tasks.get(&key))).collect();
        let output = copies.iter().find_map(|(_, task)| match task.as_ref()?.state {
            TaskState::Done { output, .. } => Some(output),
            _ => None,
        });
        // All copies get the same inputs, even if a partial group has grown since the first was made.
        let made = copies.iter().find_map(|(_, task)| Some((*task)?.inputs.clone()));
        let inputs = made.or(group);
        let mut hopeless = Vec::new();
        for (key, task) in &copies {
            match (task, output, &inputs) {
                (None, None, Some(inputs)) => {
                    if inputs.len() > MAX_BLOBS {
                        let count = inputs.len();
                        let why = format!("input limit reached: {count} of {MAX_BLOBS} in a task");
                        return Err(format!("stage '{}': {why}", stage.name));
                    }
                    let made = self.task(at, key, depth, inputs.clone());
                    steps.push(Step::Create(*key, Box::new(made)));
                }
                // The first output of a copy counts; running the other copies would be wasted work.
                (Some(task), Some(_), _) if !task.state.is_final() => {
                    steps.push(Step::Cancel(*key));
                }
                (Some(task), None, _) => match &task.state {
                    // The job was requeued after this end, which counts no longer.
                    TaskState::Dead { .. } | TaskState::Cancelled { .. }
                        if task.generation < self.job.generation =>
                    {
                        steps.push(Step::Revive(*key));
                    }
                    TaskState::Dead { reason, .. } => hopeless.push(reason.clone()),
                    TaskState::Cancelled { .. } => hopeless.push("it was cancelled".into()),
                    _ => {}
                },
                _ => {}
            }
        }
        match hopeless.len() == copies.len() {
            true => Err(format!("task {index} of stage '{}': {}", stage.name, hopeless[0])),
            false => Ok(output),
        }
    }

    /// The outputs of the job, once all outputs of the last stages are there.
    fn outputs(&self, known: &BTreeMap<&Name, Known>) -> Option<Vec<Digest>> {
        let mut outputs = Vec::new();
        for at in (0..self.workflow.stages.len()).filter(|&at| self.workflow.is_last(at)) {
            let last = known.get(&self.workflow.stages[at].name).filter(|last| last.complete)?;
            outputs.extend(last.outputs.iter().copied().collect::<Option<Vec<_>>>()?);
        }
        Some(outputs)
    }

    /// Ends a job whose outputs are all there, and cancels its remaining tasks.
    fn finish(&self, steps: &mut Vec<Step>, outputs: Vec<Digest>) {
        steps.retain(|step| matches!(step, Step::Cancel(_)));
        // A partial barrier may leave tasks that nothing waits for.
        let is_planned = |key: &TaskKey| {
            steps.iter().any(|step| matches!(step, Step::Cancel(own) if own == key))
        };
        let open = self.tasks.iter().filter(|(_, task)| !task.state.is_final());
        let left: Vec<_> = open.map(|(key, _)| *key).filter(|key| !is_planned(key)).collect();
        steps.extend(left.into_iter().map(Step::Cancel));
        // The writes may be done in any order: the plan of a job that is done takes back what is still open.
        steps.push(Step::End(JobState::Done { outputs, at: self.now }));
    }

    fn task(&self, at: usize, key: &TaskKey, depth: u16, inputs: Vec<Digest>) -> Task {
        let (job, stage) = (self.job, &self.workflow.stages[at]);
        // The folder of an attempt is named by this digest. Because it covers the inputs, a task
        // never resumes a run of other inputs that had its place before.
        let place = [&key.stage.to_le_bytes()[..], &key.index.to_le_bytes(), &[key.copy]].concat();
        let mut parts: Vec<&[u8]> = vec![key.job.as_bytes(), &place];
        parts.extend(inputs.iter().map(|input| &input.as_bytes()[..]));
        Task {
            id: Digest::of_parts("hekaton orchestrator 1 task", parts),
            job: job.key(),
            generation: job.generation,
            block: job.block,
            block_id: job.id.clone(),
            lane: job.lane,
            stage: stage.name.clone(),
            depth,
            backend: stage.backend.clone(),
            inputs,
            limits: stage.into(),
            trace: job.trace.clone(),
            created: self.now,
            attempts: 0,
            failed: BTreeMap::new(),
            refused: BTreeSet::new(),
            last: None,
            deaths: 0,
            returns: 0,
            not_before: 0,
            last_failure: None,
            state: TaskState::Ready,
        }
    }
}

/// Groups of consecutive outputs, each as soon as it is full.
fn sequential(sources: &Sources<'_>, size: usize) -> Result<Groups, String> {
    let lengths: Vec<usize> = sources.outputs.iter().map(Vec::len).collect();
    let list: Vec<String> = lengths.iter().map(usize::to_string).collect();
    // As long as their numbers are not final, one source may merely be ahead of the others.
    if sources.complete && lengths.windows(2).any(|two| two[0] != two[1]) {
        return Err(format!("its sources have different numbers of outputs: {}", list.join(", ")));
    }
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let group = |at: usize| -> Option<Vec<Digest>> {
        let range = at * size..((at + 1) * size).min(longest);
        if range.len() < size && !sources.complete {
            return None;
        }
        let parts = sources
            .outputs
            .iter()
            .flat_map(|source| range.clone().map(|index| source.get(index).copied().flatten()));
        parts.collect()
    };
    let groups = (0..longest.div_ceil(size)).map(group).collect();
    Ok(Groups { groups, complete: sources.complete })
}

/// A single group of all outputs, or of those available once no output was added for a while.
fn all(sources: &Sources<'_>, partial: Option<Duration>) -> Result<Groups, String> {
    let found = sources.outputs.iter().flatten();
    let there: Vec<Digest> = found.clone().copied().flatten().collect();
    let full = sources.complete && there.len() == found.count();
    let enough = partial.is_some_and(|after| sources.quiet >= after) && !there.is_empty();
    let groups = if full || enough { vec![Some(there)] } else { vec![] };
    let complete = !groups.is_empty();
    Ok(Groups { groups, complete })
}
