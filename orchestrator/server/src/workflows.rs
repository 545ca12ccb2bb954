//! Workflows by their digest, and other blobs that records are about to name.

use crate::retention::touch;
use hekaton_orchestrator_client::{BlobError, Blobs, Digest, Workflow};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The largest encoding of a workflow, in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// The number of workflows that stay in memory.
const MAX_KNOWN: usize = 256;

/// Workflows by their digest, with those in memory that were read or stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workflows {
    blobs: Option<Blobs>,
    known: Arc<Mutex<BTreeMap<Digest, Arc<Workflow>>>>,
}

impl Workflows {
    /// Workflows that are blobs.
    pub(crate) fn new(blobs: Blobs) -> Self {
        Self { blobs: Some(blobs), known: Arc::default() }
    }

    /// Makes sure that blobs are there, and are not removed before a record names them. Must be called before the record is written.
    ///
    /// # Errors
    /// If one of them does not exist, or its file cannot be touched.
    pub(crate) fn hold(&self, digests: &[Digest]) -> Result<(), BlobError> {
        let Some(blobs) = &self.blobs else { return Ok(()) };
        digests.iter().try_for_each(|digest| touch(blobs, digest))
    }

    /// Stores a workflow, unless that was done before.
    pub(crate) fn put(&self, workflow: Workflow) -> Result<Digest, BlobError> {
        let bytes = workflow.to_bytes();
        let digest = Digest::of(&bytes);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_stored = known.contains_key(&digest) && self.hold(&[digest]).is_ok();
        if !is_stored && let Some(blobs) = &self.blobs {
            blobs.put(&bytes)?;
        }
        remember(&mut known, digest, Arc::new(workflow));
        Ok(digest)
    }

    /// Returns the workflow with a digest, or the reason why it cannot be read.
    pub(crate) fn get(&self, digest: &Digest) -> Result<Arc<Workflow>, String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(workflow) = known.get(digest) {
            return Ok(Arc::clone(workflow));
        }
        let blobs = self.blobs.as_ref().ok_or_else(|| format!("there is no blob {digest}"))?;
        let bytes = blobs.get(digest, MAX_BYTES).map_err(|error| error.to_string())?;
        let workflow = Workflow::from_bytes(&bytes).map_err(|error| error.to_string())?;
        let workflow = Arc::new(workflow);
        remember(&mut known, *digest, Arc::clone(&workflow));
        Ok(workflow)
    }
}

fn remember(known: &mut BTreeMap<Digest, Arc<Workflow>>, digest: Digest, workflow: Arc<Workflow>) {
    if known.len() >= MAX_KNOWN {
        // They are read again when they are needed.
        known.clear();
    }
    known.insert(digest, workflow);
}
