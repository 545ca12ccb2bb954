//! The commit round and the prove round as discrete events.
//!
//! There are three kinds of events: jobs arrive at a rank, a prover ends a job, and an answer arrives at the
//! coordinator, which is one server that takes events in their order.

use super::cluster::Cluster;
use super::noise::Noise;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// The coordinator's service times, in seconds of the one thread that does it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Service {
    /// Creating and encoding a job.
    pub(super) make: f64,
    /// Taking an answer.
    pub(super) take: f64,
}

/// The figures that are the same for all jobs of a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Jobs {
    /// The time of a job on a rank of normal speed, in seconds.
    pub(super) seconds: f64,
    /// The length of a job's message, in bytes.
    pub(super) bytes: f64,
    /// The coordinator's part.
    pub(super) service: Service,
    /// The number of messages in a row from the coordinator to a rank: 2 with a leader in between.
    pub(super) hops: f64,
}

/// The end of a round.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Round {
    /// The time at which the coordinator has the last answer, in seconds since the start of the round.
    pub(super) end: f64,
    /// The time that the coordinator spent making jobs and taking answers, in seconds.
    pub(super) busy: f64,
    /// The number of jobs that each rank did.
    pub(super) done: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EventKind {
    /// Jobs arrive at a rank.
    Arrival { jobs: usize },
    /// A prover of a rank ends a job.
    Finished,
    /// An answer arrives at the coordinator.
    Answer,
}

/// An event. Events are ordered by time, and simultaneous ones by the order in which they were scheduled, so
/// that a prediction does not depend on the order inside the heap.
struct Event {
    at: f64,
    sequence: u64,
    rank: usize,
    kind: EventKind,
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> Ordering {
        self.at.total_cmp(&other.at).then(self.sequence.cmp(&other.sequence))
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Event {}

/// The ranks of a round, and the events to come.
struct Ranks<'a> {
    cluster: &'a Cluster,
    speeds: &'a [f64],
    each: Jobs,
    noise: &'a mut Noise,
    events: BinaryHeap<Reverse<Event>>,
    sequence: u64,
    queued: Vec<usize>,
    idle: Vec<usize>,
    done: Vec<usize>,
}

impl<'a> Ranks<'a> {
    fn new(
        cluster: &'a Cluster,
        speeds: &'a [f64],
        queued: Vec<usize>,
        each: Jobs,
        noise: &'a mut Noise,
    ) -> Self {
        Self {
            cluster,
            speeds,
            each,
            noise,
            events: BinaryHeap::new(),
            sequence: 0,
            queued,
            idle: vec![cluster.provers(); speeds.len()],
            done: vec![0; speeds.len()],
        }
    }

    fn schedule(&mut self, at: f64, rank: usize, kind: EventKind) {
        self.sequence += 1;
        self.events.push(Reverse(Event { at, sequence: self.sequence, rank, kind }));
    }

    fn next(&mut self) -> Option<Event> {
        self.events.pop().map(|Reverse(event)| event)
    }

    /// The time from sending a message until the receiver looks at it.
    fn delay(&self) -> f64 {
        (self.cluster.latency + self.cluster.nap) * self.each.hops
    }

    /// Idle provers of a rank take queued jobs.
    fn start(&mut self, at: f64, rank: usize) {
        while self.idle[rank] > 0 && self.queued[rank] > 0 {
            self.idle[rank] -= 1;
            self.queued[rank] -= 1;
            self.done[rank] += 1;
            let seconds =
                self.each.seconds * self.speeds[rank] * self.noise.factor(self.cluster.job_sigma);
            self.schedule(at + seconds, rank, EventKind::Finished);
        }
    }

    /// A prover of a rank ends a job, sends its answer and takes the next job.
    fn finish(&mut self, at: f64, rank: usize) {
        self.idle[rank] += 1;
        self.schedule(at + self.delay(), rank, EventKind::Answer);
        self.start(at, rank);
    }
}

/// The coordinator, which takes one event at a time.
struct Coordinator {
    service: Service,
    /// The time at which it is free.
    at: f64,
    busy: f64,
    /// The time at which it had taken the last answer and made the jobs that followed from it.
    end: f64,
}

impl Coordinator {
    fn new(service: Service) -> Self {
        Self { service, at: 0.0, busy: 0.0, end: 0.0 }
    }

    fn make(&mut self, jobs: usize) {
        let seconds = jobs as f64 * self.service.make;
        self.at += seconds;
        self.busy += seconds;
    }

    fn take(&mut self, at: f64) {
        self.at = self.at.max(at) + self.service.take;
        self.busy += self.service.take;
    }

