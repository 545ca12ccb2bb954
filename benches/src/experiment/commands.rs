//! The commands of the program.

use super::arguments::{Arguments, Command, Model, PointArguments, Report, Run};
use super::check::{self, Machine, Requirement};
use super::clusters::{self, Cluster};
use super::collect;
use super::compare;
use super::environment::{Environment, changes};
use super::failure::{At, FAILED, Failure, USAGE};
use super::model::{self, Predictor, Sources};
use super::outcome;
use super::peers;
use super::plan::{self, Plan};
use super::program::Program;
use super::run::{Ending, Runner};
use super::session::Session;
use super::spec::{Experiment, Point};
use clap::Parser as _;
use std::collections::BTreeSet;
use std::fs;
use std::process::ExitCode;

/// The program `experiment`.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run_command(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { code, message }) => {
            eprintln!("error: {message}");
            ExitCode::from(code)
        }
    }
}

fn run_command(arguments: &Arguments) -> Result<(), Failure> {
    let session = Session::open(&arguments.places)?;
    match &arguments.command {
        Command::List => list(&session),
        Command::Check(chosen) => check(&session, &chosen.experiments),
        Command::Run(options) => run(&session, options),
        Command::Point(options) => point(&session, options),
        Command::Status => status(&session),
        Command::Collect => collect::collect(&session),
        Command::Model(options) => model::model(&session, &sources(options)),
        Command::Compare(chosen) => compare::compare(&session, &chosen.experiments),
        Command::Report(options) => report(&session, options),
        Command::Peers => peers::peers(&session),
        Command::All(options) => {
            if options.run.slurm.is_some() {
                let why = "all waits for its results: use `run --slurm`, `model`, `collect`, and \
                           `report`";
                return Err(Failure::new(USAGE, why));
            }
            // Failed repetitions are counted in the figures; the exit code still says so.
            let ran = match run(&session, &options.run) {
                Err(e) if e.code != FAILED => return Err(e),
                ran => ran,
            };
            model::model(&session, &sources(&options.run.model))?;
            collect::collect(&session)?;
            report(&session, &options.report)?;
            ran
        }
    }
}

fn sources(options: &Model) -> Sources {
    Sources { calibration: options.calibration.clone(), cluster: options.cluster.clone() }
}

#[allow(clippy::print_stdout, reason = "the result of a command")]
fn print(text: &str) {
    print!("{text}");
}

fn list(session: &Session) -> Result<(), Failure> {
    let program = session.program()?;
    for experiment in &session.experiments {
        let claims = experiment.claims.join(" ");
        print(&format!("{}: {} ({claims})\n", experiment.name, experiment.title));
        if let Some(why) = session.skips(experiment, &program) {
            print(&format!("  skipped: {why}\n"));
            continue;
        }
        let repetitions = experiment.scale(&session.scale).map_or(0, |s| s.repetitions);
        for point in experiment.points(&session.scale)? {
            print(&format!("  {} x {repetitions}\n", point.id));
        }
    }
    Ok(())
}

/// Experiments that can be run, after a line about each that cannot.
///
/// # Errors
/// If an experiment lacks something that it should not lack.
fn runnable<'s>(
    session: &'s Session,
    program: &Program,
    names: &[String],
) -> Result<Vec<&'s Experiment>, Failure> {
    let mut able = Vec::new();
    for experiment in session.chosen(names)? {
        match session.skips(experiment, program) {
            None => able.push(experiment),
            Some(why) => {
                eprintln!("{}: skipped: {why} ({})", experiment.name, experiment.circuit());
                let usual = experiment.may_lack_circuit() || why.contains("MPI");
                if !usual {
                    let why = format!("the program has no circuit {:?}", experiment.circuit());
                    return Err(Failure::new(USAGE, format!("{}: {why}", experiment.name)));
                }
            }
        }
    }
    Ok(able)
}

