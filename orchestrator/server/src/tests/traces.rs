//! Tests of the spans that are sent to a collector of traces.

use super::records::{job, task};
use crate::metrics::Metrics;
use crate::record::{JobState, Task};
use crate::traces::Traces;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

/// Takes requests until the sender has no more.
fn collector() -> (String, std::thread::JoinHandle<Vec<Span>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let take = move || {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(&stream);
        let (mut length, mut line, mut path) = (0, String::new(), String::new());
        while reader.read_line(&mut line).unwrap() > 2 {
            if path.is_empty() {
                path.clone_from(&line);
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        assert!(path.starts_with("POST /v1/traces "), "{path}");
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        (&stream).write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
        let request = ExportTraceServiceRequest::decode(&body[..]).unwrap();
        let scopes = request.resource_spans.into_iter().flat_map(|spans| spans.scope_spans);
        scopes.flat_map(|scope| scope.spans).collect()
    };
    (address, std::thread::spawn(take))
}

#[test]
fn spans_are_children_of_what_the_job_was_submitted_with() {
    let (address, collected) = collector();
    let metrics = Metrics::with_traces(Traces::to(&address).unwrap());
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned();
    let (_, waiting) = task("t", "c", 7, 0);
    let why = Some("exit code 4".to_owned());
    let task =
        Task { trace: Some(trace.clone()), created: 1_000, last_failure: why, ..waiting.clone() };
    metrics.claimed(&task, 3_000);
    metrics.task_span("prove", &task, 3_100, 4_000, None, vec![]);
    metrics.ended(&task, "failed", (3_000, 4_500));
    let mut job = job(vec![]);
    job.trace = Some(trace);
    job.state = JobState::Done { outputs: vec![], at: 5_000 };
    metrics.job_ended(&job, 5_000);
    metrics.published(&job, 6_000);
    // A task without a trace has no spans.
    metrics.claimed(&waiting, 3_000);
    metrics.traces().flush();
    let spans = collected.join().unwrap();
    let times =
        |span: &Span| (span.start_time_unix_nano / 1_000_000, span.end_time_unix_nano / 1_000_000);
    let found: Vec<_> = spans.iter().map(|span| (span.name.as_str(), times(span))).collect();
    assert_eq!(
        found,
        [
            ("pickup", (1_000, 3_000)),
            ("prove", (3_100, 4_000)),
            ("attempt", (3_000, 4_500)),
            ("collect", (0, 5_000)),
            ("publish", (5_000, 6_000)),
        ]
    );
    for span in &spans {
        assert_eq!(hex::encode(&span.trace_id), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(hex::encode(&span.parent_span_id), "b7ad6b7169203331");
    }
    let status = spans[2].status.as_ref().unwrap();
    assert_eq!(status.message, "exit code 4");
    assert!(spans[2].attributes.iter().any(|attribute| attribute.key == "hekaton.outcome"));
}
