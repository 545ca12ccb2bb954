//! Tests of the steps that are planned for a job.

use super::records::job;
use super::world::name;
use crate::collect::{Groups, Situation, Sources, Step, Strategies, Strategy};
use crate::record::{Job, JobState, Task, TaskKey};
use hekaton_orchestrator_client::{Digest, Workflow};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A job and its tasks, on which plans are carried out.
struct Table {
    workflow: Workflow,
    job: Job,
    tasks: BTreeMap<TaskKey, Task>,
    strategies: Strategies,
    quiet: Duration,
}

impl Table {
    fn new(stages: &str, inputs: usize) -> Self {
        let head = "version = 1\nname = \"w\"\n[inputs.a]\nat_least = 0\n";
        let workflow = Workflow::parse(&format!("{head}{stages}")).unwrap();
        let blobs = (0..inputs).map(|at| Digest::of(&[u8::try_from(at).unwrap()])).collect();
        let job = job(blobs);
        let (tasks, strategies) = (BTreeMap::new(), Strategies::default());
        Self { workflow, job, tasks, strategies, quiet: Duration::ZERO }
    }

    /// Plans and carries out the steps until none is left. Returns all of them.
    fn settle(&mut self) -> Vec<String> {
        let mut planned = Vec::new();
        loop {
            let situation = Situation {
                job: &self.job,
                workflow: &self.workflow,
                tasks: &self.tasks,
                strategies: &self.strategies,
                now: 7,
                quiet: self.quiet,
            };
            let steps = situation.plan();
            if steps.is_empty() {
                return planned;
            }
            for step in steps {
                planned.push(self.carry_out(step));
            }
        }
    }

    fn carry_out(&mut self, step: Step) -> String {
        let at = |key: &TaskKey| format!("{}.{}.{}", key.stage, key.index, key.copy);
        match step {
            Step::Create(key, task) => {
                assert!(self.tasks.insert(key, *task).is_none(), "{key}");
                format!("create {}", at(&key))
            }
            Step::Cancel(key) => {
                let task = self.tasks.get_mut(&key).unwrap();
                *task = task.cancel(7).unwrap();
                format!("cancel {}", at(&key))
            }
            Step::Revive(key) => {
                let task = self.tasks.get_mut(&key).unwrap();
                *task = task.revive(self.job.generation, 7).unwrap();
                format!("revive {}", at(&key))
            }
            Step::End(state) => {
                let text = match &state {
                    JobState::Done { outputs, .. } => format!("done {}", outputs.len()),
                    JobState::Dead { reason, .. } => format!("dead: {reason}"),
                    other => format!("{other:?}"),
                };
                self.job.state = state;
                text
            }
        }
    }

    fn end(&mut self, stage: u16, index: u32, copy: u8, output: Option<&str>) {
        let of = |key: &&TaskKey| (key.stage, key.index, key.copy) == (stage, index, copy);
        let key = *self.tasks.keys().find(of).unwrap();
        let task = self.tasks.get_mut(&key).unwrap();
        let session = crate::record::SessionId::from_number(1);
        let claimed = task.claim(&session, u64::MAX).unwrap();
        *task = match output {
            Some(output) => claimed.finish(&session, Digest::of(output.as_bytes()), 8).unwrap(),
            None => claimed.bury(&session, "no witness", 8, false).unwrap(),
        };
    }
}

const EACH_THEN_ALL: &str = r#"
[[stages]]
name = "s"
from = ["a"]
backend = "b"
[[stages]]
name = "t"
from = ["s"]
collect = "all"
backend = "b"
"#;

#[test]
fn barriers_wait_for_all() {
    let mut table = Table::new(EACH_THEN_ALL, 3);
    assert_eq!(table.settle(), ["create 0.0.0", "create 0.1.0", "create 0.2.0"]);
    table.end(0, 2, 0, Some("z"));
    table.end(0, 0, 0, Some("x"));
    assert_eq!(table.settle(), [""; 0]);
    table.end(0, 1, 0, Some("y"));
    assert_eq!(table.settle(), ["create 1.0.0"]);
    let joined = table.tasks.values().last().unwrap();
    assert_eq!(joined.inputs, ["x", "y", "z"].map(|text| Digest::of(text.as_bytes())));
    assert_eq!(joined.depth, 1);
    table.end(1, 0, 0, Some("xyz"));
    assert_eq!(table.settle(), ["done 1"]);
    assert_eq!(table.settle(), [""; 0]);
}

#[test]
fn groups_are_made_as_soon_as_they_are_full() {
    let stages = EACH_THEN_ALL.replace("\"all\"", "{ sequential = 2 }");
    let mut table = Table::new(&stages, 5);
    assert_eq!(table.settle().len(), 5);
    table.end(0, 3, 0, Some("3"));
    table.end(0, 2, 0, Some("2"));
    assert_eq!(table.settle(), ["create 1.1.0"]);
    table.end(0, 4, 0, Some("4"));
    // The last one is shorter.
    assert_eq!(table.settle(), ["create 1.2.0"]);
    for index in [0, 1] {
        table.end(0, index, 0, Some("x"));
    }
    assert_eq!(table.settle(), ["create 1.0.0"]);
    for index in 0..3 {
        table.end(1, index, 0, Some("x"));
    }
    assert_eq!(table.settle(), ["done 3"]);
}