/// Returns the requirements of the points for which the machine has the cores, and the names of the
/// others; refuses points that do not fit otherwise.
fn fitting(
    session: &Session,
    program: &Program,
    able: &[&Experiment],
    machine: &Machine,
    show: bool,
) -> Result<(Vec<Requirement>, BTreeSet<String>), Failure> {
    eprintln!("estimating points at scale {}", session.scale);
    let found = check::requirements(session, program, able, &session.scale, machine)?;
    if show {
        print(&check::table(&found, machine));
    }
    check::refuse_too_large(session, program, able, &found, machine)?;
    let (kept, left_out): (Vec<_>, Vec<_>) = found.into_iter().partition(|r| r.has_cores(machine));
    if !left_out.is_empty() {
        let most = left_out.iter().map(|r| r.point.cores).max().expect("it is not empty");
        eprintln!(
            "{} of {} points need more than the {} cores here, up to {most}, and are left out",
            left_out.len(),
            left_out.len() + kept.len(),
            machine.cores,
        );
    }
    Ok((kept, left_out.into_iter().map(|r| r.point.id).collect()))
}

fn check(session: &Session, names: &[String]) -> Result<(), Failure> {
    let program = session.program()?;
    let able = runnable(session, &program, names)?;
    fitting(session, &program, &able, &Machine::here(&session.work)?, true).map(|_| ())
}

/// The machine that one node of a cluster is for the ranks of these experiments.
fn node_of(cluster: &Cluster, session: &Session, able: &[&Experiment]) -> Result<Machine, Failure> {
    let points: Result<Vec<_>, _> = able.iter().map(|e| e.points(&session.scale)).collect();
    let provers = points?.into_iter().flatten().filter_map(|p| p.provers_per_rank).min();
    let ranks = provers.map_or(1, |provers| cluster.ranks_per_node(provers));
    Ok(cluster.machine(check::free_disk(&session.work)?, ranks))
}

/// Writes the environment, unless the file has it.
fn record_environment(session: &Session, environment: &Environment) -> Result<(), Failure> {
    let file = session.environment_file();
    if file.exists() {
        let earlier = Environment::read(&file)?;
        if earlier.digest == environment.digest {
            return Ok(());
        }
        let changed = changes(&earlier, environment);
        eprintln!("the environment has changed ({changed}): points of another one run again");
    }
    environment.write(&file)
}

fn run(session: &Session, options: &Run) -> Result<(), Failure> {
    let program = session.program()?;
    let able = runnable(session, &program, &options.chosen.experiments)?;
    let mut plan = Plan::read(&session.results)?;
    let names: Vec<String> = able.iter().map(|e| e.name.clone()).collect();
    let known = plan.points.iter().find(|p| names.contains(&p.experiment));
    if let (false, Some(point)) = (options.resume, known) {
        let why = format!(
            "{} has points of {}: --resume completes them, and --name or --results starts \
             another result set",
            session.results.display(),
            point.experiment
        );
        return Err(Failure::new(USAGE, why));
    }
    let cluster = options.slurm.as_deref().map(Cluster::read).transpose()?;
    let machine = match &cluster {
        None => Machine::here(&session.work)?,
        Some(cluster) => node_of(cluster, session, &able)?,
    };
    let (found, left_out) = fitting(session, &program, &able, &machine, false)?;
    for experiment in session.chosen(&options.chosen.experiments)? {
        match session.skips(experiment, &program) {
            Some(why) => plan.skipped.insert(experiment.name.clone(), why.to_owned()),
            None => plan.skipped.remove(&experiment.name),
        };
    }
    for requirement in &found {
        plan.add(&requirement.point, requirement.repetitions)?;
    }
    fs::create_dir_all(session.results.join("raw")).at(&session.results)?;
    let order = plan.shuffled(&names, &left_out, options.seed);
    plan.write(&session.results)?;
    if let Some(cluster) = &cluster {
        let sources = sources(&options.model);
        print(&format!("{}\n", cluster.cost(&found)));
        return clusters::submit(session, cluster, &plan, &order, &sources, options.dry_run);
    }
    let environment = session.environment(&program)?;
    record_environment(session, &environment)?;
    let predictor = Predictor::new(session, &program, &environment, &sources(&options.model))?;
    let runner = Runner { session, program: &program, environment: &environment, predictor };
    let mut failed = runner.all(&plan, &order.concat())?;
    if session.scale != "tiny" {
        failed += runner.settle(&mut plan, &names)?;
    }
    match failed {
        0 => Ok(()),
        n => Err(Failure::new(
            FAILED,
            format!("{n} repetitions failed; `run --resume` repeats them"),
        )),
    }
}