    fn end(self, ranks: Ranks<'_>) -> Round {
        Round { end: self.end, busy: self.busy, done: ranks.done }
    }
}

/// The coordinator's link, over which jobs leave one after the other.
struct Link {
    free: f64,
}

impl Link {
    fn send(&mut self, ranks: &mut Ranks<'_>, at: f64, rank: usize, jobs: usize, bytes: f64) {
        self.free = self.free.max(at) + jobs as f64 * bytes / ranks.cluster.bandwidth;
        let arrival = self.free + ranks.delay();
        ranks.schedule(arrival, rank, EventKind::Arrival { jobs });
    }
}

/// The commit round: ranks pull jobs, and hold as many as their provers work on and as many again
/// in advance; or each gets its share `at_once`.
pub(super) fn commit_round(
    jobs: usize,
    speeds: &[f64],
    cluster: &Cluster,
    each: Jobs,
    at_once: bool,
    noise: &mut Noise,
) -> Round {
    let mut coordinator = Coordinator::new(each.service);
    let mut ranks = Ranks::new(cluster, speeds, vec![0; speeds.len()], each, noise);
    let provers = cluster.provers();
    let room = provers.saturating_add(provers.max(3));
    let (mut link, mut left) = (Link { free: 0.0 }, jobs);
    // With few jobs, the first ranks must not take all of them in advance.
    let share = room.min(jobs.div_ceil(speeds.len().max(1)));
    for rank in 0..speeds.len() {
        let end = |rank: usize| jobs * rank / speeds.len();
        let count = if at_once { end(rank + 1) - end(rank) } else { share.min(left) };
        if count > 0 {
            left -= count;
            coordinator.make(count);
            link.send(&mut ranks, coordinator.at, rank, count, each.bytes);
        }
    }
    while let Some(Event { at, rank, kind, .. }) = ranks.next() {
        match kind {
            EventKind::Arrival { jobs } => {
                ranks.queued[rank] += jobs;
                ranks.start(at, rank);
            }
            EventKind::Finished => ranks.finish(at, rank),
            EventKind::Answer => {
                coordinator.take(at);
                if left > 0 {
                    left -= 1;
                    coordinator.make(1);
                    link.send(&mut ranks, coordinator.at, rank, 1, each.bytes);
                }
                coordinator.end = coordinator.end.max(coordinator.at);
            }
        }
    }
    coordinator.end(ranks)
}

/// The longest queues, of which entries may be outdated.
struct Longest(BinaryHeap<(usize, Reverse<usize>)>);

impl Longest {
    fn new(queued: &[usize]) -> Self {
        Self(queued.iter().enumerate().map(|(rank, jobs)| (*jobs, Reverse(rank))).collect())
    }

