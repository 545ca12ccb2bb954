//! Sending spans by OTLP.

use super::Span;
use async_trait::async_trait;
use bytes::Bytes;
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt, TraceFlags,
    TraceId, TraceState, Tracer, TracerProvider,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use std::time::{Duration, SystemTime};

/// The time that the collector may take to answer.
const TIME: Duration = Duration::from_secs(10);

/// The largest answer of a collector, in bytes.
const MAX_ANSWER: u64 = 1 << 20;

/// Sends spans in batches, from a thread of its own.
#[derive(Clone, Debug)]
pub(super) struct Exporter {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

impl Exporter {
    pub(super) fn new(address: &str) -> Result<Self, String> {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(TIME))
            .build();
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Client(config.into()))
            .with_endpoint(format!("{}/v1/traces", address.trim_end_matches('/')))
            .build()
            .map_err(|error| error.to_string())?;
        let resource = Resource::builder_empty()
            .with_attribute(KeyValue::new("service.name", "hekaton-orchestrator"))
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource)
            .build();
        let tracer = provider.tracer("hekaton-orchestrator");
        Ok(Self { provider, tracer })
    }

    pub(super) fn send(&self, parent: &str, span: &Span<'_>) {
        let Some(parent) = context(parent) else { return };
        let time = |millis: u64| SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        let attributes =
            span.attributes.iter().map(|(name, value)| KeyValue::new(*name, value.clone()));
        let builder = SpanBuilder::from_name(span.name.to_owned())
            .with_kind(SpanKind::Internal)
            .with_start_time(time(span.from))
            .with_attributes(attributes);
        let context = Context::new().with_remote_span_context(parent);
        let mut made = self.tracer.build_with_context(builder, &context);
        if let Some(why) = span.failure {
            made.set_status(Status::error(why.to_owned()));
        }
        made.end_with_timestamp(time(span.to.max(span.from)));
    }

    pub(super) fn flush(&self) {
        if let Err(error) = self.provider.force_flush() {
            tracing::warn!(%error, "spans were not sent");
        }
    }
}

/// The span that a `traceparent` names.
fn context(text: &str) -> Option<SpanContext> {
    let parts: Vec<&str> = text.split('-').collect();
    let &[_, trace, span, flags] = &parts[..] else { return None };
    let context = SpanContext::new(
        TraceId::from_hex(trace).ok()?,
        SpanId::from_hex(span).ok()?,
        TraceFlags::new(u8::from_str_radix(flags, 16).ok()?),
        true,
        TraceState::NONE,
    );
    context.is_valid().then_some(context)
}

/// Sends requests with the HTTP library that the rest of Hekaton uses.
#[derive(Debug)]
struct Client(ureq::Agent);

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        // On the exporter's own thread, which may wait.
        let mut answer = self.0.run(Request::from_parts(parts, body.to_vec()))?;
        let status = answer.status();
        let body = answer.body_mut().with_config().limit(MAX_ANSWER).read_to_vec()?;
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = status;
        Ok(response)
    }
}
