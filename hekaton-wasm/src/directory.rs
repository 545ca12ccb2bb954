//! Look-ups of labels in a key directory.

use crate::{refusal, verdict};
use hekaton_core::{Fr, VerifyingKey, verify, verify_with_test_keys};
use hekaton_directory::{
    Audit, AuditError, Checked, EpochProof, Parameters, SIGNED_LENGTH, SignedRecord,
};
use hekaton_directory_http::body::{ContinuationBody, KeyBody, ProofBody};
use hekaton_directory_http::{Base64, Found, ParametersFile};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A look-up to verify: the caller's own data, and the answers of the service.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct LookUp {
    // A service could sign with any key. Only parameters from elsewhere say whose signature counts.
    /// The parameters of the directory, from another source than its service.
    parameters: ParametersFile,
    label: String,
    /// The epoch in the question; the last epoch if absent.
    #[serde(default)]
    epoch: Option<u32>,
    /// The last record that the caller has seen.
    #[serde(default)]
    seen: Option<Base64>,
    /// Verifying keys of proofs, from another source than the service.
    #[serde(default)]
    keys: Vec<Base64>,
    /// **For tests only:** accepts keys under which anyone can forge proofs.
    #[serde(default)]
    accept_test_keys: bool,
    /// The answer of `/v1/keys/LABEL`.
    answer: KeyBody,
    /// The answer of `/v1/continuation` for the epochs of `seen` and of the answer, if they differ.
    #[serde(default)]
    continuation: ContinuationBody,
    /// Signed records of consecutive epochs: among them those of the answer, and of both ends of the proof.
    records: Vec<Base64>,
    /// The proof of the answer's epoch, if it is proven.
    #[serde(default)]
    proof: Option<ProofBody>,
}

/// Verifies a look-up: the path of the label, the record, that it is of one history with `seen`, and the proof of the
/// epoch.
///
/// `request` is a JSON object with `parameters`, `label`, `epoch`, `seen`, `keys`, `answer`, `continuation`, `records`, `proof` and
/// `acceptTestKeys`; bytes are base64. The answer is a JSON object: `ok`, `reason` of a refusal, and the content of the label.
///
/// `proof.state` is `proven` if the proof was verified, `unproven` if the epoch has no proof yet, and `unverified` if
/// no verifying key fits. A proof that does not hold is a refusal.
#[must_use]
pub fn verify_look_up(request: &str) -> Value {
    let request: LookUp = match serde_json::from_str(request) {
        Ok(request) => request,
        Err(error) => return refusal(Map::new(), format!("the request cannot be read: {error}")),
    };
    match request.verify() {
        Ok(about) => verdict(about, None),
        Err(reason) => refusal(Map::new(), reason),
    }
}

impl LookUp {
    fn verify(&self) -> Result<Map<String, Value>, String> {
        let parameters = self.parameters.parameters().map_err(|e| e.to_string())?;
        let found = self
            .answer
            .verify(&parameters, self.label.as_bytes(), self.epoch)
            .map_err(|e| e.to_string())?;
        let chain = self.chain(&parameters, &found.record)?;
        self.continues_seen(&parameters, &found.record)?;
        let proof = self.proven(&parameters, &found.record, &chain)?;
        Ok(described(&parameters, &found, proof))
    }

    /// Verifies that all records are of one history, with the record of the answer among them.
    fn chain(&self, parameters: &Parameters, answer: &Checked) -> Result<Chain, String> {
        let records: Vec<SignedRecord> =
            self.records.iter().map(|bytes| decode(&bytes.0)).collect::<Result<_, _>>()?;
        let mut chain: Vec<Checked> = Vec::with_capacity(records.len());
        for record in &records {
            let checked = record.verify(parameters).map_err(|e| e.to_string())?;
            if let Some(last) = chain.last() {
                checked.check_after(last).map_err(|e| e.to_string())?;
            }
            chain.push(checked);
        }
        let has_answer = chain.iter().any(|known| known.record() == answer.record());
        match chain.first() {
            Some(first) if has_answer => Ok(Chain { first: first.record().epoch, records }),
            _ => Err(format!(
                "the record of epoch {} is not among the records: the service shows two histories",
                answer.record().epoch
            )),
        }
    }

