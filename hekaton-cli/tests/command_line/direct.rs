//! Direct proofs: proving, exporting and verifying them, and what must not be mixed.

use super::common::{Chain, fails, ok};
use serde_json::Value;

const CONTEXT: &str = "00000000000000000000000000000000000000000000000000000000000000c0";
const OTHER: &str = "00000000000000000000000000000000000000000000000000000000000000c1";

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&ok(&[args, &["--json"]].concat())).unwrap()
}

#[test]
fn direct_proofs_are_verified_by_their_key() {
    let chain = Chain::new(3, 1);
    let path = |name: &str| chain.path(name);
    let (input, keys, proof) = (path("x"), path("keys"), path("direct.proof"));
    let prove = ["prove", &input, "--keys", &keys, "--direct", "--context", CONTEXT];
    let said = ok(&[&prove[..], &["--proof", &proof]].concat());
    assert!(said.contains("--key direct.key") && said.contains(CONTEXT), "{said}");
    let public = ok(&["hash", &input, "--keys", &keys]).trim().to_owned();

    // The key, for verifiers; the same again.
    let key = path("direct.key");
    let exported = json(&["export", "verifier", &keys, "--out", &key]);
    let digest = exported["key_digest"].as_str().unwrap();
    ok(&["export", "verifier", &keys, "--check", &key]);
    ok(&["export", "verifier", &key, "--check", &key]);
    fails(3, "that is the input", &["export", "verifier", &key, "--out", &key]);
    fails(1, "not the file that", &["export", "verifier", &keys, "--evm", "--check", &key]);
    fails(
        3,
        "inside the key store",
        &["export", "verifier", &keys, "--out", &path("keys/direct.key")],
    );
    fails(2, "required", &["export", "verifier", &keys]);
    fails(2, "for key families", &["export", "verifier", &keys, "-p", "links=3", "--out", &key]);
    fails(
        3,
        "it does not start with",
        &["export", "proof", &proof, "--evm", "--key", &input, "--public", "1"],
    );

    let verify = ["verify", &proof, "--key", &key, "--public", &public, "--context", CONTEXT];
    let verified = json(&[&verify[..], &["--key-digest", digest]].concat());
    assert_eq!((&verified["kind"], &verified["subcircuits"]), (&"direct".into(), &3.into()));
    assert!(ok(&verify).contains("the proof holds (direct"));
    // Another context, another digest, another kind of key or proof.
    fails(1, "is it bound to this --context?", &[&verify[..6], &["--context", OTHER]].concat());
    fails(1, "if it is bound to a context, pass --context", &verify[..6]);
    fails(2, "64 hexadecimal digits", &[&verify[..6], &["--context", "c0"]].concat());
    fails(1, "--key-digest requires", &[&verify[..], &["--key-digest", OTHER]].concat());
    let verifying = path("keys/verifying.key");
    let of_kind = |proof, key| ["verify", proof, "--key", key, "--public", &public];
    fails(3, "this is a direct proof", &of_kind(&proof, &verifying));
    fails(
        2,
        "--context is for direct",
        &[&of_kind(&proof, &verifying)[..], &["--context", OTHER]].concat(),
    );
    let aggregated = path("aggregated.proof");
    ok(&["prove", &input, "--keys", &keys, "--proof", &aggregated]);
    fails(3, "this is an aggregated proof", &of_kind(&aggregated, &key));
    assert_eq!(json(&of_kind(&aggregated, &verifying))["kind"], "aggregated");
    fails(2, "--direct", &["prove", &input, "--keys", &keys, "--context", CONTEXT]);

    // The contract and its calldata.
    let contract = path("Verifier.sol");
    let exported = json(&["export", "verifier", &keys, "--evm", "--out", &contract]);
    assert_eq!(exported["key_digest"], digest);
    let source = std::fs::read_to_string(&contract).unwrap();
    assert!(
        source.contains(&format!("KEY = 0x{digest};"))
            && source.contains("could have kept the trapdoors")
    );
    ok(&["export", "verifier", &keys, "--evm", "--check", &contract]);
    let export = ["export", "proof", &proof, "--evm", "--key", &key, "--public", &public];
    let calldata = ok(&[&export[..], &["--context", CONTEXT]].concat());
    assert!(calldata.starts_with("0x") && calldata.contains(CONTEXT), "{calldata}");
    fails(1, "does not hold", &export);
    assert!(
        ok(&["inspect", &proof]).contains("direct proof")
            && ok(&["inspect", &key]).contains(digest)
    );
}

#[test]
fn a_direct_run_is_resumed_as_one() {
    let chain = Chain::new(3, 1);
    let (run, public) =
        (chain.path("run"), ok(&["hash", &chain.path("x"), "--keys", &chain.path("keys")]));
    let prove = |more: &[&str]| chain.prove(&run, more).output().unwrap();
    assert!(prove(&["--direct", "--context", CONTEXT]).status.success());
    let said = |output: std::process::Output| {
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let kind = said(prove(&["--resume"]));
    assert!(kind.contains("a direct proof then, an aggregated proof now"), "{kind}");
    let context = said(prove(&["--resume", "--direct", "--context", OTHER]));
    assert!(context.contains("its context"), "{context}");
    assert!(prove(&["--resume", "--direct", "--context", CONTEXT]).status.success());
    let key = chain.path("direct.key");
    ok(&["export", "verifier", &chain.path("keys"), "--out", &key]);
    let proof = format!("{run}/proof");
    ok(&["verify", &proof, "--key", &key, "--public", public.trim(), "--context", CONTEXT]);
}

/// Test keys are refused without the option that says so, and runs of programs have no direct proofs.
#[test]
fn test_keys_are_not_exported() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    let (keys, out) = (path("keys"), path("direct.key"));
    ok(&[
        "setup",
        "chain",
        "-p",
        "links=1",
        "-p",
        "steps=1",
        "--keys",
        &keys,
        "--insecure-seed",
        "1",
    ]);
    fails(1, "proves nothing", &["export", "verifier", &keys, "--out", &out]);
    assert!(!dir.path().join("direct.key").exists());
    ok(&["export", "verifier", &keys, "--out", &out, "--accept-test-keys"]);
    std::fs::write(path("x"), "7\n").unwrap();
    let (x, proof) = (path("x"), path("proof"));
    ok(&["prove", &x, "--keys", &keys, "--direct", "--proof", &proof]);
    let public = ok(&["hash", &x, "--keys", &keys]);
    let verify = ["verify", &proof, "--key", &out, "--public", public.trim()];
    fails(1, "proves nothing", &verify);
    ok(&[&verify[..], &["--accept-test-keys"]].concat());
}
