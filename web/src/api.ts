// Requests to the API of the server that the page comes from. The forms are those of openapi.yaml.
import { signal } from '@preact/signals';
import { root, rootOf } from './root';
import { keep, stored } from './token';

export class Problem extends Error {
  constructor(readonly status: number, readonly code: string, detail: string, readonly matches: string[] = []) {
    super(detail);
  }
}

/** Whether the server wants another token. */
export const locked = signal(false);

/** When the server was last not reachable; 0 while it is. */
export const offline = signal(0);

type Query = Record<string, string | number | boolean | string[] | undefined>;

export function address(path: string, query: Query = {}, at = root): string {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === '' || value === false) continue;
    for (const v of Array.isArray(value) ? value : [value]) q.append(name, String(v));
  }
  const text = q.toString();
  return at + '/v1' + path + (text && '?' + text);
}

export const segment = encodeURIComponent;

async function send(method: string, url: string, body?: unknown, abort?: AbortSignal, more?: Record<string, string>): Promise<Response> {
  const headers: Record<string, string> = { ...more, Authorization: 'Bearer ' + stored() };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  let answer: Response;
  try {
    answer = await fetch(url, {
      method, headers, signal: abort ?? null, body: body === undefined ? null : JSON.stringify(body), cache: 'no-store', redirect: 'error',
    });
  } catch (e) {
    if (!abort?.aborted && !offline.value) offline.value = Date.now();
    throw e;
  }
  offline.value = 0;
  if (answer.ok) return answer;
  if (answer.status === 401) {
    keep('');
    locked.value = true;
  }
  const p = (await answer.json().catch(() => ({}))) as { code?: string; detail?: string; matches?: string[] };
  throw new Problem(answer.status, p.code ?? 'internal', p.detail ?? answer.statusText, p.matches);
}

/** Answers that were asked for before the screen that wants them was there. */
const early = new Map<string, Promise<unknown>>();

export async function get<T>(path: string, query?: Query, abort?: AbortSignal): Promise<T> {
  const url = address(path, query);
  const asked = early.get(url);
  early.delete(url);
  if (asked) return asked as Promise<T>;
  return (await send('GET', url, undefined, abort)).json() as Promise<T>;
}

/** An answer about what another user shares. */
export async function getShared<T>(owner: string, path: string, query?: Query, abort?: AbortSignal): Promise<T> {
  return (await send('GET', address(path, query, rootOf(owner)), undefined, abort)).json() as Promise<T>;
}

/** Asks for what a screen is about to get, which takes the answer once; undefined if it failed, as the screen will say. */
export function ahead<T>(path: string, query?: Query): Promise<T | undefined> {
  const url = address(path, query);
  const asked = get<T>(path, query);
  early.set(url, asked);
  return asked.catch(() => void early.delete(url));
}

export async function post<T>(path: string, body: unknown, abort?: AbortSignal): Promise<T> {
  return (await send('POST', address(path), body, abort)).json() as Promise<T>;
}

/** An answer that is read as it comes. */
export const stream = (path: string, body: unknown, abort?: AbortSignal): Promise<Response> => send('POST', address(path), body, abort);

export async function patch<T>(path: string, body: unknown): Promise<T> {
  return (await send('PATCH', address(path), body)).json() as Promise<T>;
}

export async function remove<T>(path: string): Promise<T | undefined> {
  const answer = await send('DELETE', address(path));
  return answer.status === 204 ? undefined : (answer.json() as Promise<T>);
}

/** A payload of a message; path is that of the branch. */
export async function payload(path: string, message: string, sha256: string, abort?: AbortSignal): Promise<Blob> {
  return (await send('GET', address(`${path}/messages/${segment(message)}/payloads/${segment(sha256)}`), undefined, abort)).blob();
}

export interface Store {
  id: string;
  version: string;
  read_only: boolean;
  shared?: { owner: string; projects: string[] }[];
}

export interface Outline {
  added: number;
  removed: number;
  answer: string;
}

export interface Context {
  id: string;
  title: string;
  labels?: Record<string, string>;
  kind?: string;
  model?: string;
  tool?: string;
  branches: number;
  active_branch: string;
  messages: number;
  bytes: number;
  created_at?: string;
  updated_at?: string;
  problem?: string;
  session?: string;
  outline?: Outline;
}