    /// Verifies that the record of the answer and `seen` are of one history.
    fn continues_seen(&self, parameters: &Parameters, answer: &Checked) -> Result<(), String> {
        let Some(bytes) = &self.seen else { return Ok(()) };
        let seen = decode(&bytes.0)?
            .verify(parameters)
            .map_err(|e| format!("the record that was seen before: {e}"))?;
        let (epoch, last) = (answer.record().epoch, seen.record().epoch);
        // A valid answer can be old. For the last epoch, one older than a record that the caller has seen hides a change.
        if self.epoch.is_none() && epoch < last {
            return Err(format!(
                "the service answers with epoch {epoch}, but epoch {last} was seen before: it hides later epochs"
            ));
        }
        let (earlier, later) = if epoch < last { (answer, &seen) } else { (&seen, answer) };
        self.continuation.verify(earlier, later).map_err(|e| {
            format!("epoch {last} was seen before, and the service may show another history: {e}")
        })
    }

    /// Verifies the proof of the answer's epoch.
    fn proven(
        &self,
        parameters: &Parameters,
        answer: &Checked,
        chain: &Chain,
    ) -> Result<Value, String> {
        let Some(body) = self.proof.clone() else {
            return Ok(json!({ "state": "unproven" }));
        };
        let proof = EpochProof::from(body);
        let (from, to, subcircuits) = (proof.from, proof.to, proof.subcircuits);
        let epoch = answer.record().epoch;
        if !(from < epoch && epoch <= to) {
            return Err(format!("the proof from epoch {from} to {to} is not of epoch {epoch}"));
        }
        let mut about = json!({ "from": from, "to": to, "subcircuits": subcircuits });
        let keys: Vec<VerifyingKey> = (self.keys.iter())
            .map(|bytes| {
                VerifyingKey::from_bytes(&bytes.0).map_err(|e| format!("a verifying key: {e}"))
            })
            .collect::<Result<_, _>>()?;
        // The family in a key is an unverified claim, so the caller must trust the source of the key.
        let fits = |key: &&VerifyingKey| {
            key.instances == u64::from(subcircuits) + 1 && key.family == Some(parameters.proofs)
        };
        let Some(key) = keys.iter().find(fits) else {
            about["state"] = json!("unverified");
            about["reason"] = json!(format!(
                "no verifying key for {subcircuits} subcircuits of the directory's key family"
            ));
            return Ok(about);
        };
        // The epochs of a chain are consecutive, so the first one determines the place of every other.
        let Chain { records, first } = chain;
        let at = |epoch: u32| Some(epoch.checked_sub(*first)? as usize);
        let ends = at(from).zip(at(to)).filter(|(_, last)| *last < records.len());
        let Some((first, last)) = ends else {
            return Err(format!("some of the records from epoch {from} to {to} are missing"));
        };
        let checked = || -> Result<(), AuditError> {
            let mut audit = Audit::begin(parameters, &records[first], from)?;
            for record in &records[first + 1..=last] {
                audit.record(record)?;
            }
            audit.proof(&proof, |proof, values| {
                let public = values.map(Fr::from);
                match self.accept_test_keys {
                    true => verify_with_test_keys(key, &public, &proof.proof)?,
                    false => verify(key, &public, &proof.proof)?,
                }
                Ok(())
            })
        };
        checked().map_err(|e| e.to_string())?;
        about["state"] = json!("proven");
        about["keyDigest"] = json!(hex::encode(key.digest()));
        about["trust"] = json!(key.trust.statement());
        Ok(about)
    }
}

