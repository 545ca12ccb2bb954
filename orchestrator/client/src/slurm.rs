//! SLURM's job states and commands, for all programs that submit proofs to a cluster.
//!
//! Calls are values, so that each submitter can run them in its own way: with a time limit, in the background, or by [`Call::output`].
//! Functions parse the answers, so that all submitters share one table of states.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

/// The state of a job according to SLURM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobState {
    /// It waits, or is between two attempts; or SLURM does not answer now.
    Waiting,
    /// It runs.
    Running,
    /// It has ended with this state. A job that is requeued looks like this for an instant, so ask twice.
    Ended(String),
}

impl JobState {
    /// Reads the word that `squeue` and `sacct` print (squeue(1), "Job state codes").
    pub fn of(word: &str) -> Self {
        /// The states that a job may have before its end, in addition to running.
        const WAITING: [&str; 12] = [
            "PENDING",
            "CONFIGURING",
            "SUSPENDED",
            "REQUEUED",
            "REQUEUE_FED",
            "REQUEUE_HOLD",
            "RESIZING",
            "RESV_DEL_HOLD",
            "SIGNALING",
            "SPECIAL_EXIT",
            "STAGE_OUT",
            "STOPPED",
        ];
        match word {
            // COMPLETING comes before the end: files may still be written.
            "RUNNING" | "COMPLETING" => Self::Running,
            word if WAITING.contains(&word) => Self::Waiting,
            // A word of a later version counts as an end. Waiting forever for a job that has ended would be worse than another
            // attempt, which finds the run directory and resumes.
            word => Self::Ended(word.to_owned()),
        }
    }
}

/// Reports whether a job that ended in a state was ended by others or by the machine, so that its input is not at fault.
pub fn is_ended_by_others(state: &str) -> bool {
    const BY_OTHERS: [&str; 7] = [
        "CANCELLED",
        "NODE_FAIL",
        "BOOT_FAIL",
        "LAUNCH_FAILED",
        "PREEMPTED",
        "REVOKED",
        "RECONFIG_FAIL",
    ];
    BY_OTHERS.contains(&state)
}

/// A call of one of SLURM's programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The program.
    pub program: &'static str,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables in addition to those of this process.
    pub environment: Vec<(&'static str, OsString)>,
}

impl Call {
    fn new(
        program: &'static str,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        Self {
            program,
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: Vec::new(),
        }
    }

    /// Runs the program and returns what it prints.
    ///
    /// # Errors
    /// What it prints on standard error if it fails, or why it cannot be run.
    pub fn output(&self) -> Result<String, String> {
        let mut command = Command::new(self.program);
        command.args(&self.arguments).stdin(Stdio::null());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let output = command.output().map_err(|error| format!("{}: {error}", self.program))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => {
                let said = String::from_utf8_lossy(&output.stderr);
                Err(format!("{}: {}: {}", self.program, output.status, said.trim()))
            }
        }
    }
}

/// A proof that is to be made by a batch script like those in `slurm/`.
#[derive(Clone, Copy, Debug)]
pub struct ProofJob<'a> {
    /// The batch script.
    pub script: &'a Path,
    /// The name of the job, by which it can be found if the answer of `sbatch` is lost.
    pub name: Option<&'a str>,
    /// The file for what the job prints.
    pub log: &'a Path,
    /// The input of the circuit.
    pub input: &'a Path,
    /// The folder of keys.
    pub keys: &'a Path,
    /// The run directory, in which the proof is written as `proof`.
    pub run: &'a Path,
    /// The program, which all machines must have at this path.
    pub hekaton: &'a Path,
    /// Options of `hekaton prove`.
    pub options: &'a [String],
}

impl ProofJob<'_> {
    /// Returns the call that submits the job; [`job_number`] reads its answer.
    pub fn submit(&self) -> Call {
        // Passed although it is the default: the variable `SBATCH_EXPORT` may set another value,
        // and the script would then lack the variables below. Options override variables
        // (sbatch(1)).
        let mut call = Call::new("sbatch", ["--parsable", "--export=ALL"]);
        call.arguments.extend(self.name.map(|name| format!("--job-name={name}").into()));
        let places = [OsString::from("--output"), self.log.into(), self.script.into()];
        call.arguments.extend(places);
        call.environment = vec![
            ("FILE", self.input.into()),
            ("KEYS", self.keys.into()),
            ("RUN", self.run.into()),
            ("HEKATON", self.hekaton.into()),
            ("OPTIONS", self.options.join(" ").into()),
            // `--export=ALL` passes on the environment of the submitter, which may itself be a job of the same script.
            ("PROGRAM", OsString::new()),
            ("PROOF", self.run.join("proof").into()),
        ];
        call
    }
}

/// Reads the number that `sbatch --parsable` prints: `NUMBER` or `NUMBER;CLUSTER`.
///
/// # Errors
/// If it prints something else.
pub fn job_number(said: &str) -> Result<u64, String> {
    let number = said.trim().split(';').next().and_then(|number| number.parse().ok());
    number.ok_or_else(|| format!("sbatch: expected the number of a job, found '{}'", said.trim()))
}

