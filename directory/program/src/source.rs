//! The sources that a client asks: a service, or a folder.

use crate::failure::{HasCode, OrFailure};
use crate::folder::{Folder, is_there, read_parameters};
use crate::options::Asked;
use hekaton_directory::{Checked, Parameters, Record, SIGNED_LENGTH, SignedRecord};
use hekaton_directory_http::body::{
    ContinuationBody, EpochBody, EpochsBody, HealthBody, HistoryBody, KeyBody, ProofBody,
    ProofRange, ProofsBody, RecordsBody,
};
use hekaton_directory_http::{AnswerError, Client, ClientError, Refusal, answer, follow};
use hekaton_directory_server::Server;
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A source that a client asks.
pub(crate) enum Source {
    /// A service.
    Service(Client),
    /// A folder that no service has open.
    Folder(Box<Server>),
}

/// Reports whether that is the address of a service, and not a folder.
pub(crate) fn is_address(directory: &str) -> bool {
    directory.contains("://")
}

impl Source {
    fn ask<T>(
        &self,
        service: impl FnOnce(&Client) -> Result<T, ClientError>,
        folder: impl FnOnce(&Server) -> Result<T, Refusal>,
    ) -> Result<T, Failure> {
        match self {
            Self::Service(client) => service(client).or_failure(),
            Self::Folder(server) => folder(server).or_failure(),
        }
    }

    pub(crate) fn key(&self, label: &str, epoch: Option<u32>) -> Result<KeyBody, Failure> {
        self.ask(|c| c.key(label, epoch), |s| answer::key(s, label.as_bytes(), epoch))
    }

    pub(crate) fn history(&self, label: &str, epoch: Option<u32>) -> Result<HistoryBody, Failure> {
        self.ask(|c| c.history(label, epoch), |s| answer::history(s, label.as_bytes(), epoch))
    }

    pub(crate) fn epochs(&self) -> Result<EpochsBody, Failure> {
        self.ask(Client::epochs, answer::epochs)
    }

    /// Reports whether somebody proves epochs, and how many attempts have failed.
    pub(crate) fn proves(&self) -> Result<(bool, u64), Failure> {
        match self {
            Self::Service(client) => {
                let HealthBody { proves, proof_failures, .. } = client.health().or_failure()?;
                Ok((proves, proof_failures))
            }
            Self::Folder(_) => Ok((false, 0)),
        }
    }

    pub(crate) fn epoch(&self, epoch: u32) -> Result<EpochBody, Failure> {
        self.ask(|c| c.epoch(epoch), |s| answer::epoch(s, epoch))
    }

    pub(crate) fn records(&self, from: u32, to: u32) -> Result<RecordsBody, Failure> {
        self.ask(|c| c.records(from, to), |s| answer::records(s, from, to))
    }

    fn continuation(&self, from: u32, to: u32) -> Result<ContinuationBody, Failure> {
        self.ask(|c| c.continuation(from, to), |s| answer::continuation(s, from, to))
    }

    pub(crate) fn proofs(&self, from: u32) -> Result<ProofsBody, Failure> {
        self.ask(|c| c.proofs(from), |s| answer::proofs(s, from))
    }

    pub(crate) fn proof(&self, range: ProofRange) -> Result<ProofBody, Failure> {
        self.ask(|c| c.proof(range), |s| answer::proof(s, range))
    }
}

/// The reason why a record does not continue another one.
struct Rejected(Failure);

impl From<AnswerError> for Rejected {
    fn from(error: AnswerError) -> Self {
        Self(error.failure())
    }
}

/// The source that a client asks, with the data that it holds.
pub(crate) struct Asking {
    pub(crate) source: Source,
    pub(crate) parameters: Parameters,
    seen: Option<PathBuf>,
    max_age: Option<Duration>,
}

impl Asking {
    pub(crate) fn open(asked: &Asked) -> Result<Self, Failure> {
        let (seen, max_age) = (asked.seen.clone(), asked.max_age);
        if let Some(path) = &seen {
            // Before the first request, so that a record is not verified and then lost because the
            // file cannot be written.
            output::check_output(path, "--seen", &output::Inputs::default())?;
        }
        let given = asked.parameters.as_deref().map(read_parameters).transpose()?;
        if is_address(&asked.directory) {
            let Some(parameters) = given else {
                let why = "--parameters FILE is needed to verify what a service answers; it must not come from the service";
                return Err(Failure::new(exit::USAGE, why));
            };
            let source = Source::Service(Client::new(&asked.directory).or_failure()?);
            return Ok(Self { source, parameters, seen, max_age });
        }
        let folder = Folder::read(Path::new(&asked.directory))?;
        if given.is_some_and(|given| given != folder.parameters) {
            let why = "the directory in the folder has other parameters than --parameters";
            return Err(Failure::new(exit::REFUSED, why));
        }
        let parameters = folder.parameters;
        // A client writes and signs nothing, so that it can also ask a backup.
        let source = Source::Folder(Box::new(folder.open_to_read()?));
        Ok(Self { source, parameters, seen, max_age })
    }

