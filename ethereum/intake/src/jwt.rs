//! The tokens of the Engine API: HS256 over a secret of 32 bytes, with the time they were made at (`iat`).

use hmac::{Hmac, Mac};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use signature::{Signer, Verifier};
use std::io::Read;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The largest difference between the clocks of both sides, in seconds.
const WINDOW: u64 = 60;

/// The number of bytes that are read of a file, which has one line.
const MAX_FILE: u64 = 4_096;

/// A secret that a node and its callers share.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// The reason for which a secret or a token is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// A file without a secret.
    #[error("{0}: it must contain 64 hexadecimal digits, with or without 0x in front")]
    Secret(String),
    /// A request without the header `Authorization: Bearer`.
    #[error("there is no header 'Authorization: Bearer TOKEN'")]
    Missing,
    /// A token that is malformed, or of another secret.
    #[error("the token is not one of this secret: {0}")]
    Wrong(String),
    /// A token that is too old, or from the future.
    #[error(
        "the token was made {0} s ago by its own account, and at most {WINDOW} s apart is allowed"
    )]
    Time(i64),
}

#[derive(Serialize, Deserialize)]
struct Claims {
    iat: u64,
}

impl Secret {
    /// Makes a secret of 32 bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        install();
        Self(bytes)
    }

    /// Reads a file as nodes write it: 64 hexadecimal digits.
    ///
    /// # Errors
    /// If it has none.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let bad = |why: String| TokenError::Secret(format!("{}{why}", path.display()));
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(|error| bad(format!(": {error}")))?;
        let read = file.take(MAX_FILE).read_to_string(&mut text);
        read.map_err(|error| bad(format!(": {error}")))?;
        let digits = text.trim().trim_start_matches("0x");
        let bytes = alloy_primitives::hex::decode(digits).map_err(|_| bad(String::new()))?;
        bytes.try_into().map(Self::new).map_err(|_| bad(String::new()))
    }

    /// Returns a token from now.
    pub fn token(&self) -> String {
        self.token_at(now())
    }

    /// Returns a token from a time, in seconds since 1970.
    pub fn token_at(&self, iat: u64) -> String {
        let (header, key) = (Header::new(Algorithm::HS256), EncodingKey::from_secret(&self.0));
        jsonwebtoken::encode(&header, &Claims { iat }, &key)
            .expect("signing with a secret cannot fail")
    }

    /// Checks the value of a header `Authorization`.
    ///
    /// # Errors
    /// If it has no token of this secret from this minute.
    pub fn check(&self, authorization: Option<&str>) -> Result<(), TokenError> {
        // Names of schemes have no case (RFC 9110, 11.1).
        let parts = authorization.and_then(|value| value.trim().split_once(' '));
        let token = parts.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let token = token.ok_or(TokenError::Missing)?.1.trim();
        let mut validation = Validation::new(Algorithm::HS256);
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        let key = DecodingKey::from_secret(&self.0);
        let found = jsonwebtoken::decode::<Claims>(token, &key, &validation);
        let iat = found.map_err(|error| TokenError::Wrong(error.to_string()))?.claims.iat;
        let now = now();
        match now.abs_diff(iat) > WINDOW {
            true => Err(TokenError::Time(now.cast_signed().wrapping_sub(iat.cast_signed()))),
            false => Ok(()),
        }
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// HMAC alone: the other algorithms would bring RSA and curves along.
static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |algorithm, key| match (algorithm, key.family()) {
        (Algorithm::HS256, AlgorithmFamily::Hmac) => Ok(Box::new(Hs256::new(key.as_bytes())?)),
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    },
    verifier_factory: |algorithm, key| match (algorithm, key.family()) {
        (Algorithm::HS256, AlgorithmFamily::Hmac) => {
            Ok(Box::new(Hs256::new(key.try_get_as_bytes()?)?))
        }
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    },
    key_utils: KeyUtils::new_unimplemented(),
};

fn install() {
    // Tokens of another implementation are accepted, too.
    let _ = PROVIDER.install_default();
}

struct Hs256(Hmac<Sha256>);

impl Hs256 {
    fn new(secret: &[u8]) -> Result<Self, Error> {
        let made = Hmac::new_from_slice(secret);
        made.map(Self).map_err(|_| ErrorKind::InvalidKeyFormat.into())
    }
}

impl Signer<Vec<u8>> for Hs256 {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error> {
        Ok(self.0.clone().chain_update(message).finalize().into_bytes().to_vec())
    }
}

impl Verifier<Vec<u8>> for Hs256 {
    fn verify(&self, message: &[u8], found: &Vec<u8>) -> Result<(), signature::Error> {
        // In constant time.
        let mac = self.0.clone().chain_update(message);
        mac.verify_slice(found).map_err(|_| signature::Error::new())
    }
}

impl JwtSigner for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtVerifier for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_of_one_secret_and_one_minute() {
        let secret = Secret::new([7; 32]);
        let bearer = |token: &str| format!("Bearer {token}");
        assert_eq!(secret.check(Some(&bearer(&secret.token()))), Ok(()));
        for shift in [-59i64, 59] {
            let token = secret.token_at(now().saturating_add_signed(shift));
            assert_eq!(secret.check(Some(&bearer(&token))), Ok(()), "{shift}");
        }
        for shift in [-62i64, 62] {
            let token = secret.token_at(now().saturating_add_signed(shift));
            let refused = secret.check(Some(&bearer(&token)));
            assert!(matches!(refused, Err(TokenError::Time(_))), "{shift}: {refused:?}");
        }
        let other = bearer(&Secret::new([8; 32]).token());
        let refused = secret.check(Some(&other));
        assert!(matches!(refused, Err(TokenError::Wrong(_))), "{refused:?}");
        assert_eq!(secret.check(None), Err(TokenError::Missing));
        assert_eq!(secret.check(Some("Basic x")), Err(TokenError::Missing));
        // Without a signature ("alg": "none").
        let none = "eyJhbGciOiJub25lIn0.eyJpYXQiOjE4MDAwMDAwMDB9.";
        assert!(matches!(secret.check(Some(&bearer(none))), Err(TokenError::Wrong(_))));
    }

    #[test]
    fn secrets_are_read_as_nodes_write_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jwt.hex");
        for text in ["0x", ""].map(|head| format!("{head}{}\n", "5a".repeat(32))) {
            std::fs::write(&path, text).unwrap();
            assert_eq!(Secret::read(&path).unwrap().0, [0x5a; 32]);
        }
        for text in ["", "0x12", "not hexadecimal"] {
            std::fs::write(&path, text).unwrap();
            assert!(Secret::read(&path).is_err(), "{text}");
        }
        assert!(Secret::read(&folder.path().join("none")).is_err());
    }
}
