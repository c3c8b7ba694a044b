// A server on a new store, for the tests of the clients. CTXTOOL names the command.
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const tool = process.env.CTXTOOL ?? "ctxtool";

/** Run the command on a store, and return what it prints. */
export async function ctxtool(store, ...args) {
  const child = spawn(tool, ["--store", store, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  let text = "";
  for await (const part of child.stdout.setEncoding("utf8")) text += part;
  const [code] = await ended;
  if (code !== 0) throw new Error(`ctxtool ${args.join(" ")}: status ${code}`);
  return text;
}

/** Serve a new store. `url` and `token` are those of the server; `kill` ends it and starts another one. */
export async function serve() {
  const dir = await mkdtemp(join(tmpdir(), "ctxdir-client-"));
  const server = { dir, store: join(dir, "store"), port: 0 };
  let child;
  const start = async () => {
    child = spawn(tool, ["--json", "--store", server.store, "serve", "--listen", `127.0.0.1:${server.port}`], {
      env: { ...process.env, XDG_STATE_HOME: dir },
      stdio: ["ignore", "pipe", "inherit"],
    });
    for await (const line of createInterface({ input: child.stdout })) {
      const { url } = JSON.parse(line);
      server.url = new URL(url).origin;
      server.port = new URL(url).port;
      server.token = url.split("#token=")[1];
      return;
    }
    throw new Error("ctxtool serve ended");
  };
  const stop = async (signal) => {
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  };
  server.kill = async () => {
    await stop("SIGKILL");
    await start();
  };
  server.close = async () => {
    await stop("SIGINT");
    await rm(dir, { recursive: true });
  };
  await ctxtool(server.store, "init");
  await start();
  return server;
}
