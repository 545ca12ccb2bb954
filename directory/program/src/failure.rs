//! Errors of the directory's libraries as failures with exit codes.

use crate::foreign_text::printable;
use hekaton_directory_http::{AnswerError, ClientError, Refusal};
use hekaton_directory_prover::KeysError;
use hekaton_terminal::exit::{self, Failure};

/// An error with an exit code of its own.
pub(crate) trait HasCode {
    fn failure(self) -> Failure;
}

impl HasCode for Refusal {
    fn failure(self) -> Failure {
        let Self(problem) = self;
        let code = if problem.status == 400 { exit::USAGE } else { exit::FAILED };
        // The text comes from a service and could contain control characters for the terminal.
        Failure::new(code, printable(&problem.detail))
    }
}

impl HasCode for ClientError {
    fn failure(self) -> Failure {
        let code = match &self {
            Self::Address(_) => exit::USAGE,
            Self::Problem { problem, .. } if problem.status == 400 => exit::USAGE,
            _ => exit::FAILED,
        };
        Failure::new(code, printable(&self.to_string()))
    }
}

impl HasCode for AnswerError {
    fn failure(self) -> Failure {
        Failure::new(exit::REFUSED, format!("the directory's answer is rejected: {self}"))
    }
}

impl HasCode for KeysError {
    fn failure(self) -> Failure {
        let code = match &self {
            Self::TestKeys { .. } | Self::OtherKeys { .. } => exit::REFUSED,
            Self::Files(_) => exit::BAD_FILE,
            _ => exit::FAILED,
        };
        Failure::new(code, self)
    }
}

/// Turns such errors into failures.
pub(crate) trait OrFailure<T> {
    fn or_failure(self) -> Result<T, Failure>;
}

impl<T, E: HasCode> OrFailure<T> for Result<T, E> {
    fn or_failure(self) -> Result<T, Failure> {
        self.map_err(HasCode::failure)
    }
}