/// Verified records of consecutive epochs.
struct Chain {
    records: Vec<SignedRecord>,
    /// The epoch of the first record.
    first: u32,
}

fn decode(bytes: &[u8]) -> Result<SignedRecord, String> {
    SignedRecord::decode(bytes)
        .map_err(|e| format!("a record of {} bytes, expected {SIGNED_LENGTH}: {e}", bytes.len()))
}

fn described(parameters: &Parameters, found: &Found, proof: Value) -> Map<String, Value> {
    let record = found.record.record();
    let value = found.value.as_ref();
    let object = json!({
        "parametersDigest": hex::encode(parameters.digest()),
        "present": found.leaf.is_some(),
        "version": found.leaf.map(|leaf| leaf.version),
        "since": found.leaf.map(|leaf| u64::from(leaf.epoch) + 1),
        // Values are bytes; those that are not text have only the other form.
        "value": value.and_then(|value| std::str::from_utf8(value).ok()),
        "valueHex": value.map(hex::encode),
        "epoch": record.epoch,
        "closed": record.closed,
        "labels": record.leaves,
        "record": hex::encode(record.digest()),
        "proof": proof,
    });
    let Value::Object(about) = object else { unreachable!("the macro was given an object") };
    about
}

#[cfg(test)]
mod tests {
    use super::*;
    use ed25519_dalek::SigningKey;
    use hekaton_directory::{
        Change, Current, Frontier, History, Index, Opening, Profile, Record, Tree,
    };

    const LABEL: &str = "alice";

    /// The answers of a directory whose only label gets a value in each of two epochs.
    struct Answers {
        parameters: ParametersFile,
        answers: Vec<Value>,
        records: Vec<Value>,
        /// The entries of the records of epochs 0 and 1 in the tree of records, of which that of epoch 2 has both.
        entries: Vec<Value>,
        /// Another record of epoch 2.
        other: Value,
    }

    fn base64(bytes: &[u8]) -> Value {
        serde_json::to_value(Base64(bytes.to_vec())).unwrap()
    }

    fn answers() -> Answers {
        let key = SigningKey::from_bytes(&[1; 32]);
        let (profile, server) = (Profile::Compress, key.verifying_key());
        let parameters = Parameters { profile, server, proofs: [2; 32] };
        let index = Index::of(LABEL.as_bytes()).unwrap();
        let (mut tree, mut history) = (Tree::new(profile), History::default());
        let mut record = Record::first(&parameters, 0);
        let mut earlier = Frontier::default();
        let mut all = Answers {
            parameters: ParametersFile::of(&parameters),
            answers: Vec::new(),
            records: vec![base64(&record.sign(&key).encode())],
            entries: Vec::new(),
            other: Value::Null,
        };
        for value in [b"first", b"other"] {
            let before = history.commitment(LABEL.as_bytes()).unwrap();
            let opening = Opening { salt: [3; 32], value: value.to_vec() };
            let current = Current { before, opening: opening.clone() };
            history.0.push(hekaton_directory::Entry::Value(opening));
            let commitment = history.commitment(LABEL.as_bytes()).unwrap();
            tree = tree.update(&[Change { index, commitment }]).unwrap();
            earlier.append(&[record.entry()]);
            all.entries.push(base64(&record.entry()));
            record = record.next(&tree, &Frontier::default(), &earlier, 60);
            all.other = base64(&Record { closed: 61, ..record }.sign(&key).encode());
            let signed = base64(&record.sign(&key).encode());
            all.answers.push(json!({
                "epoch": record.epoch, "state": "visible", "record": signed,
                "path": base64(&tree.path(&index).unwrap().encode()),
                "current": {
                    "before": base64(&current.before.0),
                    "salt": base64(&current.opening.salt),
                    "value": base64(&current.opening.value),
                },
            }));
            all.records.push(signed);
        }
        all
    }

