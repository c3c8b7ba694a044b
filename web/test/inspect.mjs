// What must hold in the document, whatever texts a store has. The function runs in the page.
export function inspect(marker) {
  const faults = [];
  const name = (el) => `${el.localName}${el.id ? '#' + el.id : ''}${el.classList.length ? '.' + [...el.classList].join('.') : ''}`;
  const where = (el) => [el.parentElement?.parentElement, el.parentElement, el].filter(Boolean).map(name).join(' > ').slice(0, 200);
  const say = (what, el, more = '') => faults.push(`${what}: ${where(el)} ${String(more).slice(0, 120)}`.trim());
  const ours = (url) => { const u = new URL(url, location.href); return u.origin === location.origin && u.pathname.startsWith('/assets/'); };

  const styles = new Map();
  const style = (el) => {
    let is = styles.get(el);
    if (!is) {
      const { overflowX, whiteSpace } = getComputedStyle(el);
      styles.set(el, is = { overflowX, whiteSpace });
    }
    return is;
  };

  if (marker in globalThis) faults.push('a stored text ran as a script');
  for (const el of document.querySelectorAll('iframe, object, embed, base, style, math, marquee, video, audio, template, portal, meta[http-equiv]')) say('an element that is not ours', el);
  for (const el of document.scripts) if (!ours(el.src)) say('a script that is not ours', el, el.textContent);
  for (const el of document.querySelectorAll('link')) if (!ours(el.href)) say('a link that is not ours', el, el.href);
  for (const el of document.querySelectorAll('img')) if (!el.src.startsWith('blob:')) say('an image that is not of the store', el, el.src);
  for (const el of document.querySelectorAll('form')) if (!el.querySelector('#link') && !el.closest('dialog') && !el.matches('.words')) say('a form that is not ours', el);
  for (const el of document.querySelectorAll('a')) {
    if (!['http:', 'https:', 'mailto:', 'blob:'].includes(el.protocol) && el.hasAttribute('href')) say('a link to something else than a page', el, el.href);
    if (el.origin !== location.origin && el.protocol !== 'blob:' && !/noopener/.test(el.rel)) say('a link that tells who opens it', el, el.href);
  }
  for (const el of document.querySelectorAll('*')) {
    for (const a of el.attributes) {
      if (/^on/i.test(a.name)) say('an event handler', el, a.name);
      if (a.name === 'style' && !/^(\s*(transform: translateY\([\d.]+px\)|(height|width|left|top|padding-left): [\d.]+(px|%));)*\s*$/.test(a.value)) say('a style', el, a.value);
      if ((a.name === 'class' || a.name === 'id') && !/^[\w :-]*$/.test(a.value)) say('a stored text as a name', el, a.value);
    }
  }

  // Texts: nothing invisible, no half characters, no line that is too long to lay out.
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const { data, parentElement: el } = texts.currentNode;
    if (['SCRIPT', 'NOSCRIPT', 'OPTION'].includes(el.tagName)) continue;
    const hidden = /[\u061c\u200b\u200e\u200f\u2060\u202a-\u202e\u2066-\u2069\ufeff]|[\u{e0000}-\u{e007f}]|[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/u.exec(data);
    if (hidden) say(`an invisible character U+${hidden[0].codePointAt(0).toString(16)}`, el, data.slice(0, 40));
    if (!data.isWellFormed()) say('half a character', el);
    if (/\p{M}{9}/u.test(data)) say('a pile of marks', el);
    const unwrapped = ['pre', 'nowrap'].includes(style(el).whiteSpace);
    const long = data.length > 2100 && Math.max(...data.split('\n').map((l) => l.length));
    if (long > 2100 && unwrapped) say('a line too long', el, long);
  }

  // Layout: nothing leaves its box to the side, but code, diffs and tables, which scroll by themselves.
  const root = document.scrollingElement;
  if (root.scrollWidth > innerWidth) faults.push(`the page is ${root.scrollWidth} px wide in a window of ${innerWidth} px`);
  if (root.scrollHeight > innerHeight) faults.push(`the page is ${root.scrollHeight} px high in a window of ${innerHeight} px`);
  for (const el of document.body.querySelectorAll('*')) {
    const r = el.getBoundingClientRect();
    if (r.width < 2 || r.height === 0 || el.closest('svg, .skip, [popover], dialog')) continue;
    let box = el.parentElement;
    while (box && style(box).overflowX === 'visible') box = box.parentElement;
    const edge = box?.getBoundingClientRect() ?? { left: 0, right: innerWidth };
    if (box?.matches('pre, table, code.block, .diff, .out') || (box && ['hidden', 'clip'].includes(style(box).overflowX) && box !== document.body)) continue;
    if (r.right > edge.right + 1 || r.left < edge.left - 1) say(`${Math.round(r.left)} to ${Math.round(r.right)} px in a box of ${Math.round(edge.left)} to ${Math.round(edge.right)} px`, el);
  }
  for (const el of document.querySelectorAll('.at')) {
    const inner = el.querySelector('a, .grp, .line') ?? el;
    if (inner.scrollHeight > el.clientHeight + 1) say(`a row of ${el.clientHeight} px with ${inner.scrollHeight} px in it`, inner);
  }
  return [...new Set(faults)].slice(0, 12);
}
