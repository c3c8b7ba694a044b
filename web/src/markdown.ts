// Markdown of answers. A worker makes HTML of it, and DOMPurify, always last, lets through what it may have.
import DOMPurify from 'dompurify';
import { hiddenTitle, pieces } from './text';
import type { Done, Said, Task } from './worker';

/** HTML that went through DOMPurify; the browser takes no other. */
export interface Pure {
  readonly pure: never;
}

const longest = 256 << 10; // characters that are read as Markdown
const deepest = 32; // levels of blocks
const look = 250; // ms between two looks at a text under way
const patience = 20; // looks that one text may take
const kept = 400; // texts

const allowed = {
  ALLOWED_TAGS: ['p', 'em', 'strong', 'del', 'code', 'pre', 'ul', 'ol', 'li', 'blockquote', 'h4', 'h5', 'h6', 'table', 'thead', 'tbody', 'tr', 'th', 'td', 'hr', 'br', 'a', 'span'],
  ALLOWED_ATTR: ['href', 'target', 'rel', 'class', 'align', 'start'],
  ALLOW_DATA_ATTR: false,
  RETURN_TRUSTED_TYPE: true as const,
};

/** Nesting of quotes and lists, counted by their markers: a parser that recurses must not run out of room. */
function tooDeep(text: string): boolean {
  return text.split('\n').some((l) => (/^[\s>*+-]*/.exec(l)?.[0].match(/>/g)?.length ?? 0) > deepest || /^\s{140,}\S/.test(l));
}

interface Waiting extends Task {
  done: (html: Pure | undefined) => void;
}

let worker: Worker | undefined;
let queue: Waiting[] = [];
let timer = 0;
let number = 0;
const made = new Map<string, Pure | undefined>();

interface Policies {
  createPolicy: (name: string, rules: { createScriptURL: (url: string) => string }) => { createScriptURL: (url: string) => string };
}

const policies = (window as { trustedTypes?: Policies }).trustedTypes;
const address = policies?.createPolicy('worker', { createScriptURL: (url) => url });

function start(): Worker {
  const url = document.querySelector<HTMLMetaElement>('meta[name=worker]')?.content ?? '';
  const w = new Worker(address?.createScriptURL(url) ?? url, { type: 'module' });
  w.onmessage = (e: MessageEvent<Said>) => 'begun' in e.data ? watch() : finish(e.data);
  w.onerror = () => give();
  return w;
}

function finish({ id, html }: Done): void {
  const task = queue.find((t) => t.id === id);
  if (!task) return;
  queue = queue.filter((t) => t !== task);
  clearTimeout(timer);
  let pure: Pure | undefined;
  try {
    if (html !== undefined) pure = DOMPurify.sanitize(html, allowed) as unknown as Pure;
  } catch {
    // It is shown as it is.
  }
  if (made.size >= kept) made.delete(made.keys().next().value as string);
  made.set(task.text, pure);
  task.done(pure);
}

/** Gives the oldest text up, which holds the worker, and goes on with the others in another one. */
function give(): void {
  const first = queue.shift();
  worker?.terminate();
  worker = queue.length > 0 ? start() : undefined;
  for (const { id, text } of queue) worker?.postMessage({ id, text } satisfies Task);
  clearTimeout(timer);
  first?.done(undefined);
}

/** Looks after a text that the worker has begun. Time in which the page itself stood still, or the worker was not there yet, is not the text's. */
function watch(looks = 0): void {
  clearTimeout(timer);
  timer = window.setTimeout(() => looks < patience ? watch(looks + 1) : give(), look);
}

/** Shows HTML in an element, and in its texts what cannot be seen. */
export function fill(el: HTMLElement, pure: Pure): void {
  el.innerHTML = pure as unknown as string;
  const texts = document.createTreeWalker(el, NodeFilter.SHOW_TEXT);
  const found: Text[] = [];
  while (texts.nextNode()) found.push(texts.currentNode as Text);
  for (const node of found) {
    const all = pieces(node.data);
    if (all.length === 1 && all[0]?.text === node.data) continue;
    node.replaceWith(...all.map((p) => (p.hidden ? chip(p.text) : p.text)));
  }
  for (const wide of el.querySelectorAll<HTMLElement>('pre, table')) wide.tabIndex = 0; // the keyboard can scroll it
}

function chip(name: string): HTMLElement {
  const el = document.createElement('span');
  el.className = 'hid';
  el.title = hiddenTitle;
  el.textContent = name;
  return el;
}

/** What a text is as Markdown, if it was made before; undefined if it is to be shown as it is. */
export const ready = (text: string): { html: Pure | undefined } | undefined => (made.has(text) ? { html: made.get(text) } : undefined);

/** Makes a text to HTML; undefined if it is to be shown as it is. */
export function html(text: string): Promise<Pure | undefined> {
  if (text.length > longest || tooDeep(text)) return Promise.resolve(undefined);
  return new Promise((done) => {
    worker ??= start();
    queue.push({ id: ++number, text, done });
    worker.postMessage({ id: number, text } satisfies Task);
  });
}
