//! The writers of a directory: clients that may send updates.

use crate::problem::{Refusal, kind};
use axum::http::{HeaderMap, header};
use hekaton_service::bearer_token;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;

/// The least number of characters of a token: a shorter one could be guessed.
const MIN_TOKEN: usize = 16;

/// The tokens with which updates may be sent. Each of them may change every label.
#[derive(Clone, PartialEq, Eq)]
pub struct Writers {
    tokens: BTreeSet<[u8; 32]>,
}

impl std::fmt::Debug for Writers {
    /// Not the digests: weak tokens could be found from them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writers").field("tokens", &self.tokens.len()).finish()
    }
}

impl Writers {
    /// Reads tokens from a text, one on each line. Empty lines and lines that begin with `#` are comments.
    ///
    /// # Errors
    /// If the text contains no token, or a token is too short, is repeated, or contains anything but visible ASCII characters.
    pub fn of(text: &str) -> Result<Self, String> {
        let mut tokens = BTreeSet::new();
        for (number, line) in (1..).zip(text.lines()) {
            let token = line.trim();
            if token.is_empty() || token.starts_with('#') {
                continue;
            }
            if token.len() < MIN_TOKEN {
                let found = token.len();
                return Err(format!(
                    "line {number}: the token has {found} characters, expected at least {MIN_TOKEN}"
                ));
            }
            if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(format!(
                    "line {number}: a token has only visible ASCII characters, and no spaces"
                ));
            }
            if !tokens.insert(digest(token)) {
                return Err(format!("line {number}: this token is repeated"));
            }
        }
        match tokens.is_empty() {
            true => Err("no token, expected one on each line".to_owned()),
            false => Ok(Self { tokens }),
        }
    }

    /// Refuses a request without one of the tokens. Tokens are compared by digest, so timing reveals nothing.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let Some(token) = value.and_then(bearer_token) else {
            let why = "updates need the header 'Authorization: Bearer TOKEN' (--token FILE)";
            return Err(Refusal::new(kind::UNAUTHORIZED, why));
        };
        match self.tokens.contains(&digest(token)) {
            true => Ok(()),
            false => Err(Refusal::new(kind::TOKEN, "this directory does not know the token")),
        }
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_a_file() {
        let [a, b] = ["0123456789abcdef", "another/token+of=some.length"];
        let both = Writers::of(&format!("# Alice's\n{a}\n\n  {b}\r\n")).unwrap();
        assert_eq!(both.tokens, BTreeSet::from([digest(a), digest(b)]));
        assert_eq!(format!("{both:?}"), "Writers { tokens: 2 }");
        for (text, says) in [
            ("", "no token"),
            ("# 0123456789abcdef\n", "no token"),
            ("0123456789abcde", "line 1: the token has 15 characters, expected at least 16"),
            ("\n01234567 9abcdef0", "line 2: a token has only visible ASCII"),
            ("0123456789abcdefä", "line 1: a token has only visible ASCII"),
            ("0123456789abcdef\n0123456789abcdef", "line 2: this token is repeated"),
        ] {
            let why = Writers::of(text).unwrap_err();
            assert!(why.contains(says), "{why}");
        }
    }
}
