// Markdown of answers. What marked makes goes through DOMPurify, always last; both load with the first answer.
import DOMPurify from 'dompurify';
import { Lexer, Marked, type Tokens } from 'marked';

const longest = 256 << 10; // bytes that are read as Markdown
const deepest = 32; // levels of blocks

const escape = (s: string): string => s.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

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
  renderer: {
    html: ({ text }: Tokens.HTML | Tokens.Tag) => escape(text),
    heading({ tokens, depth }: Tokens.Heading) {
      return `<h${Math.min(6, depth + 3)}>${this.parser.parseInline(tokens)}</h${Math.min(6, depth + 3)}>`;
    },
    image: ({ href, text }: Tokens.Image) => `<span class="noimage">image: ${escape(text)} <code>${escape(href)}</code></span>`,
    checkbox: ({ checked }: Tokens.Checkbox) => (checked ? '☑ ' : '☐ '),
    link({ href, tokens }: Tokens.Link) {
      const inner = this.parser.parseInline(tokens);
      const u = open(href);
      if (!u) return inner;
      const shown = inner.includes(u.host) || u.protocol === 'mailto:' ? '' : ` <span class="host">${escape(u.host)}</span>`;
      return `<a href="${escape(u.href)}" target="_blank" rel="noopener noreferrer nofollow">${inner}</a>${shown}`;
    },
  },
});

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

/** Writes a text as Markdown into an element; false if it is to be shown as it is. */
export function write(el: HTMLElement, text: string): boolean {
  if (text.length > longest || tooDeep(text)) return false;
  try {
    const html = marked.parser(new Lexer(marked.defaults).lex(text));
    el.innerHTML = DOMPurify.sanitize(html, allowed) as unknown as string;
    return true;
  } catch {
    return false;
  }
}
