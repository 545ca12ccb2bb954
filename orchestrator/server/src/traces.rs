//! Spans of jobs and tasks, for OpenTelemetry.
//!
//! A span is sent when it has ended, with its times, as the parts of a job run in different processes. All are children of the job's
//! `traceparent`, so that a trace shows what a block waited for.

#[cfg(feature = "traces")]
mod export;

use crate::record::Job;

/// The destination of spans; none by default.
#[derive(Clone, Debug, Default)]
pub struct Traces {
    #[cfg(feature = "traces")]
    exporter: Option<export::Exporter>,
}

/// The data of a span.
#[derive(Debug)]
#[cfg_attr(not(feature = "traces"), expect(dead_code))]
pub(crate) struct Span<'a> {
    pub(crate) name: &'a str,
    /// The `traceparent` of the job. Without it there is no span.
    pub(crate) parent: Option<&'a str>,
    /// The start, in milliseconds since 1970.
    pub(crate) from: u64,
    /// The end, in milliseconds since 1970.
    pub(crate) to: u64,
    /// Why it failed, if it did.
    pub(crate) failure: Option<&'a str>,
    pub(crate) attributes: Vec<(&'static str, String)>,
}

impl Traces {
    /// Sends spans to a collector, such as `http://127.0.0.1:4318`, by OTLP over HTTP.
    ///
    /// # Errors
    /// If the address is invalid.
    #[cfg(feature = "traces")]
    pub fn to(address: &str) -> Result<Self, String> {
        Ok(Self { exporter: Some(export::Exporter::new(address)?) })
    }

    /// Reports whether spans are sent anywhere.
    pub(crate) fn is_on(&self) -> bool {
        #[cfg(feature = "traces")]
        return self.exporter.is_some();
        #[cfg(not(feature = "traces"))]
        false
    }

    pub(crate) fn send(&self, span: &Span<'_>) {
        #[cfg(feature = "traces")]
        if let (Some(exporter), Some(parent)) = (&self.exporter, span.parent) {
            exporter.send(parent, span);
        }
        #[cfg(not(feature = "traces"))]
        let _ = span;
    }

    /// Sends a span of a job.
    pub(crate) fn job(&self, name: &'static str, job: &Job, from: u64, to: u64) {
        if self.is_on() {
            let attributes = vec![
                ("hekaton.tenant", job.tenant.to_string()),
                ("hekaton.chain", job.chain.to_string()),
                ("hekaton.block", job.block.to_string()),
                ("hekaton.block_id", job.id.to_string()),
            ];
            let parent = job.trace.as_deref();
            self.send(&Span { name, parent, from, to, failure: None, attributes });
        }
    }

    /// Sends what has not been sent.
    pub(crate) fn flush(&self) {
        #[cfg(feature = "traces")]
        if let Some(exporter) = &self.exporter {
            exporter.flush();
        }
    }
}

/// A `traceparent` for a job that was submitted without one.
pub(crate) fn new_traceparent() -> String {
    let word = || crate::id::random();
    format!("00-{:016x}{:016x}-{:016x}-01", word(), word() | 1, word() | 1)
}

/// Reports whether a text is a W3C trace context: version, trace, span and flags.
pub(crate) fn is_traceparent(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [2, 32, 16, 2]
        && text
            .bytes()
            .all(|byte| byte == b'-' || (byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_contexts_are_recognized() {
        assert!(is_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
        assert!(is_traceparent(&new_traceparent()));
        for bad in [
            "",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01",
        ] {
            assert!(!is_traceparent(bad), "{bad}");
        }
    }
}