export interface ContextList {
  contexts: Context[];
  next?: string;
}

export interface Live {
  context: string;
  title: string;
  labels?: Record<string, string>;
  branch: string;
  state: 'works' | 'waits' | 'silent';
  at: string;
  newest: string;
  call?: LiveCall;
  failed?: LiveCall;
}

export interface LiveCall {
  name: string;
  tool: Tool;
  summary: string;
  at: string;
}

export type Tool = 'other' | 'shell' | 'read' | 'edit' | 'search' | 'web' | 'todo' | 'agent';

export interface Branch {
  name: string;
  parent?: string;
  base?: number;
  line: string; // its item in the trash after a rewind or a removal
  from?: string; // the earlier branch that shares the most messages with it
  shared?: number;
  messages: number;
  bytes: number;
  active: boolean;
  side?: boolean; // that of a sub-agent, forked behind the call that began it
}

export interface PartFile {
  path?: string;
  media_type?: string;
  sha256?: string;
  bytes: number | null;
  width?: number;
  height?: number;
}

export interface Part {
  kind: 'text' | 'thought' | 'call' | 'result' | 'attachment' | 'other';
  number: number;
  text: string;
  tail?: string;
  bytes: number;
  name?: string;
  tool?: Tool;
  summary?: string;
  added?: number;
  removed?: number;
  failed?: boolean;
  inserted?: boolean;
  said?: string;
  position?: number;
  id?: string;
  results?: Part[];
  file?: PartFile;
}

export interface Message {
  position: number;
  id: string;
  role: string;
  voice: '' | 'user' | 'assistant' | 'tool' | 'system';
  at?: string;
  edited?: boolean;
  bookkeeping?: boolean;
  summary?: boolean;
  unavailable?: string;
  parts: Part[];
}

export interface Messages {
  messages: Message[];
  from: number;
  to: number;
  length: number;
  turns?: Turn[];
}

export interface Turn {
  number: number;
  from: number;
  to: number;
  id?: string;
  at?: string;
  until?: string;
  prompt: string;
  answer?: string;
  prompts: number;
  calls: Partial<Record<Tool, number>>;
  failed: number;
  added: number;
  removed: number;
  breaks: number;
}

export interface Turns {
  turns: Turn[];
  count: number;
  length: number;
  next?: number;
}

export interface BranchMap {
  length: number;
  turns: number;
  size: number;
  prompts: number[];
  replies: number[];
  calls: number[];
  edits: number[];
  failures: number[];
  breaks: number[];
  breaks_at: number[];
}

export interface UsageRow {
  key?: string;
  context?: string;
  prompt?: string;
  text?: string;
  steps: number;
  total: number;
  cost?: number;
  estimated: number;
  computed: number;
  unpriced: number;
}

/** Some bytes of an answer, and how many there are in all. */
export async function range(path: string, from: number, to: number): Promise<{ bytes: Uint8Array; total: number }> {
  const answer = await send('GET', address(path), undefined, undefined, { Range: `bytes=${from}-${to - 1}` });
  const bytes = new Uint8Array(await answer.arrayBuffer());
  return { bytes, total: Number(/\/(\d+)$/.exec(answer.headers.get('Content-Range') ?? '')?.[1] ?? bytes.length) };
}

/** The beginning of the text of an answer: no more is read than that. */
export async function head(path: string, bytes: number): Promise<{ text: string; whole: boolean }> {
  const reader = (await send('GET', address(path))).body?.getReader();
  const decoder = new TextDecoder();
  let [out, read] = ['', 0];
  for (;;) {
    const got = await reader?.read();
    if (!got || got.done) return { text: out + decoder.decode(), whole: true };
    out += decoder.decode(got.value.subarray(0, bytes - read), { stream: true });
    read += got.value.length;
    if (read >= bytes) {
      await reader?.cancel();
      return { text: out, whole: false };
    }
  }
}

/** The values of an answer in JSON Lines. */
export async function lines<T>(path: string, query?: Query, abort?: AbortSignal): Promise<T[]> {
  const text = await (await send('GET', address(path, query), undefined, abort)).text();
  return text.split('\n').filter(Boolean).map((l) => JSON.parse(l) as T);
}
