import type { components, paths } from "./api.js";

export type { components, operations, paths } from "./api.js";

/** The schemas of the API by name: `Schemas["Context"]`. */
export type Schemas = components["schemas"];

type Method = "get" | "post" | "put" | "patch" | "delete";
type PathWith<M extends Method> = { [P in keyof paths]: paths[P][M] extends { responses: unknown } ? P : never }[keyof paths];

type Parameters<O, In extends string> = O extends { parameters: { [K in In]?: infer T } } ? Exclude<T, undefined> : never;
type Optional<Name extends string, T> = [T] extends [never] ? unknown : {} extends T ? { [K in Name]?: T } : { [K in Name]: T };
type Bodies<O> = O extends { requestBody: { content: infer C } } ? C : never;
type Body<C> = [C] extends [never] ? unknown
  : C extends { "application/x-ndjson": infer L } ? { lines: L[] } | { body: L }
  : C extends { "application/json": infer B } ? { body: B }
  : { raw: Uint8Array | string | ReadableStream; type?: string };

/** What a request takes: the parameters of its path and query, headers, and a body. `lines` are sent as JSON Lines. */
export type Request<O> = Optional<"path", Parameters<O, "path">> & Optional<"query", Parameters<O, "query">> &
  Body<Bodies<O>> & { headers?: Record<string, string>; signal?: AbortSignal };

type Content<R> = R extends { content: infer C }
  ? C extends { "application/json": infer T } ? T
  : C extends { "application/x-ndjson": infer T } ? AsyncGenerator<T, void, undefined>
  : globalThis.Response
  : undefined;
type Succeeded = 200 | 201 | 204;

/** What a request resolves to: JSON, an iterator over lines of JSON, the Response of bytes, or nothing. */
export type Answer<O> = O extends { responses: infer R } ? { [K in keyof R & Succeeded]: Content<R[K]> }[keyof R & Succeeded] : never;

export interface Options {
  /** The address of the server, such as http://127.0.0.1:7433 */
  url: string | URL;
  /** What the file serve.token contains */
  token: string;
  fetch?: typeof globalThis.fetch;
  /** Node has a WebSocket from version 22 on; before, pass the one of a package. */
  WebSocket?: new (url: URL, protocols: string[]) => unknown;
}

/** An event of a context, as docs/API.md describes it. */
export interface Event {
  record: "message" | "branch" | "metadata" | "context" | "resync";
  event?: string;
  context: string;
  /** The number of the commit; 0 for an edit by hand */
  seq: number;
  more?: boolean;
  branch?: string;
  message?: Record<string, unknown>;
  [member: string]: unknown;
}

export class Client {
  constructor(options: Options);
  request<M extends Method, P extends PathWith<M>>(
    method: M, path: P, ...request: {} extends Request<paths[P][M]> ? [Request<paths[P][M]>?] : [Request<paths[P][M]>]
  ): Promise<Answer<paths[P][M]>>;
  /** Make an empty branch, unless the context has it. */
  ensureBranch(context: string, name: string): Promise<void>;
  follow(context: string, options?: { after?: number; signal?: AbortSignal }): AsyncGenerator<Event, never, undefined>;
}

/** What a request resolves to, or undefined if the server does not find what it names. */
export function orMissing<T>(request: Promise<T>): Promise<T | undefined>;

/** An error that the server reported: a problem document of RFC 9457. `code` is for programs. */
export class Problem extends Error implements Partial<Schemas["Problem"]> {
  constructor(document: Pick<Schemas["Problem"], "code" | "detail" | "status" | "title"> & Partial<Schemas["Problem"]>);
  code: Schemas["Problem"]["code"];
  status: number;
  title: string;
  detail: string;
  type?: string;
  context?: string;
  branch?: string;
  id?: string;
  line?: number;
  matches?: string[];
}
