// The server of MCP, against the conformance suite of the protocol (over HTTP) and the inspector (over stdio), both as they are.
// CTXTOOL names the command.
import assert from "node:assert/strict";
import { execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";

const tool = process.env.CTXTOOL ?? "ctxtool"; // an absolute path, or a name in $PATH
const at = (path) => new URL(path, import.meta.url).pathname;
let dir, store, context, child, proxy;

// The suite cannot send a token: the proxy adds it, and lets its own address be that of the server.
function addToken(host, token) {
  return createServer((req, res) => {
    const own = new RegExp(`(127\\.0\\.0\\.1|localhost):${proxy.address().port}`);
    const headers = { ...req.headers, authorization: `Bearer ${token}` };
    for (const name of ["host", "origin"]) headers[name] &&= headers[name].replace(own, host);
    const out = request(`http://${host}${req.url}`, { method: req.method, headers }, (answer) => {
      res.writeHead(answer.statusCode, answer.headers);
      answer.pipe(res);
    });
    out.on("error", () => res.destroy());
    req.pipe(out);
  }).listen(0, "127.0.0.1");
}

before(async () => {
  dir = await mkdtemp(join(tmpdir(), "ctxdir-mcp-"));
  store = join(dir, "store");
  const run = (...args) => execFileSync(tool, ["--json", "--store", store, ...args], { encoding: "utf8" });
  context = JSON.parse(run("new", "--title", "Staging", "--label", `project=${dir}`)).id;
  run("append", context, "--role", "user", "The staging database is called heron and listens on port 54377.");
  child = spawn(tool, ["--json", "--store", store, "serve", "--listen", "127.0.0.1:0"], {
    env: { ...process.env, XDG_STATE_HOME: dir },
    stdio: ["ignore", "pipe", "inherit"],
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const url = new URL(JSON.parse(line).url);
    proxy = addToken(url.host, url.hash.slice("#token=".length));
    break;
  }
  await once(proxy, "listening");
});

after(async () => {
  proxy?.close();
  if (child) {
    child.kill();
    await once(child, "exit");
  }
  await rm(dir, { recursive: true, force: true });
});

// run runs a program in its own folder, where the inspector looks for its package.json.
function run(folder, program, ...args) {
  const env = { ...process.env, CTXDIR_SESSION: "another" }; // what changed last is not the conversation that asks
  const cwd = at(`node_modules/@modelcontextprotocol/${folder}`);
  return new Promise((done) => {
    execFile(process.execPath, ["--import", at("node20.mjs"), join(cwd, program), ...args], { cwd, env }, (error, stdout, stderr) =>
      done({ code: error?.code ?? 0, stdout, stderr }),
    );
  });
}

// A check may fail for what the suite's own server has, and this one does not offer: tools, prompts and resources of its tests,
// completion, subscriptions without a session, tasks.
const absent = new RegExp(
  [
    "unknown (tool|prompt) \"", "Not testable: ", "json_schema_2020_12_tool' not found",
    "method not found: \"(completion/complete|resources/subscribe)\"",
    "Resource not found", "Prerequisite failed: ", "Expected InputRequiredResult",
  ].join("|"),
);

for (const revision of ["2025-11-25", "2026-07-28"]) {
  test(`conformance with the requirements of ${revision}`, async (t) => {
    const out = join(dir, revision);
    const { code, stdout, stderr } = await run(
      "conformance/dist", "index.js", "server", "--url", `http://127.0.0.1:${proxy.address().port}/mcp`, "--requirements", revision,
      "--expected-failures", at(`expected-${revision}.yml`), "-o", out,
    );
    const count = { SUCCESS: 0, FAILURE: 0, WARNING: 0, INFO: 0, SKIPPED: 0 };
    for (const scenario of await readdir(out)) {
      for (const check of JSON.parse(await readFile(join(out, scenario, "checks.json"), "utf8"))) {
        count[check.status]++;
        if (check.status === "FAILURE" && !scenario.startsWith("server-tasks-")) {
          assert.match(check.errorMessage, absent, `${scenario}: ${check.id}`);
        }
      }
    }
    t.diagnostic(`${count.SUCCESS} checks passed, ${count.FAILURE} need what only the suite's own server has, ${count.WARNING} warnings`);
    assert.equal(code, 0, stdout + stderr);
  });
}

test("the inspector over stdio", async (t) => {
  const inspect = async (...args) => {
    const { code, stdout, stderr } = await run(
      "inspector-cli/build", "index.js", tool, "--store", store, "mcp", "--project", dir, ...args,
    );
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  };
  const [tools, recalled, { resources }] = await Promise.all([
    inspect("--method", "tools/list"),
    inspect("--method", "tools/call", "--tool-name", "recall", "--tool-arg", "question=which port does the staging database use"),
    inspect("--method", "resources/list"),
  ]);
  assert.deepEqual(tools.tools.map((x) => x.name).sort(), ["branches", "files", "list", "read", "recall", "search", "usage"]);
  assert.match(recalled.content[0].text, /^> The staging database is called heron and listens on port 54377\.$/m);
  assert.match(resources.map((x) => x.uri).join(), new RegExp(`^ctxdir://[0-9a-f-]{36}/${context}/main$`));
  const read = await inspect("--method", "resources/read", "--uri", resources[0].uri);
  assert.match(read.contents[0].text, /^> The staging database/m);
  t.diagnostic("4 calls of the inspector");
});
