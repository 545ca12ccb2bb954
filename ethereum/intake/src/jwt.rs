//! The tokens of the Engine API: JSON Web Tokens (RFC 7519) with HS256 over a secret of 32 bytes, and the time they were made at (`iat`).
//!
//! For one algorithm and one claim, this takes less code than configuring a general crate would.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use hekaton_service::bearer_token;
use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::io::Read;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The largest difference between the clocks of both sides, in seconds.
const WINDOW: u64 = 60;

/// The largest file, in bytes. It has one line.
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
    #[error("no header 'Authorization: Bearer TOKEN'")]
    Missing,
    /// A token that is malformed, or made with another secret.
    #[error("the token was not made with this secret: {0}")]
    Wrong(String),
    /// A token that is too old, or from the future.
    #[error(
        "the token states that it was made {0} s ago; at most {WINDOW} s before or after the current time is allowed"
    )]
    Time(i64),
}

/// The header of all tokens that are made here.
const HEADER: &str = r#"{"typ":"JWT","alg":"HS256"}"#;

/// The header of a token (RFC 7515, 4.1).
#[derive(Deserialize)]
struct Header {
    alg: String,
    /// Extensions that the recipient must understand; none is supported here.
    crit: Option<serde::de::IgnoredAny>,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    iat: u64,
}

impl Secret {
    /// Makes a secret of 32 bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
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

    /// Returns a token made at the current time.
    pub fn token(&self) -> String {
        self.token_at(now())
    }

    /// Returns a token made at a given time, in seconds since 1970.
    pub fn token_at(&self, iat: u64) -> String {
        let claims = serde_json::to_vec(&Claims { iat }).expect("a number is JSON");
        let signed = format!("{}.{}", BASE64.encode(HEADER), BASE64.encode(claims));
        let mac = self.mac(&signed).finalize().into_bytes();
        format!("{signed}.{}", BASE64.encode(mac))
    }

    /// Returns the authentication code of the signed part of a token.
    fn mac(&self, signed: &str) -> Hmac<Sha256> {
        let mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.chain_update(signed)
    }

    /// Checks the value of a header `Authorization`.
    ///
    /// # Errors
    /// If the token is missing, was not signed with this secret, or is too old or too far in the future.
    pub fn check(&self, authorization: Option<&str>) -> Result<(), TokenError> {
        let token = authorization.and_then(bearer_token).ok_or(TokenError::Missing)?;
        let Claims { iat } = self.claims(token).map_err(|why| TokenError::Wrong(why.into()))?;
        let now = now();
        match now.abs_diff(iat) > WINDOW {
            true => Err(TokenError::Time(now.cast_signed().wrapping_sub(iat.cast_signed()))),
            false => Ok(()),
        }
    }

    /// Verifies a token and returns its claims, or what is wrong with it.
    fn claims(&self, token: &str) -> Result<Claims, &'static str> {
        let (signed, code) = token.rsplit_once('.').ok_or("it has no signature")?;
        let (header, claims) = signed.split_once('.').ok_or("it has no claims")?;
        let decode = |part: &str| BASE64.decode(part).map_err(|_| "it is not in base64url");
        // The signature is checked first, so that no token from a party without the secret is parsed. The comparison takes constant time.
        self.mac(signed).verify_slice(&decode(code)?).map_err(|_| "its signature is wrong")?;
        let header: Header =
            serde_json::from_slice(&decode(header)?).map_err(|_| "its header is malformed")?;
        // A token that lists extensions in `crit` must be refused where they are not understood
        // (RFC 7515, 4.1.11), and none is understood here.
        if header.alg != "HS256" || header.crit.is_some() {
            return Err("its header asks for another algorithm or an extension");
        }
        serde_json::from_slice(&decode(claims)?).map_err(|_| "it has no time 'iat' in seconds")
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
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
        // Signed, but with another header or without the time.
        for (header, claims) in [
            (r#"{"alg":"none"}"#, r#"{"iat":1800000000}"#),
            (r#"{"alg":"HS256","crit":["x"]}"#, r#"{"iat":1800000000}"#),
            (HEADER, "{}"),
            (HEADER, r#"{"iat":"1800000000"}"#),
        ] {
            let signed = format!("{}.{}", BASE64.encode(header), BASE64.encode(claims));
            let code = BASE64.encode(secret.mac(&signed).finalize().into_bytes());
            let refused = secret.check(Some(&bearer(&format!("{signed}.{code}"))));
            assert!(matches!(refused, Err(TokenError::Wrong(_))), "{header} {claims}");
        }
    }

    /// A token of another implementation, with more claims and its header in another order.
    #[test]
    fn tokens_of_others_are_read() {
        // The secret and the token of RFC 7515, A.1, whose claims have no `iat`.
        let key = BASE64
            .decode("AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow")
            .unwrap();
        let token = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
        let code = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let mac = Hmac::<Sha256>::new_from_slice(&key).unwrap().chain_update(token);
        assert_eq!(BASE64.encode(mac.finalize().into_bytes()), code);
        // With a secret of 32 bytes, made with Python's `hmac`.
        let token = "eyJhbGciOiAiSFMyNTYiLCAidHlwIjogIkpXVCJ9.eyJpYXQiOiAxODAwMDAwMDAwLCAiaWQiOiAiZWwifQ.G5L5yq8wGcbk-7KeiJ_AJ5vc9imuLHPxHPDjP9zSjOw";
        assert_eq!(Secret::new([7; 32]).claims(token).map(|claims| claims.iat), Ok(1_800_000_000));
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
