//! The description of what is taken, where it is not as plain as the types: it allows nothing that would be refused.

use crate::base64::Base64;
use crate::body::{ExpectedBody, UpdateBody};
use hekaton_service::Problem;
use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeMap;
use utoipa::openapi::schema::{
    AdditionalProperties, KnownFormat, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat,
    SchemaType, Type,
};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, PartialSchema, ToSchema};

fn text(what: &str, (least, most): (usize, usize)) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(what))
        .min_length(Some(least))
        .max_length(Some(most))
}

impl PartialSchema for ExpectedBody {
    fn schema() -> RefOr<Schema> {
        let version = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .format(Some(SchemaFormat::Custom("uint32".into())))
            .minimum(Some(0))
            .maximum(Some(u32::MAX))
            .description(Some("This version"));
        let absent = ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(["absent"]))
            .description(Some("None: the label is new"));
        let both = OneOfBuilder::new().item(version).item(absent);
        let what =
            "The version that the label must have before the update. Without it, any will do";
        both.description(Some(what)).examples([json!(0), json!("absent")]).into()
    }
}

impl ToSchema for ExpectedBody {
    fn name() -> Cow<'static, str> {
        "Expected".into()
    }
}

/// An update whose value is in one field.
fn update(field: &str, value: ObjectBuilder) -> ObjectBuilder {
    let label = "The label: 1 to 1,024 bytes of UTF-8";
    let name = "A name for this update, 1 to 128 bytes, long and random: sent again with the same name, it is done once, as long as \
                its outcome is kept";
    ObjectBuilder::new()
        .property("label", text(label, (1, 1024)))
        .required("label")
        .property(field, value)
        .required(field)
        .property("expected", Ref::from_schema_name("Expected"))
        .property("idempotency_key", text(name, (1, 128)))
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
}

impl PartialSchema for UpdateBody {
    fn schema() -> RefOr<Schema> {
        let as_text = text("The value as text, at most 65,536 bytes of UTF-8", (0, 1 << 16));
        let as_bytes = ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Byte)))
            .description(Some("The value as base64, at most 65,536 bytes"));
        OneOfBuilder::new()
            .item(update("value", as_text))
            .item(update("value_base64", as_bytes))
            .description(Some("An update that is sent, with its value as text or as bytes"))
            .examples([
                json!({ "label": "alice", "value": "her key" }),
                json!({ "label": "bob", "value_base64": "AP8K", "expected": "absent" }),
                json!({ "label": "alice", "value": "her next key", "expected": 0, "idempotency_key": "0b5c5cd3a4e04a55" }),
            ])
            .into()
    }
}

impl ToSchema for UpdateBody {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((ExpectedBody::name().into(), ExpectedBody::schema()));
    }
}

impl PartialSchema for Base64 {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(SchemaType::new(Type::String))
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Byte)))
            .description(Some("Bytes as base64 with padding (RFC 4648, section 4)"))
            .into()
    }
}

impl ToSchema for Base64 {}

/// An answer with a problem.
fn problem(what: &str) -> Response {
    let schema = Ref::from_schema_name(Problem::name());
    let content = ContentBuilder::new().schema(Some(schema)).build();
    ResponseBuilder::new().description(what).content("application/problem+json", content).build()
}

fn problems<const N: usize>(all: [(u16, &str); N]) -> BTreeMap<String, RefOr<Response>> {
    all.into_iter().map(|(status, what)| (status.to_string(), problem(what).into())).collect()
}

/// The errors that may answer any request.
pub(crate) struct Any;

impl IntoResponses for Any {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems([
            (400, "The request cannot be understood"),
            (415, "The request is compressed, or is not JSON where it must be"),
            (500, "The directory cannot answer; its log says why"),
            (503, "The directory does not answer now, or too many requests are on their way"),
        ])
    }
}

/// The errors that may answer any request with a body.
pub(crate) struct AnyWithBody;

impl IntoResponses for AnyWithBody {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let body = problems([(408, "The body came too slowly"), (413, "The body is too large")]);
        Any::responses().into_iter().chain(body).collect()
    }
}
