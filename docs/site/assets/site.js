// Light or dark, the list of pages on a phone, buttons that copy, the place in the page, and the search.
(() => {
  'use strict';
  const html = document.documentElement;
  const wanted = matchMedia('(prefers-color-scheme: dark)');
  let chosen = null;
  try { chosen = localStorage.getItem('theme'); } catch { /* a browser may refuse to keep it */ }

  /** Shows the scheme that the reader chose here, or that of the system. */
  function paint() {
    const dark = chosen ? chosen === 'dark' : wanted.matches;
    html.dataset.theme = dark ? 'dark' : 'light';
    for (const s of document.querySelectorAll('source[data-scheme]')) s.media = dark ? 'all' : 'not all';
  }
  paint();
  wanted.addEventListener('change', paint);
  document.addEventListener('DOMContentLoaded', () => { paint(); scheme(); menu(); copying(); place(); search(); });

  function scheme() {
    document.querySelector('.scheme').addEventListener('click', () => {
      chosen = html.dataset.theme === 'dark' ? 'light' : 'dark';
      try { localStorage.setItem('theme', chosen); } catch { /* it holds for this page */ }
      paint();
    });
  }

  function menu() {
    const button = document.querySelector('.menu');
    const nav = document.getElementById('nav');
    const show = (open) => { nav.classList.toggle('open', open); button.setAttribute('aria-expanded', open); };
    button.addEventListener('click', () => show(!nav.classList.contains('open')));
    document.addEventListener('keydown', (e) => {
      if (e.key === 'Escape' && nav.classList.contains('open')) { show(false); button.focus(); }
    });
    document.addEventListener('click', (e) => { if (!nav.contains(e.target) && !button.contains(e.target)) show(false); });
    nav.querySelector('[aria-current]').scrollIntoView({ block: 'nearest' });
  }

  function copying() {
    for (const code of document.querySelectorAll('.code')) {
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = 'Copy';
      button.addEventListener('click', () => {
        const text = code.dataset.copy ?? code.querySelector('pre').textContent;
        copy(text).then(() => { button.textContent = 'Copied'; }, () => { button.textContent = 'Not copied'; });
        setTimeout(() => { button.textContent = 'Copy'; }, 1500);
      });
      code.append(button);
    }
  }

  /** Copies a text, also where there is no clipboard API: on a disk, or over plain HTTP. */
  async function copy(text) {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    if (!done) throw new Error('refused');
  }

  /** Marks the section that is being read. */
  function place() {
    const links = new Map([...document.querySelectorAll('aside a')].map((a) => [a.hash.slice(1), a]));
    const headings = [...document.querySelectorAll('article :is(h2, h3)[id]')];
    if (!headings.length) return;
    let now = null;
    const look = () => {
      const above = headings.filter((h) => h.getBoundingClientRect().top < 100);
      const end = innerHeight + scrollY >= document.body.scrollHeight - 2;
      const link = links.get((end ? headings : above).at(-1)?.id);
      if (link === now) return;
      now?.removeAttribute('aria-current');
      link?.setAttribute('aria-current', 'true');
      now = link;
    };
    addEventListener('scroll', look, { passive: true });
    look();
  }

  function search() {
    const box = document.querySelector('.search');
    const field = box.querySelector('input');
    const panel = box.querySelector('.hits');
    const list = box.querySelector('ul');
    const status = box.querySelector('p');
    let at = -1;

    /** The index is a script: it is read when somebody wants to search. */
    let loading = null;
    const load = () => loading ??= new Promise((done, failed) => {
      const script = document.createElement('script');
      script.src = `${html.dataset.root}search.js`;
      script.onload = done;
      script.onerror = failed;
      document.head.append(script);
    });

    const open = (yes) => { panel.hidden = !yes; field.setAttribute('aria-expanded', yes); };
    const choose = (i) => {
      const rows = list.children;
      at = rows.length ? (i + rows.length) % rows.length : -1;
      for (let r = 0; r < rows.length; r++) rows[r].setAttribute('aria-selected', r === at);
      field.setAttribute('aria-activedescendant', at < 0 ? '' : rows[at].id);
      rows[at]?.scrollIntoView({ block: 'nearest' });
    };
    const show = async () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      if (!words.length) return open(false);
      try { await load(); } catch { status.textContent = 'The index cannot be read.'; return open(true); }
      const found = find(window.searchIndex, words);
      list.replaceChildren(...found.slice(0, 20).map((hit, i) => row(hit, words, i)));
      const rest = found.length > 20 ? `The best 20 of ${found.length} sections.` : '';
      status.textContent = found.length ? rest : `No section has ${words.length > 1 ? 'all of these words' : `“${words[0]}”`}.`;
      open(true);
      choose(0);
    };

    field.addEventListener('focus', () => load().catch(() => {}));
    field.addEventListener('input', show);
    field.addEventListener('keydown', (e) => {
      if (e.key === 'ArrowDown' || e.key === 'ArrowUp') { choose(at + (e.key === 'ArrowDown' ? 1 : -1)); e.preventDefault(); }
      if (e.key === 'Enter' && at >= 0) list.children[at].querySelector('a').click();
      if (e.key === 'Escape') { open(false); field.value = ''; field.blur(); }
    });
    list.addEventListener('click', (e) => {
      if (e.target.closest('a')) { open(false); return; }
      e.target.closest('[role=option]')?.querySelector('a').click();
    });
    document.addEventListener('click', (e) => { if (!box.contains(e.target)) open(false); });
    document.addEventListener('keydown', (e) => {
      if (e.key !== '/' || e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
      e.preventDefault();
      field.focus();
      field.select();
    });
  }

  /** Sections with all words, best first: words in headings and page titles count most, and whole words more than parts. */
  function find(index, words) {
    const score = (text, word) => {
      const i = text.indexOf(word);
      if (i < 0) return 0;
      return i === 0 || !/[\p{L}\p{N}]/u.test(text[i - 1]) ? 2 : 1;
    };
    const found = [];
    for (const s of index) {
      s.l ??= [s.h ?? '', s.p, s.t].map((x) => x.toLowerCase());
      let sum = s.h ? 0 : 1;
      for (const word of words) {
        const [h, p, t] = s.l.map((x) => score(x, word));
        if (!h && !p && !t) { sum = -1; break; }
        sum += 10 * h + 5 * p + t;
      }
      if (sum >= 0) found.push({ s, sum });
    }
    return found.sort((a, b) => b.sum - a.sum).map((f) => f.s);
  }

  function row(hit, words, i) {
    const li = document.createElement('li');
    li.id = `hit-${i}`;
    li.setAttribute('role', 'option');
    const a = document.createElement('a');
    a.href = html.dataset.root + hit.a;
    a.tabIndex = -1;
    a.append(element('b', marked(hit.h ?? hit.p, words)));
    const line = element('div', marked(excerpt(hit, words), words));
    li.append(a, ...(hit.h ? [element('small', [hit.p])] : []), line);
    return li;
  }

  /** The text around the first word. */
  function excerpt(hit, words) {
    const i = Math.min(...words.map((w) => hit.l[2].indexOf(w)).filter((n) => n >= 0), Infinity);
    const from = i === Infinity || i < 40 ? 0 : hit.t.indexOf(' ', i - 40) + 1;
    return (from ? '… ' : '') + hit.t.slice(from, from + 160);
  }

  function element(name, content) {
    const e = document.createElement(name);
    e.append(...content);
    return e;
  }

  function marked(text, words) {
    const escaped = words.map((w) => w.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    return text.split(new RegExp(`(${escaped.join('|')})`, 'i')).map((part, i) => (i % 2 ? element('mark', [part]) : part));
  }
})();
