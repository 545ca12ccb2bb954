//! The parameters of a directory, as a file.

use hekaton_directory::{Parameters, Profile};
use serde::{Deserialize, Serialize};

/// The version of the format.
const FORMAT: u32 = 1;

/// The parameters of a directory as JSON. Clients hold them, and must not have them from the server that they check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ParametersFile {
    /// The version of this format.
    pub format: u32,
    /// The way the tree is hashed: `compress`, `sha256` or `full`.
    pub profile: String,
    /// The key that signs records (Ed25519), as 64 hexadecimal digits.
    pub server: String,
    /// The digest of the key family that proofs of epochs are verified with, as 64 hexadecimal digits.
    pub proofs: String,
}

/// The reason why a file has no parameters.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParametersError {
    /// The file is not JSON, or has other fields.
    #[error("not the parameters of a directory: {0}")]
    Json(serde_json::Error),
    /// Its format has another version.
    #[error(
        "the format of the parameters has version {0}, but this program reads version {FORMAT}"
    )]
    Format(u32),
    /// There is no such profile.
    #[error("the profile is '{0}', expected compress, sha256 or full")]
    Profile(String),
    /// A key or a digest is malformed.
    #[error("{0} is not {1} as 64 hexadecimal digits")]
    Digits(&'static str, &'static str),
}

impl From<serde_json::Error> for ParametersError {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error)
    }
}

impl ParametersFile {
    /// The file of parameters.
    pub fn of(parameters: &Parameters) -> Self {
        Self {
            format: FORMAT,
            profile: parameters.profile.name().into(),
            server: hex::encode(parameters.server.as_bytes()),
            proofs: hex::encode(parameters.proofs),
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If it is not a file of parameters.
    pub fn read(bytes: &[u8]) -> Result<Self, ParametersError> {
        Ok(serde_json::from_slice(bytes)?)
    }

    /// The bytes of the file.
    pub fn bytes(&self) -> Vec<u8> {
        // A structure of texts and a number is always JSON.
        let mut bytes =
            serde_json::to_vec_pretty(self).expect("parameters have string keys and no floats");
        bytes.push(b'\n');
        bytes
    }

    /// The parameters.
    ///
    /// # Errors
    /// If they are of another version, or no parameters.
    pub fn parameters(&self) -> Result<Parameters, ParametersError> {
        if self.format != FORMAT {
            return Err(ParametersError::Format(self.format));
        }
        let profile = Profile::ALL
            .into_iter()
            .find(|profile| profile.name() == self.profile)
            .ok_or_else(|| ParametersError::Profile(self.profile.clone()))?;
        let digits = |text: &str| hex::decode(text).ok().and_then(|bytes| bytes.try_into().ok());
        let server = digits(&self.server)
            .and_then(|bytes| ed25519_dalek::VerifyingKey::from_bytes(&bytes).ok())
            .ok_or(ParametersError::Digits("server", "a key"))?;
        let proofs = digits(&self.proofs).ok_or(ParametersError::Digits("proofs", "a digest"))?;
        Ok(Parameters { profile, server, proofs })
    }
}
