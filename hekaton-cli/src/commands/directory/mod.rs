//! `hekaton directory`: a verifiable key directory, its clients and its auditors.

mod ask;
mod audit;
mod folder;
mod head;
mod insert;
mod manage;
mod orchestrator;
mod prover;
mod serve;
mod slurm;
mod source;

use crate::app::App;
use crate::exit::Failure;
use crate::options::Directory;

pub(crate) fn run(command: &Directory, program: &App, json: bool) -> Result<(), Failure> {
    match command {
        Directory::Init(command) => folder::init(command, json),
        Directory::Insert(command) => insert::run(command, json),
        Directory::Lookup(command) => ask::look_up(command, json),
        Directory::History(command) => ask::history(command, json),
        Directory::Epoch(command) => ask::epoch(command, json),
        Directory::Audit(command) => audit::run(command, program, json),
        Directory::Serve(command) => serve::run(command, program, json),
        Directory::Prove(command) => manage::prove(command, program, json),
        Directory::Head(command) => head::run(command, json),
        Directory::Check(command) => manage::check(command, json),
        Directory::Prune(command) => manage::prune(command, json),
        Directory::Erase(command) => manage::erase(command, json),
    }
}