/// Returns the call that asks the queue for the state of a job; [`state_in_queue`] reads its answer.
pub fn ask_queue(job: u64) -> Call {
    let job = format!("--jobs={job}");
    Call::new("squeue", ["--noheader", "--states=all", "--format=%T", &job])
}

/// Returns the call that asks SLURM's accounting for the state of a job; [`state_in_accounts`] reads its answer.
pub fn ask_accounts(job: u64) -> Call {
    let job = format!("--jobs={job}");
    // Allocations only: without the option, each step of the job has a line, and steps end in
    // states of their own.
    Call::new("sacct", ["--noheader", "--parsable2", "--allocations", "--format=State", &job])
}

/// Reads the answer of the queue. `None` if it no longer has the job, so that the accounting must be asked.
///
/// # Errors
/// If SLURM does not answer now.
pub fn state_in_queue(answer: Result<String, String>) -> Result<Option<JobState>, String> {
    match answer {
        Ok(said) => Ok(said.split_whitespace().next().map(JobState::of)),
        // The queue forgets a job some minutes after its end (`MinJobAge` in slurm.conf(5)) and
        // then reports an error instead of an empty list.
        Err(why) if why.contains("Invalid job id") => Ok(None),
        Err(why) => Err(why),
    }
}

/// Reads the accounting's answer about a job that is no longer in the queue. Without accounting, the state in which the job ended is
/// unknown.
pub fn state_in_accounts(answer: &Result<String, String>) -> JobState {
    let said = answer.as_ref().map_or("", String::as_str);
    // Only the first word: a job that somebody has ended is `CANCELLED by UID`.
    match said.lines().last().and_then(|line| line.split_whitespace().next()) {
        Some(word) => JobState::of(word),
        None => JobState::Ended("unknown".into()),
    }
}

/// Returns the call that asks the queue for the numbers of jobs with a name.
pub fn find_in_queue(name: &str) -> Call {
    let name = format!("--name={name}");
    Call::new("squeue", ["--noheader", "--states=all", "--format=%A", &name])
}

/// Returns the call that asks SLURM's accounting for the numbers of jobs with a name: a queue forgets jobs that have ended.
pub fn find_in_accounts(name: &str) -> Call {
    let name = format!("--name={name}");
    Call::new("sacct", ["--noheader", "--parsable2", "--allocations", "--format=JobIDRaw", &name])
}

/// Returns the call that cancels a job.
pub fn cancel(job: u64) -> Call {
    Call::new("scancel", [job.to_string()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_slurm_mean_what_they_say() {
        for (word, state) in [
            ("PENDING", JobState::Waiting),
            ("REQUEUED", JobState::Waiting),
            ("RUNNING", JobState::Running),
            ("COMPLETING", JobState::Running),
            ("COMPLETED", JobState::Ended("COMPLETED".into())),
            ("PREEMPTED", JobState::Ended("PREEMPTED".into())),
        ] {
            assert_eq!(JobState::of(word), state);
        }
        assert!(is_ended_by_others("PREEMPTED") && !is_ended_by_others("TIMEOUT"));
    }

    #[test]
    fn answers_are_read() {
        assert_eq!(job_number("17\n"), Ok(17));
        assert_eq!(job_number("17;cluster\n"), Ok(17));
        assert!(job_number("error").unwrap_err().contains("found 'error'"));
        assert_eq!(state_in_queue(Ok("RUNNING\n".into())), Ok(Some(JobState::Running)));
        assert_eq!(state_in_queue(Ok(String::new())), Ok(None));
        assert_eq!(state_in_queue(Err("slurm_load_jobs error: Invalid job id".into())), Ok(None));
        assert!(state_in_queue(Err("Unable to contact slurm controller".into())).is_err());
        let ended = |word: &str| JobState::Ended(word.into());
        assert_eq!(state_in_accounts(&Ok("CANCELLED by 0\n".into())), ended("CANCELLED"));
        assert_eq!(state_in_accounts(&Err("accounting is disabled".into())), ended("unknown"));
    }

    #[test]
    fn jobs_are_submitted_with_their_own_variables() {
        let path = Path::new;
        let job = ProofJob {
            script: path("prove.sh"),
            name: Some("hk-1"),
            log: path("log"),
            input: path("input"),
            keys: path("keys"),
            run: path("run"),
            hekaton: path("/bin/hekaton"),
            options: &["--threads".into(), "2".into()],
        };
        let call = job.submit();
        let wanted =
            ["--parsable", "--export=ALL", "--job-name=hk-1", "--output", "log", "prove.sh"];
        assert_eq!((call.program, &call.arguments[..]), ("sbatch", &wanted.map(Into::into)[..]));
        assert!(call.environment.contains(&("OPTIONS", "--threads 2".into())));
        assert!(call.environment.contains(&("PROGRAM", OsString::new())));
    }
}
