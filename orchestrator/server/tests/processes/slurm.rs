//! Tasks as jobs of SLURM, with stand-ins for its programs. Tests with the real ones are in `slurm/tests`.

use super::support::*;
use std::path::Path;
use std::process::Command;

const SBATCH: &str = r#"#!/bin/sh
here=$(dirname "$0")
echo "$*" >>"$here/submissions"
for word; do case $word in --job-name=*) name=${word#--job-name=} ;; esac; done
while [ $# -gt 1 ]; do
    [ "$1" = --output ] && log=$2
    shift
done
id=$(($(cat "$here/last" 2>/dev/null || echo 100) + 1))
echo $id >"$here/last"
echo "$name" >"$here/job-$id"
setsid sh -c "echo \$\$ >'$here/pid-$id'; sh '$1'; echo \$? >'$here/ended-$id'" >"$log" 2>&1 </dev/null &
# Jobs are not children of sbatch, and do not end with it.
while [ ! -e "$here/pid-$id" ]; do sleep 0.01; done
if [ -e "$here/silent" ]; then
    rm "$here/silent"
    echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2
    exit 1
fi
echo "$id;cluster"
"#;

/// The queue and, under the name `sacct`, the accounts. The queue forgets jobs that have ended.
const SQUEUE: &str = r#"#!/bin/sh
here=$(dirname "$0")
for word; do
    case $word in
        --jobs=*) ids=${word#--jobs=} ;;
        --name=*) by_name=1 ids=$(grep -lx "${word#--name=}" "$here"/job-* 2>/dev/null | sed 's/.*job-//') ;;
        --format=*) format=${word#--format=} ;;
    esac
done
for id in $ids; do
    ended=$(cat "$here/ended-$id" 2>/dev/null)
    case $ended in
        "") state=RUNNING ;;
        0) state=COMPLETED ;;
        *) state=FAILED ;;
    esac
    [ -e "$here/cancelled-$id" ] && state="CANCELLED by 0"
    case $(basename "$0")-$state in
        squeue-RUNNING) ;;
        squeue-*) [ -n "$by_name" ] && continue; echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1 ;;
    esac
    case $format in
        %A | JobIDRaw) echo $id ;;
        *) echo "$state" ;;
    esac
done
"#;

const SCANCEL: &str = r#"#!/bin/sh
here=$(dirname "$0")
touch "$here/cancelled-$1"
kill -9 -$(cat "$here/pid-$1")
"#;

/// A job script that writes its input in capital letters. The first job of an unlucky input dies; the others wait until a file exists.
const JOB: &str = r#"
here=HERE
mkdir -p "$RUN"
read -r seconds word <"$FILE"
if [ "$word" = unlucky ] && [ ! -e "$here/first" ]; then
    touch "$here/first"
    echo "a machine burns" >&2
    exit 7
fi
while [ ! -e "$here/go" ]; do sleep 0.05; done
exec "$HEKATON" prove "$FILE" --run "$RUN"
"#;

/// A stand-in for `hekaton`.
const HEKATON: &str = r#"#!/bin/sh
case $1 in
    prove) read -r seconds word <"$2"; echo "$word" | tr a-z A-Z >"$4/proof" ;;
    hash) read -r seconds word <"$2"; echo "$word" | tr a-z A-Z ;;
    verify) [ "$(cat "$2")" = "$6" ] || exit 1 ;;
esac
"#;

impl Place {
    /// A place whose tasks are jobs of SLURM.
    fn with_slurm() -> Self {
        let mut place = Self::new("");
        std::fs::create_dir_all(place.path("bin")).unwrap();
        std::fs::create_dir_all(place.path("keys")).unwrap();
        let executable = |name: &str, text: &str| {
            let path = place.path("bin").join(name);
            std::fs::write(&path, text).unwrap();
            assert!(Command::new("chmod").arg("755").arg(path).status().unwrap().success());
        };
        executable("sbatch", SBATCH);
        executable("squeue", SQUEUE);
        executable("sacct", SQUEUE);
        executable("scancel", SCANCEL);
        executable("hekaton", HEKATON);
        let here = place.path("bin").display().to_string();
        std::fs::write(place.path("prove.sbatch"), JOB.replace("HERE", &here)).unwrap();
        std::fs::write(
            place.path("settings.toml"),
            "version = 1\n[backends.prove]\nkind = \"slurm\"\nkeys = \"keys\"\nscript = \"prove.sbatch\"\n\
             program = \"./bin/hekaton\"\npoll_seconds = 1\ndoubt_seconds = 5\n",
        )
        .unwrap();
        let path = std::env::var("PATH").unwrap();
        place.environment.push(("PATH".into(), format!("{here}:{path}")));
        place
    }

    fn submissions(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.path("bin/submissions")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    fn touch(&self, name: &str) {
        std::fs::write(self.path("bin").join(name), "").unwrap();
    }

    fn has(&self, name: &str) -> bool {
        Path::exists(&self.path("bin").join(name))
    }
}

/// toil #5459 and sisyphus #281: the job runs twice.
#[test]
fn a_job_whose_submission_was_not_answered_is_found_by_its_name() {
    let place = Place::with_slurm();
    place.touch("silent");
    let serve = place.serve(&[]);
    let client = serve.client();
    strict(&client);
    let job = submit(&client, &place, 1, "0 proof");
    place.touch("go");
    let status = ended(&client, &job);
    assert_eq!(output(&client, &place, &status), "PROOF");
    let submissions = place.submissions();
    assert_eq!(submissions.len(), 1, "{submissions:?}");
    assert!(submissions[0].contains("--job-name=hk-"), "{submissions:?}");
    place.check();
}

#[test]
fn jobs_outlive_the_process_that_submitted_them_and_are_resubmitted_if_they_fail() {
    let place = Place::with_slurm();
    let serve = place.serve(&[]);
    strict(&serve.client());
    let job = submit(&serve.client(), &place, 1, "0 unlucky");
    // The first one fails. The second one is running when the process dies.
    wait("a second job is submitted", || place.has("job-102"));
    wait("its number is noted", || {
        let folders = std::fs::read_dir(place.path("data/spool")).unwrap();
        folders.flatten().any(|folder| {
            let note = std::fs::read_to_string(folder.path().join("slurm.json"));
            note.is_ok_and(|note| note.contains("\"number\":102"))
        })
    });
    serve.kill();
    let serve = place.serve(&[]);
    place.touch("go");
    let status = ended(&serve.client(), &job);
    assert_eq!(output(&serve.client(), &place, &status), "UNLUCKY");
    assert_eq!(place.submissions().len(), 2);
    assert!(place.errors().contains("a machine burns"), "{}", place.errors());
    place.check();
}

#[test]
fn the_job_of_a_cancelled_task_is_cancelled() {
    let place = Place::with_slurm();
    let serve = place.serve(&[]);
    let client = serve.client();
    strict(&client);
    let job = submit(&client, &place, 1, "0 proof");
    wait("a job is submitted", || place.has("pid-101"));
    client.cancel(&job.job).unwrap();
    wait("it is cancelled", || place.has("cancelled-101"));
    assert_eq!(place.submissions().len(), 1);
    place.check();
}
