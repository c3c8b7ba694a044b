// Work that would hold the page up: Markdown and colours of code. What it makes is text of HTML that the page purifies.
import hljs from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import c from 'highlight.js/lib/languages/c';
import cpp from 'highlight.js/lib/languages/cpp';
import css from 'highlight.js/lib/languages/css';
import diff from 'highlight.js/lib/languages/diff';
import go from 'highlight.js/lib/languages/go';
import java from 'highlight.js/lib/languages/java';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import python from 'highlight.js/lib/languages/python';
import rust from 'highlight.js/lib/languages/rust';
import sql from 'highlight.js/lib/languages/sql';
import typescript from 'highlight.js/lib/languages/typescript';
import xml from 'highlight.js/lib/languages/xml';
import yaml from 'highlight.js/lib/languages/yaml';
import { Lexer, Marked, type Tokens } from 'marked';

const languages = { bash, c, cpp, css, diff, go, java, javascript, json, python, rust, sql, typescript, xml, yaml };
for (const [name, language] of Object.entries(languages)) hljs.registerLanguage(name, language);

const longest = 100 << 10; // characters of code that get colours
const lines = 2000;

const escape = (s: string): string => s.replace(/[&<>"']/g, (x) => `&#${x.charCodeAt(0)};`);

function coloured(code: string, language: string): string {
  if (code.length > longest || code.split('\n').length > lines || !hljs.getLanguage(language)) return escape(code);
  return hljs.highlight(code, { language, ignoreIllegals: true }).value;
}

/** The address of a link, if it is one that may be opened. */
function open(href: string): URL | undefined {
  try {
    const u = new URL(href);
    return ['http:', 'https:', 'mailto:'].includes(u.protocol) ? u : undefined;
  } catch {
    return undefined;
  }
}

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    html: ({ text }: Tokens.HTML | Tokens.Tag) => escape(text),
    code: ({ text, lang }: Tokens.Code) => `<pre><code>${coloured(text, (lang ?? '').trim().split(/\s/)[0] ?? '')}</code></pre>`,
    heading({ tokens, depth }: Tokens.Heading) {
      return `<h${Math.min(6, depth + 3)}>${this.parser.parseInline(tokens)}</h${Math.min(6, depth + 3)}>`;
    },
    image: ({ href, text }: Tokens.Image) => `<span class="noimage">image: ${escape(text)} <code>${escape(href)}</code></span>`,
    checkbox: ({ checked }: Tokens.Checkbox) => (checked ? '☑ ' : '☐ '),
    link({ href, text, tokens }: Tokens.Link) {
      const inner = this.parser.parseInline(tokens);
      const u = open(href);
      if (!u) return inner;
      // A text that names another host, or the right one in the wrong place, must not hide where the link leads.
      const said = open(text.trim())?.host ?? text.trim();
      const shown = said === u.host || u.protocol === 'mailto:' ? '' : ` <span class="host">${escape(u.host)}</span>`;
      return `<a href="${escape(u.href)}" target="_blank" rel="noopener noreferrer nofollow">${inner}</a>${shown}`;
    },
  },
});

export interface Task {
  id: number;
  text: string;
}

export interface Done {
  id: number;
  html?: string;
}

/** What the worker says: that it begins a text, or what became of one. */
export type Said = { begun: number } | Done;

const scope = self as unknown as { onmessage: (e: MessageEvent<Task>) => void; postMessage: (s: Said) => void };
scope.onmessage = (e) => {
  const { id, text } = e.data;
  scope.postMessage({ begun: id });
  try {
    scope.postMessage({ id, html: marked.parser(new Lexer(marked.defaults).lex(text)) });
  } catch {
    scope.postMessage({ id });
  }
};