fn point(session: &Session, options: &PointArguments) -> Result<(), Failure> {
    let program = session.program()?;
    let plan = Plan::read(&session.results)?;
    let known = |id: &String| {
        plan.point(id).ok_or_else(|| {
            let why = "run `experiment run --slurm` first, which writes the plan";
            Failure::new(USAGE, format!("no point {id} in the plan: {why}"))
        })
    };
    let points: Vec<&Point> = options.ids.iter().map(known).collect::<Result<_, _>>()?;
    let environment = session.environment(&program)?;
    environment.write_new(&session.environment_file())?;
    let set = Environment::read(&session.environment_file())?;
    if set.digest != environment.digest {
        let changed = changes(&set, &environment);
        let why = format!("this node differs from that of the first point ({changed})");
        return Err(Failure::new(FAILED, format!("{}: no point: {why}", options.ids.join(" "))));
    }
    let predictor = Predictor::new(session, &program, &environment, &sources(&options.model))?;
    let runner = Runner { session, program: &program, environment: &environment, predictor };
    for point in points {
        let task = (point.id.clone(), options.repetition);
        match runner.repetition(point, &task)? {
            Ending::Known => eprintln!("{}-{}: already done", task.0, task.1),
            Ending::Counts(_) => eprintln!("{}-{}: done", task.0, task.1),
            Ending::Failed(why) => {
                clusters::requeue();
                return Err(Failure::new(FAILED, format!("{}: {why}", point.id)));
            }
        }
    }
    Ok(())
}

fn status(session: &Session) -> Result<(), Failure> {
    let plan = Plan::read(&session.results)?;
    if plan.points.is_empty() {
        print(&format!("{}: nothing was planned yet\n", session.results.display()));
        return Ok(());
    }
    let file = session.environment_file();
    let digest = match file.exists() {
        true => Environment::read(&file)?.digest,
        false => String::new(),
    };
    let rows = collect::rows(session, &plan, &digest)?;
    let mut missing = 0;
    for point in &plan.points {
        let planned = plan.repetitions.get(&point.id).map_or(0, |planned| *planned);
        let own = rows.iter().filter(|row| row.point.id == point.id);
        let reasons: Vec<&str> = own.filter_map(|row| row.failure.as_deref()).collect();
        let failed = reasons.len();
        let counts = |repetition: &usize| {
            let task = (point.id.clone(), *repetition);
            let directory = plan::directory(&session.results, &task);
            directory.is_dir()
                && outcome::judge(&directory, point, &task, &digest).failure.is_none()
        };
        let done = (1..=planned).filter(counts).count();
        missing += planned - done;
        print(&format!("{:<34} {done} of {planned} done, {failed} failed\n", point.id));
        reasons.iter().for_each(|why| print(&format!("    failed: {why}\n")));
    }
    for (name, why) in &plan.skipped {
        print(&format!("{name:<34} skipped: {why}\n"));
    }
    print(&format!("{missing} repetitions missing in {}\n", session.results.display()));
    Ok(())
}

fn report(session: &Session, options: &Report) -> Result<(), Failure> {
    let script = session.directory.join("plot/plot.py");
    let mut command = std::process::Command::new(&options.python);
    command.arg(&script).arg(&session.results);
    command.arg("--paper-data").arg(session.directory.join("paper-data"));
    let ended = super::process::watch(&mut command, &session.stop, None)?;
    match ended.status.success() {
        true => Ok(()),
        false => {
            let why = format!("{} ended with {}", script.display(), ended.status);
            Err(Failure::new(FAILED, why))
        }
    }
}
