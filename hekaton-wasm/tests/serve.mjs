// Serves a folder: python3 -m http.server on a free port.

import { spawn } from "node:child_process";

export function serve(folder) {
  const args = ["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", folder];
  const child = spawn("python3", args, { stdio: ["ignore", "pipe", "ignore"] });
  return new Promise((done, failed) => {
    child.on("error", failed);
    child.stdout.on("data", (data) => {
      const port = /port (\d+)/.exec(data)?.[1];
      if (port) done({ url: `http://127.0.0.1:${port}/`, stop: () => child.kill() });
    });
  });
}
