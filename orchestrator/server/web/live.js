// Shows /v1/events. Everything from the service is written as text, never as markup.

/** The interval between looks at chains, in milliseconds. */
const CHAINS = 2_000;

const $ = (id) => document.getElementById(id);
const jobs = new Map();
/** The heights up to which chains with strict order are published. */
let published = {};
/** The states of chains, by their names. */
const chains = new Map();
/** The blocks that stand still. */
let standing = [];
/** The progress of tasks, by their ids. */
let progress = new Map();
let token = "";

function cell(row, text, kind = "") {
  const made = row.insertCell();
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function age(millis) {
  const seconds = Math.max(0, Math.round(millis / 1000));
  if (seconds < 90) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${Math.round(minutes / 60)} h`;
}

/** From 0 to 1. A task that runs counts for as much as is done of it. */
function part(job) {
  if (job.state === "done") return 1;
  const all = Object.values(job.tasks).reduce((sum, count) => sum + count, 0);
  if (all === 0) return 0;
  const running = job.running.reduce((sum, task) => sum + (progress.get(task) ?? 0), 0);
  return ((job.tasks.done ?? 0) + running) / all;
}

/** What is done counts once it is published. */
function state(job) {
  if (job.reason) return `${job.state}: ${job.reason}`;
  if (job.missing?.length) return `${job.state}: no live process has ${job.missing.join(", ")}`;
  if (job.state !== "done" || !(job.chain in published)) return job.state;
  return job.block <= published[job.chain] ? "published" : "done, waits for an older block";
}

function showJobs() {
  const body = $("jobs").tBodies[0];
  const rows = [...jobs.values()].sort((a, b) => (a.state !== "live") - (b.state !== "live") || b.accepted - a.accepted);
  body.replaceChildren();
  for (const job of rows) {
    const row = body.insertRow();
    row.dataset.job = job.job;
    cell(row, job.chain, "name");
    cell(row, job.block, "number");
    cell(row, job.id, "name");
    cell(row, state(job), job.state);
    cell(row, Object.entries(job.tasks).map(([state, count]) => `${count} ${state}`).join(", "));
    const bar = document.createElement("progress");
    bar.value = part(job);
    bar.setAttribute("aria-label", `${Math.round(100 * bar.value)} %`);
    cell(row, "").append(bar);
    cell(row, age((job.ended ?? Date.now()) - job.accepted), "number");
  }
  $("jobs").hidden = rows.length === 0;
  $("no-jobs").hidden = rows.length > 0;
}

function showWorkers(workers) {
  const body = $("workers").tBodies[0];
  body.replaceChildren();
  progress = new Map(workers.flatMap((worker) => Object.entries(worker.running)));
  for (const worker of workers) {
    const row = body.insertRow();
    cell(row, worker.host, "name");
    cell(row, worker.pid, "number");
    const quarantined = Object.entries(worker.quarantined ?? {}).map(([name, why]) => `${name} (in quarantine: ${why})`);
    cell(row, [...worker.backends, ...quarantined].join(", "), "name");
    cell(row, worker.busy, "number");
    cell(row, worker.slots, "number");
    cell(row, worker.draining ? "draining" : worker.collects ? "works and collects" : "works", worker.draining ? "draining" : "");
  }
  $("workers").hidden = workers.length === 0;
  $("no-workers").hidden = workers.length > 0;
  $("no-workers").textContent = "No process is alive.";
  showJobs();
}

const block = (name, height) => (name ? [height, name].filter((part) => part !== undefined).join(", ") : "-");

function showChains() {
  const body = $("chains").querySelector("tbody");
  const known = [...chains.values()].sort((a, b) => (a.chain < b.chain ? -1 : 1));
  body.replaceChildren();
  for (const { chain, tail, height, tip, tip_height } of known) {
    const row = body.insertRow();
    cell(row, chain, "name");
    cell(row, block(tail, height), "name");
    cell(row, block(tip, tip_height), "name");
    const halt = standing.find((one) => one.chain === chain && one.halts);
    cell(row, halt ? `block ${halt.block} ${halt.id} ${halt.cause}` : "", halt ? "dead" : "");
  }
  $("chains").hidden = known.length === 0;
}

/** Asks how far the chains of the jobs on the page are. */
async function lookAtChains() {
  const shown = new Set([...jobs.values(), ...standing].map(({ chain }) => chain));
  for (const name of chains.keys()) if (!shown.has(name)) chains.delete(name);
  for (const name of shown) {
    const answer = await fetch(`/v1/chains/${encodeURIComponent(name)}`, { headers: headers() });
    if (answer.ok) chains.set(name, await answer.json());
  }
  showChains();
}

/** Blocks that stand still, and what they wait for. */
function showStanding(list) {
  standing = list;
  showChains();
  const lines = list.map(({ chain, block, id, cause }) => {
    const line = document.createElement("li");
    line.textContent = `${chain}: block ${block} ${id} ${cause}`;
    return line;
  });
  $("standing").querySelector("ul").replaceChildren(...lines);
  $("standing").hidden = lines.length === 0;
}

const take = {
  all(list) {
    jobs.clear();
    take.jobs(list);
  },
  jobs(list) {
    for (const job of list) jobs.set(`${job.chain} ${job.id} ${job.job}`, job);
    showJobs();
  },
  workers: showWorkers,
  standing: showStanding,
  published(heights) {
    published = heights;
    showJobs();
  },
};

const headers = () => (token ? { authorization: `Bearer ${token}` } : {});

/** Reads events until the connection ends. */
async function listen(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    for (let end; (end = rest.indexOf("\n\n")) >= 0; rest = rest.slice(end + 2)) {
      const lines = rest.slice(0, end).split("\n");
      const field = (name) => lines.filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2)).join("\n");
      take[field("event")]?.(JSON.parse(field("data")));
    }
  }
}

/** Looks at chains until it is stopped. */
async function look(stop) {
  while (!stop.aborted) {
    try {
      await lookAtChains();
    } catch {
      // The connection of events shows that the service does not answer.
    }
    await new Promise((done) => setTimeout(done, CHAINS));
  }
}

async function run() {
  for (let pause = 500; ; pause = Math.min(2 * pause, 10_000)) {
    try {
      const answer = await fetch("/v1/events", { headers: headers() });
      if (answer.status === 401) {
        $("status").textContent = token ? "No tenant has this token." : "Enter a tenant's token.";
        $("sign-in").hidden = false;
        return;
      }
      if (!answer.ok) throw new Error((await answer.json()).detail);
      $("sign-in").hidden = true;
      $("status").textContent = "Live";
      pause = 250;
      const stop = new AbortController();
      look(stop.signal);
      try {
        await listen(answer.body);
      } finally {
        stop.abort();
      }
    } catch (error) {
      $("status").textContent = `The service does not answer: ${error.message}. Trying again…`;
    }
    await new Promise((done) => setTimeout(done, pause));
  }
}

$("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  // In memory only: a reload asks again.
  token = $("token").value.trim();
  $("token").value = "";
  run();
});
run();
