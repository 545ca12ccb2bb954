//! Tests of the order in which tasks are claimed.

use super::records::task;
use super::world::name;
use crate::dispatch::queue::Queue;
use crate::record::{SessionId, Task, TaskKey};
use crate::store::Rev;
use std::collections::BTreeMap;

fn rev(number: u64) -> Rev {
    Rev { incarnation: 1, number }
}

/// Claims tasks until none is left, as `tenant chain block`.
fn order(queue: &mut Queue, now: u64) -> Vec<String> {
    let mut order = Vec::new();
    let all = |_: &TaskKey, _: &Task| true;
    while let Some((key, task, at)) = queue.next(&all, now).task {
        let claimed = task.claim(&SessionId::from_number(1), now).unwrap();
        order.push(format!("{} {} {}", task.job.tenant, task.job.chain, task.block));
        queue.set(key, &claimed, rev(at.number + 1));
    }
    order
}

fn queue(tasks: &[(TaskKey, Task)]) -> Queue {
    let mut queue = Queue::default();
    for (key, task) in tasks {
        queue.set(*key, task, rev(1));
    }
    queue
}

#[test]
fn older_blocks_come_first_and_later_stages_of_a_block() {
    let mut tasks = [task("t", "c", 7, 0), task("t", "c", 5, 0), task("t", "c", 6, 0)];
    assert_eq!(order(&mut queue(&tasks), 0), ["t c 5", "t c 6", "t c 7"]);
    // Within a block: the later stage first, then tasks that were tried before, then older ones.
    for (at, (key, task)) in tasks.iter_mut().enumerate() {
        (task.block, key.index) = (5, u32::try_from(at).unwrap());
    }
    (tasks[2].1.depth, tasks[1].1.attempts) = (1, 2);
    let queue = queue(&tasks);
    let mut found = Vec::new();
    loop {
        let left = |key: &TaskKey, _: &Task| !found.contains(&key.index);
        let Some((key, ..)) = queue.next(&left, 0).task else { break };
        found.push(key.index);
    }
    assert_eq!(found, [2, 1, 0]);
}

#[test]
fn chains_of_a_tenant_share_whatever_their_heights() {
    let mut tasks = Vec::new();
    for block in 0..3 {
        tasks.extend([task("t", "high", 20_000_000 + block, 0), task("t", "low", 5 + block, 0)]);
    }
    let found = order(&mut queue(&tasks), 0);
    let low = found.iter().take(4).filter(|text| text.contains("low")).count();
    assert_eq!(low, 2, "{found:?}");
}

#[test]
fn a_tenant_with_many_tasks_takes_its_share_and_no_more() {
    let mut tasks: Vec<_> = (0..100).map(|block| task("greedy", "c", block, 0)).collect();
    tasks.extend((0..4).map(|block| task("modest", "c", block, 0)));
    let found = order(&mut queue(&tasks), 0);
    let modest = found.iter().take(8).filter(|text| text.starts_with("modest")).count();
    assert_eq!(modest, 4, "{found:?}");

    // Weights are shares.
    let mut weighted = Queue::new(BTreeMap::from([(name("greedy"), 3)]));
    for (key, task) in &tasks {
        weighted.set(*key, task, rev(1));
    }
    let found = order(&mut weighted, 0);
    let modest = found.iter().take(8).filter(|text| text.starts_with("modest")).count();
    assert_eq!(modest, 2, "{found:?}");

    // A tenant that was idle has not saved up any share.
    let mut late = queue(&tasks[..100]);
    let all = |_: &TaskKey, _: &Task| true;
    for _ in 0..50 {
        let (key, task, _) = late.next(&all, 0).task.unwrap();
        let claimed = task.claim(&SessionId::from_number(1), 0).unwrap();
        late.set(key, &claimed, rev(2));
    }
    for (key, task) in &tasks[100..] {
        late.set(*key, task, rev(1));
    }
    let found = order(&mut late, 0);
    let modest = found.iter().take(6).filter(|text| text.starts_with("modest")).count();
    assert!((3..=4).contains(&modest), "{found:?}");
}

#[test]
fn lanes_age() {
    let urgent = task("t", "a", 9, 0);
    let patient = task("t", "b", 1, 2);
    let both = [urgent.clone(), patient.clone()];
    assert_eq!(order(&mut queue(&both), 0)[0], "t a 9");
    // After two minutes they are equally urgent, and after an hour, too: then the shares decide.
    for now in [120_000, 3_600_000] {
        let mut queue = queue(&both);
        let (key, mut newer) = task("t", "a", 8, 0);
        newer.created = now;
        queue.set(key, &newer, rev(1));
        let found = order(&mut queue, now);
        assert!(found.iter().position(|text| text == "t b 1").unwrap() < 2, "{found:?}");
    }
}

#[test]
fn tasks_wait_for_their_time_and_for_who_can_run_them() {
    let (key, mut early) = task("t", "c", 1, 0);
    early.not_before = 500;
    let tasks = [(key, early), task("t", "c", 2, 0)];
    let queue = queue(&tasks);
    let all = |_: &TaskKey, _: &Task| true;
    let next = queue.next(&all, 499);
    assert_eq!(next.task.unwrap().1.block, 2, "a task that must wait does not hold others up");
    assert_eq!(next.wait, Some(500));
    assert_eq!(queue.next(&all, 500).task.unwrap().1.block, 1);
    // Written by a clock that was days ahead.
    let (key, mut ahead) = task("t", "c", 1, 0);
    ahead.not_before = 3 * 24 * 3_600_000;
    assert_eq!(self::queue(&[(key, ahead.clone())]).next(&all, 1).task.unwrap().1.block, 1);
    assert!(ahead.claim(&crate::record::SessionId::from_number(1), 1).is_ok());
    let none = |_: &TaskKey, task: &Task| task.backend != name("prove");
    assert!(queue.next(&none, 500).task.is_none());
}

#[test]
fn what_is_old_is_ignored() {
    let (key, ready) = task("t", "c", 1, 0);
    let mut queue = queue(&[(key, ready.clone())]);
    let all = |_: &TaskKey, _: &Task| true;
    let later = Task { attempts: 1, ..ready.clone() };
    queue.set(key, &later, rev(5));
    queue.set(key, &ready, rev(3));
    assert_eq!(queue.next(&all, 0).task.unwrap().1.attempts, 1);
    queue.forget(&key, rev(3));
    assert!(queue.next(&all, 0).task.is_some());
    queue.forget(&key, rev(5));
    assert!(queue.next(&all, 0).task.is_none());
}