    /// The rank with the longest queue, if there is a queue. An outdated entry returns to its place
    /// only when it comes first, so that a job that starts costs nothing here.
    fn rank(&mut self, queued: &[usize]) -> Option<usize> {
        while let Some((jobs, Reverse(rank))) = self.0.peek().copied() {
            if jobs == queued[rank] {
                return (jobs > 0).then_some(rank);
            }
            self.0.pop();
            if queued[rank] > 0 {
                self.0.push((queued[rank], Reverse(rank)));
            }
        }
        None
    }
}

/// The prove round: each rank proves its committed subcircuits, and with `steal`, a rank that runs dry
/// takes from the longest queue.
pub(super) fn prove_round(
    held: Vec<usize>,
    speeds: &[f64],
    cluster: &Cluster,
    each: Jobs,
    steal: bool,
    noise: &mut Noise,
) -> Round {
    let mut coordinator = Coordinator::new(each.service);
    let mut longest = Longest::new(&held);
    let mut ranks = Ranks::new(cluster, speeds, held, each, noise);
    let delay = ranks.delay();
    // Jobs that travel from one rank to another. Without them, a rank would ask again until they arrive.
    let mut coming = vec![0usize; speeds.len()];
    for rank in 0..speeds.len() {
        // The challenges, one message for each rank.
        coordinator.at += cluster.message;
        ranks.schedule(coordinator.at + delay, rank, EventKind::Arrival { jobs: 0 });
    }
    while let Some(Event { at, rank, kind, .. }) = ranks.next() {
        match kind {
            EventKind::Arrival { jobs } => {
                ranks.queued[rank] += jobs;
                coming[rank] -= jobs;
                ranks.start(at, rank);
            }
            EventKind::Finished => ranks.finish(at, rank),
            EventKind::Answer => {
                coordinator.take(at);
                coordinator.end = coordinator.end.max(coordinator.at);
                // Only for provers without work: jobs taken in advance would wait here instead of there.
                let want = ranks.idle[rank].saturating_sub(ranks.queued[rank] + coming[rank]);
                if !steal || want == 0 {
                    continue;
                }
                let Some(victim) = longest.rank(&ranks.queued) else { continue };
                let jobs = ranks.queued[victim].min(want);
                ranks.queued[victim] -= jobs;
                coming[rank] += jobs;
                coordinator.make(jobs);
                coordinator.at += cluster.message;
                // A request, the returned jobs, and the jobs again to their new rank.
                let travel = 3.0 * delay + jobs as f64 * each.bytes / cluster.bandwidth;
                ranks.schedule(coordinator.at + travel, rank, EventKind::Arrival { jobs });
            }
        }
    }
    coordinator.end(ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: Service = Service { make: 0.0, take: 0.0 };

    fn cluster(ranks: u64, provers: u64) -> Cluster {
        Cluster {
            cores: ranks * provers,
            provers_per_rank: provers,
            latency: 0.0,
            nap: 0.0,
            message: 0.0,
            job_sigma: 0.0,
            rank_sigma: 0.0,
            slow_rank_share: 0.0,
            ..Cluster::default()
        }
    }

    fn commit(jobs: usize, cluster: &Cluster, seconds: f64, service: Service) -> Round {
        let speeds = vec![1.0; cluster.ranks() as usize];
        let each = Jobs { seconds, bytes: 0.0, service, hops: 1.0 };
        commit_round(jobs, &speeds, cluster, each, false, &mut Noise::new(1))
    }

    #[test]
    fn a_free_coordinator_costs_nothing() {
        for (ranks, provers, jobs) in
            [(1, 1, 7usize), (1, 4, 9), (3, 2, 12), (4, 8, 1000), (5, 3, 2)]
        {
            let cluster = cluster(ranks, provers);
            let rounds = jobs.div_ceil((ranks * provers) as usize) as f64;
            let found = commit(jobs, &cluster, 0.25, FREE);
            assert_eq!(found.end, rounds * 0.25, "{ranks} ranks, {provers} provers, {jobs} jobs");
            assert_eq!((found.busy, found.done.iter().sum()), (0.0, jobs));
        }
        // Ranks that hold all they will prove
        let cluster = cluster(3, 2);
        let each = Jobs { seconds: 0.25, bytes: 0.0, service: FREE, hops: 1.0 };
        let round =
            prove_round(vec![8, 8, 8], &[1.0; 3], &cluster, each, false, &mut Noise::new(1));
        assert_eq!((round.end, round.done), (1.0, vec![8, 8, 8]));
    }

    #[test]
    fn a_slow_coordinator_is_all_that_counts() {
        let service = Service { make: 0.25, take: 0.5 };
        let round = commit(640, &cluster(4, 8), 1e-9, service);
        assert!((round.end / (640.0 * 0.75) - 1.0).abs() < 1e-6, "{}", round.end);
        assert_eq!(round.busy, 640.0 * 0.75);
        // Answers of the prove round need no new jobs.
        let each = Jobs { seconds: 1e-9, bytes: 0.0, service, hops: 1.0 };
        let cluster = cluster(2, 2);
        let noise = &mut Noise::new(1);
        let round = prove_round(vec![9, 9], &[1.0; 2], &cluster, each, false, noise);
        assert!((round.end / (18.0 * 0.5) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn thieves_even_out_unequal_queues() {
        let cluster = cluster(2, 1);
        let each = Jobs { seconds: 0.25, bytes: 0.0, service: FREE, hops: 1.0 };
        let round =
            |steal| prove_round(vec![10, 2], &[1.0; 2], &cluster, each, steal, &mut Noise::new(1));
        assert_eq!(round(false).end, 2.5);
        assert_eq!((round(true).end, round(true).done), (1.5, vec![6, 6]));
    }

    #[test]
    fn what_is_sent_at_once_is_shared_evenly() {
        let cluster = cluster(3, 1);
        let each = Jobs { seconds: 0.25, bytes: 0.0, service: FREE, hops: 1.0 };
        let round = commit_round(100, &[1.0; 3], &cluster, each, true, &mut Noise::new(1));
        assert_eq!((round.end, round.done), (34.0 * 0.25, vec![33, 33, 34]));
        // No slower prover pulls fewer.
        let round = commit_round(100, &[1.0, 1.0, 2.0], &cluster, each, true, &mut Noise::new(1));
        assert_eq!(round.end, 34.0 * 0.5);
    }

    #[test]
    fn a_leader_in_between_is_another_message() {
        let far = Cluster { latency: 0.5, ..cluster(1, 1) };
        let end = |hops| {
            let each = Jobs { seconds: 0.25, bytes: 0.0, service: FREE, hops };
            commit_round(1, &[1.0], &far, each, false, &mut Noise::new(1)).end
        };
        assert_eq!((end(1.0), end(2.0)), (1.25, 2.25));
    }

    #[test]
    fn a_narrow_link_delays_jobs() {
        let mut cluster = cluster(1, 1);
        cluster.bandwidth = 8.0;
        let each = Jobs { seconds: 0.0, bytes: 16.0, service: FREE, hops: 1.0 };
        let round = commit_round(3, &[1.0], &cluster, each, false, &mut Noise::new(1));
        assert_eq!(round.end, 6.0);
    }
}
