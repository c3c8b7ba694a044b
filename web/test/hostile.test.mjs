// Texts that attack, in every field and on every screen. The page shows them, and does nothing that they say.
import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { goTo, launch, show, skip, windowOf } from './browser.mjs';
import { corpus, marker, poison } from './corpus.mjs';
import { inspect } from './inspect.mjs';
import { few, today } from './pictures.mjs';
import { Store } from './store.mjs';

const encode = (text) => encodeURIComponent(text.toWellFormed());
const widths = [1440, 320];
let looks = today;

/** What is wrong with a page, at each width, from its top to its end. With VIEWS=few, the widths take turns. */
async function look(page, title) {
  const all = [];
  for (const width of few ? [widths[looks++ % widths.length]] : widths) {
    await page.setViewportSize({ width, height: 900 });
    // Only of a list of fixed rows is a part not in the document.
    const places = await page.locator('.tall').count() > 0 ? [0, 0.5, 1] : [0];
    for (const to of places) {
      await page.evaluate(async (at) => {
        for (const box of document.querySelectorAll('.scroll')) box.scrollTop = at * box.scrollHeight;
        for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame);
      }, to);
      all.push(...(await page.evaluate(inspect, marker)).map((f) => `${width} px: ${f}`));
    }
  }
  const is = await page.title();
  const want = title === undefined ? 'ctxdir' : `${title.slice(0, 100)} · ctxdir`;
  const plain = (s) => s.toWellFormed().replace(/[\s\u0000-\u001f\u007f-\u009f]+/g, ' ').trim();
  if (plain(is) !== plain(want)) all.push(`the title of the window is ${JSON.stringify(is)}, not ${JSON.stringify(want)}`);
  return [...new Set([...all, ...page.faults.splice(0)])];
}

describe('hostile texts', { skip }, () => {
  let browser;
  let server;
  let contexts;
  let page;
  before(async () => {
    const store = new Store();
    server = await store.serve();
    contexts = await poison(server);
    // Health shows texts, too: those of damaged files.
    const { context } = contexts.script;
    const messages = path.join(store.dir, context, 'messages');
    const [branch] = readdirSync(messages);
    writeFileSync(path.join(messages, branch, readdirSync(path.join(messages, branch))[3]), corpus.handler);
    store.run('index');
    browser = await launch();
    page = await show(await windowOf(browser), server, { path: '/', ready: 'a.row' });
  });
  after(() => Promise.all([browser?.close(), server?.end()]));

  const lists = [
    { name: 'Library', path: '/', ready: 'a.row' },
    { name: 'Library by project', path: '/?group=project', ready: 'a.row' },
    { name: 'Palette', path: '/', ready: 'a.row', then: async (p) => {
      await p.keyboard.press('Control+k');
      await p.locator('#found [role=option]').first().waitFor();
    } },
    { name: 'Search with hits', path: '/search?q=lighthouse', ready: '.hit' },
    { name: 'Search of a pattern', path: '/search?mode=exact&q=lighthouse', ready: '.hit' },
    { name: 'Files', path: '/files?access=all', ready: '.filerow' },
    { name: 'Files by how often', path: '/files?access=all&order=most', ready: '.paths' },
    { name: 'Usage', path: '/usage', ready: '.tab' },
    { name: 'Health', path: '/health', ready: '.finding' },
  ];
  test('in lists', async (t) => {
    for (const screen of lists) {
      await t.test(screen.name, { todo: screen.todo }, async () => {
        await goTo(page, screen);
        assert.deepEqual(await look(page), []);
      });
    }
  });

  test('in a conversation, with everything open', async (t) => {
    for (const [key, { context, title }] of Object.entries(contexts)) {
      await t.test(key, async () => {
        await page.setViewportSize({ width: widths[0], height: 900 });
        await goTo(page, { path: `/c/${context}?d=3`, ready: '.turn' });
        assert.deepEqual(await look(page, title), []);
      });
    }
  });

  test('in the other views of a conversation', async (t) => {
    for (const key of ['script', 'bidi', 'line']) {
      const { context, title, branch } = contexts[key];
      const views = {
        'prompts only': { path: `/c/${context}?d=1`, ready: '.turn', title },
        'a branch': { path: `/c/${context}?b=${encode(branch)}`, ready: '.turn', title },
        'its files': { path: `/c/${context}?nav=files`, ready: '.turn', title },
        'its branches': { path: `/c/${context}/branches`, ready: '[role=treeitem]', title },
        'two branches': { path: `/c/${context}/compare?l=main&r=${encode(branch)}`, ready: '.turn', title },
        'an export': { path: `/c/${context}/export`, ready: '.outfile pre' },
        'what a model would get': { path: `/c/${context}/assemble?q=lighthouse`, ready: '.item' },
      };
      for (const [name, screen] of Object.entries(views)) {
        await t.test(`${key}: ${name}`, async () => {
          await goTo(page, screen);
          assert.deepEqual(await look(page, screen.title), []);
        });
      }
    }
  });

  test('in the address, and in what is said about it', async (t) => {
    const any = '[role=alert], .empty, .hit, .filerow, a.row, .item';
    for (const key of ['attribute', 'bidi', 'words']) {
      const text = encode(corpus[key].slice(0, 1500));
      const { context, title } = contexts[key];
      const addresses = {
        'a context': { path: `/c/${text}`, ready: '[role=alert]' },
        'a view': { path: `/c/${context}/${encode(corpus[key].replaceAll('/', '').slice(0, 100))}`, ready: any },
        'a branch': { path: `/c/${context}?b=${text}`, ready: '[role=alert], .turn', title },
        'a message': { path: `/c/${context}?m=${text}`, ready: '[role=alert]', title },
        'words': { path: `/search?q=${text}&role=${text}&path=${text}`, ready: any },
        'a pattern': { path: `/search?mode=exact&q=${text}(`, ready: '[role=alert]' },
        'a path': { path: `/files?path=${text}&access=${text}`, ready: any },
        'conditions': { path: `/?project=${text}&tool=${text}&model=${text}&label=${text}&group=${text}&sort=${text}`, ready: any },
        'a question': { path: `/c/${context}/assemble?q=${text}&max=${text}&format=${text}`, ready: any },
      };
      for (const [name, screen] of Object.entries(addresses)) {
        await t.test(`${key}: ${name}`, async () => {
          await goTo(page, screen);
          assert.deepEqual(await look(page, screen.title), []);
        });
      }
    }
  });
});