#[test]
fn the_first_of_copies_counts() {
    let stages = "[[stages]]\nname = \"s\"\nfrom = [\"a\"]\nbackend = \"b\"\ncopies = 3\n";
    let mut table = Table::new(stages, 1);
    assert_eq!(table.settle(), ["create 0.0.0", "create 0.0.1", "create 0.0.2"]);
    let ids: std::collections::BTreeSet<_> = table.tasks.values().map(|task| task.id).collect();
    assert_eq!(ids.len(), 3, "copies run in folders of their own");
    // One that is dead leaves the others.
    table.end(0, 0, 1, None);
    assert_eq!(table.settle(), [""; 0]);
    table.end(0, 0, 2, Some("x"));
    assert_eq!(table.settle(), ["cancel 0.0.0", "done 1"]);
    let mut table = Table::new(stages, 1);
    table.settle();
    for copy in 0..3 {
        table.end(0, 0, copy, None);
    }
    assert_eq!(
        table.settle(),
        ["dead: task 0 of stage 's': the back-end 'b' cannot do it: no witness"]
    );
}

#[test]
fn partial_groups_are_made_only_where_the_workflow_says_so() {
    let stages = format!("{EACH_THEN_ALL}partial_after_millis = 1000\n");
    for (stages, allowed) in [(EACH_THEN_ALL, false), (&*stages, true)] {
        let mut table = Table::new(stages, 3);
        table.settle();
        table.quiet = Duration::from_secs(5);
        assert_eq!(table.settle(), [""; 0], "nothing is there");
        table.end(0, 1, 0, Some("y"));
        table.quiet = Duration::from_millis(999);
        assert_eq!(table.settle(), [""; 0]);
        table.quiet = Duration::from_secs(1);
        match allowed {
            false => assert_eq!(table.settle(), [""; 0]),
            true => {
                assert_eq!(table.settle(), ["create 1.0.0"]);
                // Later outputs do not change the tasks that were made.
                table.end(0, 0, 0, Some("x"));
                assert_eq!(table.settle(), [""; 0]);
                table.end(1, 0, 0, Some("xy"));
                assert_eq!(table.settle(), ["cancel 0.2.0", "done 1"]);
            }
        }
    }
}

#[test]
fn a_later_generation_keeps_what_is_done() {
    let mut table = Table::new(EACH_THEN_ALL, 2);
    table.settle();
    table.end(0, 0, 0, Some("x"));
    table.end(0, 1, 0, None);
    assert_eq!(
        table.settle(),
        ["dead: task 1 of stage 's': the back-end 'b' cannot do it: no witness"]
    );
    (table.job.state, table.job.generation) = (JobState::Live, 1);
    assert_eq!(table.settle(), ["revive 0.1.0"]);
    table.end(0, 1, 0, Some("y"));
    assert_eq!(table.settle(), ["create 1.0.0"]);

    // An owner that has not heard of the later generation does nothing.
    table.tasks.values_mut().for_each(|task| task.generation = 2);
    table.job.state = JobState::Cancelled { reason: String::new(), at: 0 };
    assert_eq!(table.settle(), [""; 0]);
    table.job.generation = 2;
    assert_eq!(table.settle(), ["cancel 1.0.0"]);
}

/// Pairs outputs that have the same first byte, and passes over the others.
struct Pairs;

impl Strategy for Pairs {
    fn collect(&self, sources: &Sources<'_>) -> Result<Groups, String> {
        if !sources.complete {
            return Ok(Groups { groups: vec![], complete: false });
        }
        let known: Option<Vec<Digest>> = sources.outputs[0].iter().copied().collect();
        let Some(known) = known else { return Ok(Groups { groups: vec![], complete: false }) };
        let pairs = known.windows(2).filter(|two| two[0] == two[1]);
        Ok(Groups { groups: pairs.map(|two| Some(two.to_vec())).collect(), complete: true })
    }
}

#[test]
fn strategies_of_ones_own_decide() {
    let stages = EACH_THEN_ALL.replace("\"all\"", "{ custom = \"pairs\" }");
    let mut table = Table::new(&stages, 3);
    table.strategies = Strategies::default().with(name("pairs"), Arc::new(Pairs));
    table.settle();
    for (index, output) in ["x", "y", "y"].into_iter().enumerate() {
        table.end(0, u32::try_from(index).unwrap(), 0, Some(output));
    }
    let mut without = Table::new(&stages, 3);
    without.tasks.clone_from(&table.tasks);
    assert_eq!(table.settle(), ["create 1.0.0"]);
    assert_eq!(without.settle(), ["dead: stage 't': no strategy 'pairs' is known here"]);
}

#[test]
fn a_job_without_inputs_ends() {
    let mut table = Table::new(EACH_THEN_ALL, 0);
    // A barrier of nothing is full.
    assert_eq!(table.settle(), ["create 1.0.0"]);
    table.end(1, 0, 0, Some("nothing"));
    assert_eq!(table.settle(), ["done 1"]);
}

#[test]
fn the_examples_are_workflows() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("workflows");
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        Workflow::parse(&text).unwrap_or_else(|error| panic!("{text}\n{error}"));
        count += 1;
    }
    assert_eq!(count, 3);
}
