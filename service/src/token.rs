//! Bearer tokens (RFC 6750).

/// Returns the token in a value of the header `Authorization`, if its scheme is `Bearer`.
pub fn bearer_token(authorization: &str) -> Option<&str> {
    // Several spaces may follow the scheme (RFC 9110, 11.4).
    let (scheme, token) = authorization.trim().split_once(' ')?;
    // Names of schemes are case-insensitive (RFC 9110, 11.1).
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_have_no_case() {
        for text in ["Bearer secret", "bearer secret", "BEARER   secret "] {
            assert_eq!(bearer_token(text), Some("secret"), "{text}");
        }
        for text in ["", "Bearer", "Bearersecret", "Basic secret"] {
            assert_eq!(bearer_token(text), None, "{text}");
        }
    }
}