    fn request(all: &Answers, answer: usize, records: &[usize], more: &Value) -> Value {
        let records: Vec<&Value> = records.iter().map(|at| &all.records[*at]).collect();
        let mut request = json!({
            "parameters": all.parameters, "label": LABEL, "answer": all.answers[answer],
            "records": records,
        });
        for (name, value) in more.as_object().unwrap() {
            request[name] = value.clone();
        }
        verify_look_up(&request.to_string())
    }

    #[test]
    fn look_ups_are_verified() {
        let all = answers();
        let found = request(&all, 1, &[2], &json!({}));
        assert_eq!(found["ok"], true, "{found}");
        assert_eq!(
            (&found["version"], &found["value"], &found["epoch"], &found["since"]),
            (&json!(1), &json!("other"), &json!(2), &json!(2))
        );
        assert_eq!(found["proof"], json!({ "state": "unproven" }));
        // A record that was seen is continued, and an older epoch is an answer to a question about it.
        let [first, second] = &all.entries[..] else { panic!() };
        let continued = json!({ "entry": second, "before": "" });
        let seen = json!({ "seen": all.records[0], "continuation": continued });
        assert_eq!(request(&all, 1, &[2], &seen)["ok"], true);
        let same = json!({ "seen": all.records[2] });
        assert_eq!(request(&all, 1, &[2], &same)["ok"], true);
        let continued = json!({ "entry": first, "before": second });
        let older = json!({ "seen": all.records[2], "epoch": 1, "continuation": continued });
        assert_eq!(request(&all, 0, &[1], &older)["value"], "first");
        let absent = Answers {
            answers: vec![{
                let mut answer = all.answers[1].clone();
                answer["current"] = Value::Null;
                answer
            }],
            ..answers()
        };
        // The value may be withheld, and then it is not said to be another one.
        assert_eq!(request(&absent, 0, &[2], &json!({}))["value"], Value::Null);
    }

    #[test]
    fn what_is_wrong_is_refused() {
        let all = answers();
        let refused = |answer: usize, records: &[usize], more: Value, says: &str| {
            let verdict = request(&all, answer, records, &more);
            assert_eq!(verdict["ok"], false, "{verdict}");
            assert!(verdict["reason"].as_str().unwrap().contains(says), "{verdict}");
        };
        refused(1, &[], json!({}), "not among the records");
        refused(1, &[1], json!({}), "not among the records");
        refused(1, &[0, 2], json!({}), "epoch");
        refused(0, &[1], json!({ "seen": all.records[2] }), "epoch 2 was seen before");
        let other = "epoch 0 was seen before, and the service may show another history";
        refused(1, &[2], json!({ "seen": all.records[0] }), other);
        let wrong = json!({ "entry": "", "before": all.entries[1] });
        refused(1, &[2], json!({ "seen": all.records[0], "continuation": wrong }), other);
        let cut = json!({ "entry": base64(&[1; 31]), "before": "" });
        refused(1, &[2], json!({ "seen": all.records[0], "continuation": cut }), "31 bytes");
        refused(1, &[2], json!({ "seen": all.other }), "two records of epoch 2");
        refused(1, &[1, 2], json!({ "epoch": 1 }), "asked for was epoch 1");
        refused(1, &[2], json!({ "label": "bob" }), "");
        refused(1, &[2], json!({ "label": "" }), "a label of 0 bytes");
        refused(1, &[2], json!({ "unknown": 1 }), "cannot be read");
        let proof = |from: u32, to: u32| json!({ "proof": { "from": from, "to": to, "subcircuits": 1, "proof": "" } });
        refused(1, &[0, 1, 2], proof(0, 1), "is not of epoch 2");
        refused(1, &[0, 1, 2], proof(2, 3), "is not of epoch 2");
        let found = request(&all, 1, &[0, 1, 2], &proof(0, 2));
        assert_eq!(found["proof"]["state"], "unverified", "{found}");
        assert_eq!(verify_look_up("")["ok"], false);
    }
}