    /// Continues from the last record that was seen to one that is verified, and keeps that. The record may be an older one, a
    /// part of the history that was seen, only if an epoch was asked for.
    pub(crate) fn continued(
        &self,
        record: &Checked,
        bytes: &[u8],
        was_asked: bool,
    ) -> Result<(), Failure> {
        self.continues(record, bytes, was_asked)?;
        // Last: a record of another history is evidence, however old it is.
        match self.max_age.filter(|_| !was_asked) {
            Some(most) => check_age(record.record(), most),
            None => Ok(()),
        }
    }

    fn continues(&self, record: &Checked, bytes: &[u8], was_asked: bool) -> Result<(), Failure> {
        let Some(path) = &self.seen else { return Ok(()) };
        let seen = match is_there(path)? {
            true => Some(self.read_seen(path)?),
            false => None,
        };
        let epoch = record.record().epoch;
        let followed = match &seen {
            Some(seen) if epoch < seen.record().epoch && was_asked => {
                return evidence(path, (record, bytes), self.follow(record, seen));
            }
            Some(seen) if epoch < seen.record().epoch => Err(Failure::new(
                exit::REFUSED,
                format!(
                    "the directory answers with epoch {epoch}, but epoch {} was seen before: it hides what came after",
                    seen.record().epoch
                ),
            )),
            Some(seen) => self.follow(seen, record),
            None => Ok(()),
        };
        // Before the file is written: a record that is rejected must not replace the one that was
        // seen.
        evidence(path, (record, bytes), followed)?;
        output::write(path, bytes)
    }

    fn read_seen(&self, path: &Path) -> Result<Checked, Failure> {
        let seen = exit::read_at_most(path, SIGNED_LENGTH as u64)?;
        let seen = SignedRecord::decode(&seen)
            .map_err(|e| e.to_string())
            .and_then(|seen| seen.verify(&self.parameters).map_err(|e| e.to_string()));
        seen.map_err(|e| format!("{}: {e}", path.display())).or_fail(exit::BAD_FILE)
    }

    /// Verifies that a record continues the history of an earlier one.
    pub(crate) fn follow(&self, from: &Checked, to: &Checked) -> Result<(), Failure> {
        let ask = |from, to| self.source.continuation(from, to).map_err(Rejected);
        follow(from, to, ask).map_err(|Rejected(failure)| failure)
    }
}

/// Keeps a record that was rejected next to the one that was seen: both are signed, and together they are evidence.
fn evidence(
    seen: &Path,
    (record, bytes): (&Checked, &[u8]),
    followed: Result<(), Failure>,
) -> Result<(), Failure> {
    let Err(mut failure) = followed else { return Ok(()) };
    if failure.code == exit::REFUSED {
        // Each record has a file of its own: a later one must not take its place.
        let name = hex::encode(&record.record().digest()[..4]);
        let mut path = seen.as_os_str().to_owned();
        path.push(format!(".rejected-{}-{name}", record.record().epoch));
        let path = PathBuf::from(path);
        output::write(&path, bytes)?;
        failure.message += &format!("; its signed record is kept in {}", path.display());
    }
    Err(failure)
}

/// Rejects a last epoch that was closed too long ago.
fn check_age(record: &Record, most: Duration) -> Result<(), Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).or_fail(exit::FAILED)?;
    age_of(Duration::from_secs(record.closed), now, most)
        .map_err(|why| format!("the last epoch that the directory shows, {}, {why}", record.epoch))
        .or_fail(exit::REFUSED)
}

/// Checks the age of an epoch that was closed at a time.
fn age_of(closed: Duration, now: Duration, most: Duration) -> Result<(), String> {
    let most_text = output::seconds(most);
    // Otherwise one record with a late time would be young for ever. Clocks may differ a little.
    if let Some(ahead) = closed.checked_sub(now).filter(|ahead| *ahead > most) {
        let ahead = output::seconds(ahead);
        return Err(format!(
            "says that it was closed {ahead} from now, and --max-age is {most_text}: one of both clocks is wrong"
        ));
    }
    let age = now.saturating_sub(closed);
    if age > most {
        let age = output::seconds(age);
        return Err(format!(
            "was closed {age} ago, and --max-age is {most_text}: it hides later epochs, or closes none (serve --heartbeat)"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages() {
        let age = |closed, now| {
            let [closed, now, most] = [closed, now, 60].map(Duration::from_secs);
            age_of(closed, now, most)
        };
        for (closed, now) in [(1000, 1000), (1000, 1060), (1060, 1000), (0, 60)] {
            assert_eq!(age(closed, now), Ok(()), "{closed} {now}");
        }
        assert!(age(1000, 1061).unwrap_err().contains("hides later epochs"));
        assert!(age(1061, 1000).unwrap_err().contains("clocks is wrong"));
        assert!(age(u64::MAX, 1000).is_err());
    }
}
