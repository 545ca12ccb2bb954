//! Looking labels up in a key directory.

use crate::{refusal, verdict};
use hekaton_core::{Fr, VerifyingKey, verify, verify_with_test_keys};
use hekaton_directory::{
    Audit, AuditError, Checked, EpochProof, Parameters, SIGNED_LENGTH, SignedRecord,
};
use hekaton_directory_http::body::{KeyBody, ProofBody};
use hekaton_directory_http::{Base64, Found, ParametersFile};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A look-up that is to be verified: what the caller holds, and what a service has answered.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct LookUp {
    /// The parameters of the directory, not from its service.
    parameters: ParametersFile,
    label: String,
    /// The epoch that was asked for; without it, the last one.
    #[serde(default)]
    epoch: Option<u32>,
    /// The last record that the caller has seen.
    #[serde(default)]
    seen: Option<Base64>,
    /// Verifying keys of proofs, not from the service.
    #[serde(default)]
    keys: Vec<Base64>,
    /// A switch for tests only: accepts keys under which anybody can forge proofs.
    #[serde(default)]
    accept_test_keys: bool,
    /// The answer of `/v1/keys/LABEL`.
    answer: KeyBody,
    /// Signed records of epochs in a row, with that of the answer, those at the ends of the proof, and the one that was seen.
    records: Vec<Base64>,
    /// The proof of the answer's epoch, if it is proven.
    #[serde(default)]
    proof: Option<ProofBody>,
}

/// Verifies a look-up: the path of the label, the record, the chain of records from the one that was seen, and the proof of
/// the epoch.
///
/// `request` is a JSON object with `parameters`, `label`, `epoch`, `seen`, `keys`, `answer`, `records`, `proof` and
/// `acceptTestKeys`; bytes are base64. The answer is a JSON object: `ok`, `reason` if not, and the content of the label.
///
/// `proof.state` is `proven` if the proof was verified here, `unproven` if there is not yet a proof, and `unverified` if
/// there is no verifying key for it. A proof that does not hold is a refusal.
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
        let found = self.answer.verify(&parameters, self.label.as_bytes(), self.epoch);
        let found = found.map_err(|e| e.to_string())?;
        let records = self.chain(&parameters, &found.record)?;
        let proof = self.proven(&parameters, &found.record, &records)?;
        Ok(described(&parameters, &found, proof))
    }

    /// Verifies that all records are those of one history, the answer's and the seen one among them.
    fn chain(
        &self,
        parameters: &Parameters,
        answer: &Checked,
    ) -> Result<Vec<SignedRecord>, String> {
        let records = self.records.iter().map(|bytes| decode(&bytes.0));
        let records: Vec<SignedRecord> = records.collect::<Result<_, _>>()?;
        let mut chain: Vec<Checked> = Vec::with_capacity(records.len());
        for record in &records {
            let record = record.verify(parameters).map_err(|e| e.to_string())?;
            if let Some(last) = chain.last() {
                record.check_after(last).map_err(|e| e.to_string())?;
            }
            chain.push(record);
        }
        let is_in = |wanted: &Checked| chain.iter().any(|known| known.record() == wanted.record());
        let epoch = answer.record().epoch;
        if !is_in(answer) {
            return Err(format!(
                "the record of epoch {epoch} is not among the records: the service shows two histories"
            ));
        }
        let Some(seen) = &self.seen else { return Ok(records) };
        let seen = decode(&seen.0)?.verify(parameters);
        let seen = seen.map_err(|e| format!("the record that was seen before: {e}"))?;
        let last = seen.record().epoch;
        if self.epoch.is_none() && epoch < last {
            return Err(format!(
                "the service answers with epoch {epoch}, but epoch {last} was seen before: it hides what came after"
            ));
        }
        match is_in(&seen) {
            true => Ok(records),
            false => Err(format!(
                "the records do not continue that of epoch {last}, which was seen before: the service shows another history"
            )),
        }
    }

    /// Verifies the proof of the answer's epoch. The records are known to follow each other.
    fn proven(
        &self,
        parameters: &Parameters,
        answer: &Checked,
        records: &[SignedRecord],
    ) -> Result<Value, String> {
        let Some(proof) = self.proof.clone() else {
            return Ok(json!({ "state": "unproven" }));
        };
        let proof = EpochProof::from(proof);
        let (from, to, subcircuits) = (proof.from, proof.to, proof.subcircuits);
        let epoch = answer.record().epoch;
        if !(from < epoch && epoch <= to) {
            return Err(format!("the proof from epoch {from} to {to} is not of epoch {epoch}"));
        }
        let mut about = json!({ "from": from, "to": to, "subcircuits": subcircuits });
        let keys = self.keys.iter().map(|bytes| {
            VerifyingKey::from_bytes(&bytes.0).map_err(|e| format!("a verifying key: {e}"))
        });
        let keys: Vec<VerifyingKey> = keys.collect::<Result<_, _>>()?;
        // A key's family is the key's own claim: the caller must trust where the key comes from.
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
        // They follow each other, so the first one's number says that of all.
        let start = records.first().and_then(|first| first.verify(parameters).ok());
        let start = start.map_or(u32::MAX, |first| first.record().epoch);
        let at = |epoch: u32| usize::try_from(epoch.checked_sub(start)?).ok();
        let ends = at(from).zip(at(to)).filter(|(_, last)| *last < records.len());
        let Some((first, last)) = ends else {
            return Err(format!("the records from epoch {from} to {to} are not all there"));
        };
        let checked = || -> Result<(), AuditError> {
            let mut audit = Audit::begin(parameters, &records[first], from)?;
            for record in &records[first + 1..=last] {
                audit.record(record)?;
            }
            audit.proof(&proof, |proof, values| {
                let values = values.map(Fr::from);
                match self.accept_test_keys {
                    true => verify_with_test_keys(key, &values, &proof.proof)?,
                    false => verify(key, &values, &proof.proof)?,
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
        "value": value.and_then(|value| std::str::from_utf8(value).ok()),
        "valueHex": value.map(hex::encode),
        "epoch": record.epoch,
        "closed": record.closed,
        "labels": record.leaves,
        "record": hex::encode(record.digest()),
        "proof": proof,
    });
    match object {
        Value::Object(about) => about,
        _ => Map::new(),
    }
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
        let mut all = Answers {
            parameters: ParametersFile::of(&parameters),
            answers: Vec::new(),
            records: vec![base64(&record.sign(&key).encode())],
        };
        for value in [b"first", b"other"] {
            let before = history.commitment(LABEL.as_bytes()).unwrap();
            let opening = Opening { salt: [3; 32], value: value.to_vec() };
            let current = Current { before, opening: opening.clone() };
            history.0.push(hekaton_directory::Entry::Value(opening));
            let commitment = history.commitment(LABEL.as_bytes()).unwrap();
            tree = tree.update(&[Change { index, commitment }]).unwrap();
            record = record.next(&tree, &Frontier::default(), 60);
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
        // From a record that was seen on, and an older epoch for who asks for it.
        let seen = json!({ "seen": all.records[0] });
        assert_eq!(request(&all, 1, &[0, 1, 2], &seen)["ok"], true);
        let older = json!({ "seen": all.records[2], "epoch": 1 });
        assert_eq!(request(&all, 0, &[1, 2], &older)["value"], "first");
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
        refused(1, &[2], json!({ "seen": all.records[0] }), "do not continue that of epoch 0");
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
