// Stores for the tests of the page: made by the commands of ctxtool, served by ctxtool serve. Each process of the tests
// works in a temporary folder of its own, which goes with it, and ends the servers that it began.
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const repository = fileURLToPath(new URL('../../', import.meta.url));
const scratch = mkdtempSync(path.join(tmpdir(), 'ctxdir-page-'));
const running = new Set();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
  rmSync(scratch, { recursive: true, force: true });
});

/** The commands of tests see nothing of the person who runs them. */
const environment = (extra = {}) => ({
  PATH: process.env.PATH, HOME: scratch, XDG_DATA_HOME: path.join(scratch, 'data'), XDG_STATE_HOME: path.join(scratch, 'state'),
  TZ: 'UTC', CTXDIR_NO_GC: '1', ...extra,
});

let built = process.env.CTXTOOL ?? '';

/** The command: that of CTXTOOL, or else one that is built once. */
export function tool() {
  if (!built) {
    const to = path.join(scratch, 'ctxtool');
    execFileSync('go', ['build', '-trimpath', '-o', to, './cmd/ctxtool'], { cwd: repository, stdio: ['ignore', 'inherit', 'inherit'] });
    built = to;
  }
  return built;
}

let made = 0;

export class Store {
  constructor() {
    this.dir = path.join(scratch, `store-${++made}`);
    this.run('init', this.dir);
  }

  /** Runs a verb on the store, and returns what it prints. */
  run(...args) {
    return this.pipe('', ...args);
  }

  /** Runs a verb that reads a text. */
  pipe(input, ...args) {
    return execFileSync(tool(), args, {
      env: environment({ CTXDIR_STORE: this.dir }), input, encoding: 'utf8', maxBuffer: 64 << 20, stdio: ['pipe', 'pipe', 'pipe'],
    }).trim();
  }

  /** Creates a context and returns its id. */
  create({ title, labels = {}, model } = {}) {
    const args = ['new'];
    if (title) args.push('--title', title);
    if (model) args.push('--model', model);
    for (const [k, v] of Object.entries(labels)) args.push('--label', `${k}=${v}`);
    return this.run(...args);
  }

  /** Appends messages with their times, and returns their ids. This is a process of its own, as an agent is. */
  append(context, messages, branch = 'main') {
    const lines = messages.map(({ at, ...message }) => JSON.stringify({ message, ...(at && { created_at: new Date(at).toISOString() }) }));
    return this.pipe(lines.join('\n') + '\n', 'append', context, '--branch', branch, '--jsonl', '--envelope').split('\n');
  }

  /** Imports the histories of other tools that the repository keeps for its own tests. */
  importFixtures(...names) {
    for (const name of names) this.run('--quiet', 'import', path.join(repository, 'importer/testdata', name));
  }

  /** Imports a file of the repository, and returns the id of its context. */
  importFile(name) {
    const lines = this.run('--json', '--quiet', 'import', path.join(repository, name)).split('\n').map((line) => JSON.parse(line));
    return lines.find((l) => l.context).context;
  }

  serve(options) {
    return Server.start(this, options);
  }
}

/** A running ctxtool serve. */
export class Server {
  static async start(store, { port = 0, readOnly = false, token = '' } = {}) {
    const args = ['--json', 'serve', '--listen', `127.0.0.1:${port}`];
    if (readOnly) args.push('--read-only');
    if (token) args.push('--token-file', path.join(scratch, token));
    const child = spawn(tool(), args, { env: environment({ CTXDIR_STORE: store.dir }), stdio: ['ignore', 'pipe', 'pipe'] });
    running.add(child);
    const server = new Server();
    server.child = child;
    server.ended = new Promise((resolve) => child.once('exit', () => {
      running.delete(child);
      resolve();
    }));
    let said = '';
    let errors = '';
    child.stderr.on('data', (b) => { errors += b; });
    const url = await new Promise((resolve, reject) => {
      child.stdout.on('data', (b) => {
        said += b;
        if (said.includes('\n')) resolve(JSON.parse(said.split('\n')[0]).url);
      });
      child.once('exit', (code) => reject(new Error(`serve ended with ${code}: ${errors}`)));
    });
    const at = new URL(url);
    server.origin = at.origin;
    server.port = Number(at.port);
    server.token = at.hash.replace('#token=', '');
    return server;
  }

  /** The address of a screen, with the token. */
  at(screen) {
    return this.origin + screen + '#token=' + this.token;
  }

  /** Asks the API. */
  async ask(method, where, body, type = 'application/json') {
    const answer = await fetch(this.origin + '/v1' + where, {
      method, body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
      headers: { Authorization: 'Bearer ' + this.token, ...(body !== undefined && { 'Content-Type': type }) },
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${where}: ${answer.status} ${text.slice(0, 500)}`);
    return text;
  }

  async end() {
    this.child.kill('SIGINT');
    await this.ended;
  }
}

/** A folder below the temporary one. */
export function folder(name) {
  const dir = path.join(scratch, name);
  mkdirSync(dir, { recursive: true });
  return dir;
}
