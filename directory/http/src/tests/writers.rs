//! Who may send updates.

use super::{Running, options, problem, update};
use crate::body::State;
use crate::{Service, ServiceOptions, Writers};

const ALICE: &str = "0123456789abcdef";
const BOB: &str = "fedcba9876543210";

/// With tokens, updates need one of them, and nothing else does.
#[test]
fn updates_need_a_token() {
    let writers = Writers::of(&format!("{ALICE}\n{BOB}\n")).unwrap();
    let service =
        |server| Service::new(server, ServiceOptions::default()).with_writers(Some(writers));
    let running = Running::run(options(), service, None);
    let client = |token: &str| running.client.clone().with_token(token.to_owned());
    let send = |client: &crate::Client| client.submit(&update("label", "value"), true);
    assert_eq!(problem(send(&running.client)), (401, "unauthorized".into()));
    for wrong in ["0123456789abcdeg", "0123456789abcde", "", "Bearer 0123456789abcdef"] {
        let (status, kind) = problem(send(&client(wrong)));
        assert!(status == 401 && (kind == "invalid-token" || wrong.is_empty()), "{wrong}: {kind}");
    }
    // Also where the body is no update: a stranger learns nothing, and has nothing parsed.
    let (status, headers, _) = running.raw("POST", "/v1/updates", "application/json", b"{");
    assert!(status == 401 && headers.contains("Bearer"), "{status} {headers}");
    assert_eq!(running.client.epochs().unwrap().last.epoch, 0);
    for token in [ALICE, BOB] {
        assert_eq!(send(&client(token)).unwrap().state, State::Visible);
    }
    assert_eq!(running.client.key("label", None).unwrap().epoch, 2);
    assert!(!format!("{:?}", client(ALICE)).contains(ALICE));
    // Tools that read the description know how to send one.
    let api = serde_json::to_value(crate::open_api()).unwrap();
    assert_eq!(api["components"]["securitySchemes"]["token"]["scheme"], "bearer");
    assert_eq!(api["paths"]["/v1/updates"]["post"]["security"][1]["token"], serde_json::json!([]));
}
