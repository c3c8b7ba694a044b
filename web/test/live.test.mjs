// What goes on in the store while the page is open: other processes append, the server goes and comes back, tokens change.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { goTo, launch, show, skip, until, windowOf } from './browser.mjs';
import { screensOf } from './screens.mjs';
import { answer, call, fill, prompt, result, talk } from './sessions.mjs';
import { Store } from './store.mjs';

const long = 'A long conversation';
const shownText = (page, text) => page.locator('.turns').getByText(text, { exact: true }).last().waitFor();
const pill = (page) => page.locator('.talk .pill');

/** How far the talk is from its end, in pixels. */
const left = (page) => page.locator('.talk > .scroll').evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight);

/** Scrolls the talk to its middle, as a wheel does, and waits until nothing loads any more. */
async function scrollUp(page) {
  const box = page.locator('.talk > .scroll');
  await box.hover();
  await page.mouse.wheel(0, -900);
  await until(page, () => {
    const b = document.querySelector('.talk > .scroll');
    return b.scrollHeight - b.scrollTop - b.clientHeight > 400;
  });
  await settled(page);
}

/** Waits until the page has no request under way, texts are Markdown, and no frame changes the talk. */
async function settled(page) {
  do {
    await page.evaluate(() => new Promise((resolve) => {
      const box = document.querySelector('.talk > .scroll');
      let [same, was] = [0, ''];
      const look = () => {
        const is = `${box?.scrollTop} ${box?.scrollHeight} ${performance.getEntriesByType('resource').length}`;
        same = is === was ? same + 1 : 0;
        was = is;
        if (same > 20) resolve();
        else requestAnimationFrame(look);
      };
      look();
    }));
    await until(page, () => !document.querySelector('[data-waits]'));
  } while (page.asked.size > 0);
}

/** The first message in view, and where it stands. */
const anchor = (page) => page.evaluate(() => {
  const edge = document.querySelector('.talk > .scroll').getBoundingClientRect().top;
  const el = [...document.querySelectorAll('[data-id]')].find((e) => e.getBoundingClientRect().bottom > edge + 40);
  return { id: el.dataset.id, top: el.getBoundingClientRect().top };
});
const topOf = (page, id) => page.evaluate((i) => document.querySelector(`[data-id="${i}"]`)?.getBoundingClientRect().top, id);

/** A screen of each kind, whatever its query is, and those in which a person does something. */
const kinds = (sample) => {
  const of = (screen) => screen.path.split('?')[0];
  return screensOf(sample).filter((screen, i, all) => screen.then || all.findIndex((other) => of(other) === of(screen)) === i);
};

describe('the open page', { skip, timeout: 3_600_000 }, () => {
  let browser;
  let store;
  let sample;
  let server;
  const servers = [];
  const serve = async (options) => {
    const began = await store.serve(options);
    servers.push(began);
    return began;
  };
  const open = async (screen, options) => show(await windowOf(browser, options), server, screen);
  /** A conversation of its own, so that tests do not see each other's messages. */
  const conversation = (turns = 60) => {
    const id = store.create({ title: long, labels: { tool: 'claude-code' } });
    store.append(id, talk(1, turns, Date.now() - turns * 60_000));
    return { id, path: `/c/${id}`, ready: '.turn' };
  };
  before(async () => {
    store = new Store();
    sample = fill(store);
    [server, browser] = await Promise.all([serve(), launch()]);
  });
  afterEach(() => Promise.all(browser.contexts().map((context) => context.close())));
  after(async () => {
    await browser?.close();
    await Promise.all(servers.map((s) => s.end()));
  });

  test('opens a conversation at its end, and follows what another process appends', async () => {
    const c = conversation();
    const page = await open(c);
    await settled(page);
    assert.ok(await left(page) < 2, `it is ${await left(page)} px from the end`);
    for (let i = 0; i < 3; i++) {
      store.append(c.id, [prompt(Date.now(), `Follow me ${i}`), answer(Date.now(), `I follow ${i}`)]);
      await shownText(page, `I follow ${i}`);
      await settled(page);
      assert.ok(await left(page) < 2, `after message ${i} it is ${await left(page)} px from the end`);
    }
    assert.equal(await pill(page).count(), 0);
    assert.deepEqual(page.faults, []);
  });

  test('stays at the end when texts grow before the browser tells that it scrolled', async () => {
    const page = await open(conversation());
    await settled(page);
    await page.evaluate(() => {
      const box = document.querySelector('.talk > .scroll');
      box.scrollTop -= 1;
      box.scrollTop += 1; // an event is due at the next frame
      const late = document.createElement('p');
      late.style.height = '300px';
      box.querySelector('.turn:last-child').append(late);
    });
    await settled(page);
    assert.ok(await left(page) < 2, `it is ${await left(page)} px from the end`);
    await page.locator('.talk > .scroll').hover();
    await page.mouse.wheel(0, -60);
    await until(page, () => {
      const b = document.querySelector('.talk > .scroll');
      return b.scrollHeight - b.scrollTop - b.clientHeight > 48;
    });
    await settled(page);
    const at = await left(page);
    await page.evaluate(() => { document.querySelector('.turn:last-child > p').style.height = '600px'; });
    await settled(page);
    assert.equal(await left(page), at + 300, 'who moved up is moved');
  });

  test('shows answers as Markdown when the worker comes late', async () => {
    const context = await windowOf(browser);
    let wait = true;
    await context.route(/worker/, async (route) => {
      await new Promise((resolve) => { setTimeout(resolve, wait ? 3000 : 0); });
      wait = false;
      await route.continue();
    });
    const page = await show(context, server, conversation(3));
    await until(page, () => document.querySelectorAll('.turns .prose > .md').length === 3);
  });

  test('shows an answer as it is when the worker does not come to its end, and goes on with the others', async () => {
    const context = await windowOf(browser);
    let first = true;
    await context.route(/worker/, async (route) => {
      if (!first) return route.continue();
      first = false;
      return route.fulfill({ contentType: 'text/javascript', body: 'onmessage = (e) => { postMessage({ begun: e.data.id }); for (;;); };' });
    });
    const page = await show(context, server, conversation(3));
    await until(page, () => document.querySelectorAll('.turns .prose > .md').length === 2);
    assert.equal(await page.locator('.turns .prose > .said:first-child').count(), 1);
  });

  test('does not move what is read when something is appended, and counts it', async () => {
    const c = conversation();
    const page = await open(c);
    await settled(page);
    await scrollUp(page);
    const at = await anchor(page);
    for (let i = 1; i <= 4; i++) {
      store.append(c.id, talk(1000 + i, 1, Date.now()));
      await pill(page).getByText(`${2 * i} new messages`).waitFor();
    }
    await settled(page);
    assert.ok(Math.abs(await topOf(page, at.id) - at.top) <= 1, `it moved from ${at.top} to ${await topOf(page, at.id)} px`);
    await pill(page).click();
    await shownText(page, 'Question 1004 about the lighthouse');
    await until(page, () => !document.querySelector('.talk .pill'));
    assert.equal(await page.locator('.strip').count(), 0, await page.locator('.strip').allInnerTexts());
    await settled(page);
    assert.ok(await left(page) < 2, `it is ${await left(page)} px from the end`);
  });

  test('counts each message once when many come at the same time', async () => {
    const c = conversation();
    const page = await open(c);
    await settled(page);
    await scrollUp(page);
    for (let i = 0; i < 12; i++) store.append(c.id, [prompt(Date.now(), `At once ${i}`)]);
    await until(page, () => /^1[2-9]|^[2-9]\d/.test(document.querySelector('.talk .pill')?.textContent ?? ''));
    await settled(page);
    assert.match(await pill(page).textContent(), /^12 new messages/);
  });

  test('gives a call its result where it stands', async () => {
    const c = conversation(2);
    store.append(c.id, [prompt(Date.now(), 'Sound the horn'), call(Date.now(), 'horn', 'Bash', { command: 'horn --long' })]);
    const page = await open(c);
    await page.getByText('no result yet').first().waitFor();
    store.append(c.id, [result(Date.now(), 'horn', 'It sounds.')]);
    await shownText(page, 'It sounds.');
    assert.equal(await page.locator('.turns').getByText('no result yet').count(), 0);
  });

  test('shows eight tabs what another process appends', async () => {
    const c = conversation(5);
    const first = await open(c);
    const tabs = [first];
    for (let i = 1; i < 8; i++) {
      const tab = await first.context().newPage();
      await tab.goto(server.origin + c.path);
      tabs.push(tab);
    }
    await Promise.all(tabs.map((tab) => tab.locator('.turn').first().waitFor()));
    store.append(c.id, [prompt(Date.now(), 'To all of you')]);
    await Promise.all(tabs.map((tab) => shownText(tab, 'To all of you')));
  });

  test('gives its token to a new tab when it is busy, too', async () => {
    const c = conversation(5);
    const first = await open(c);
    const tab = await first.context().newPage();
    const busy = first.evaluate(() => {
      document.title = 'busy';
      for (const end = performance.now() + 3000; performance.now() < end; );
    });
    await tab.goto(server.origin + c.path);
    await tab.locator('.turn').first().waitFor();
    await busy;
  });

  test('shows in the Library that an agent works, without a reload', async () => {
    const page = await open({ path: '/', ready: 'a.row' });
    const id = store.create({ title: 'Dredge the channel', labels: { tool: 'claude-code' } });
    store.append(id, [prompt(Date.now(), 'Dredge'), call(Date.now(), 'd', 'Bash', { command: 'dredge --deep' })]);
    await page.locator('a.liverow', { hasText: 'Dredge the channel' }).getByText('dredge --deep').waitFor();
  });

  test('says that it is not connected, and catches up when the server is back', async () => {
    const c = conversation();
    const page = await open(c);
    await settled(page);
    const end = await anchor(page);
    const { port } = server;
    await server.end();
    await page.locator('.strip', { hasText: 'Not connected since' }).waitFor();
    assert.ok(Math.abs(await topOf(page, end.id) - end.top) <= 1, 'what is read moved');
    await page.locator('.foot', { hasText: 'Not connected' }).waitFor();
    await shownText(page, 'Question 60 about the lighthouse'); // what was here stays
    store.append(c.id, [prompt(Date.now(), 'While you were away')]);
    server = await serve({ port });
    await page.locator('.strip').waitFor({ state: 'detached' });
    await page.locator('.foot', { hasText: 'Following' }).waitFor();
    await shownText(page, 'While you were away');
    store.append(c.id, [prompt(Date.now(), 'And now')]);
    await shownText(page, 'And now');
    assert.deepEqual(page.faults.filter((f) => !/WebSocket|ERR_CONNECTION/.test(f)), []);
  });

  test('asks for the link when the token is wrong, and shows no stored text', async () => {
    const context = await windowOf(browser);
    const page = await context.newPage();
    await page.goto(`${server.origin}/c/${sample.bounded}#token=${'wrong'.repeat(8)}`);
    await page.locator('#link').waitFor();
    assert.doesNotMatch(await page.locator('body').innerText(), /buffer|tide|lighthouse/);
    assert.equal(await page.title(), 'ctxdir');
    assert.equal(new URL(page.url()).hash, '');
    await page.locator('#link').fill('not a link');
    await page.keyboard.press('Enter');
    await page.locator('[role=alert]', { hasText: 'not the address' }).waitFor();
    await page.locator('#link').fill(server.at('/'));
    await page.keyboard.press('Enter');
    await page.locator('.turn').first().waitFor();
    await page.locator('.foot', { hasText: 'Following' }).waitFor();
  });

  test('hides what it shows when the server begins again with another token', async () => {
    const page = await open({ path: `/c/${sample.bounded}`, ready: '.turn' });
    const { port } = server;
    await server.end();
    server = await serve({ port, token: 'other.token' });
    await page.locator('#link').waitFor();
    assert.doesNotMatch(await page.locator('body').innerText(), /buffer|tide|lighthouse/);
    assert.equal(await page.title(), 'ctxdir');
    await server.end();
    server = await serve({ port }); // with the token that the other tests have
  });

  test('takes the token out of the address before it asks for anything', async () => {
    const context = await windowOf(browser);
    const page = await context.newPage();
    await page.addInitScript(() => {
      const { fetch } = globalThis;
      globalThis.seen = [];
      globalThis.fetch = (...all) => {
        globalThis.seen.push(location.href);
        return fetch(...all);
      };
    });
    await page.goto(server.at('/'));
    await page.locator('a.row').first().waitFor();
    const seen = await page.evaluate(() => [...globalThis.seen, location.href]);
    assert.ok(seen.length > 1, 'the page asked for nothing');
    assert.deepEqual(seen.filter((url) => url.includes('token')), []);
    await page.goto('about:blank');
    await page.goBack();
    assert.doesNotMatch(page.url(), /token/);
  });

  test('gives its token to a new tab, and to no other window', async () => {
    const page = await open({ path: '/', ready: 'a.row' });
    const second = await page.context().newPage();
    await second.goto(`${server.origin}/usage`);
    await second.locator('.tab').first().waitFor();
    await page.close();
    await second.reload(); // it has the token itself
    await second.locator('.tab').first().waitFor();
    const other = await windowOf(browser);
    const stranger = await other.newPage();
    await stranger.goto(server.origin);
    await stranger.locator('#link').waitFor();
  });

  test('keeps nothing in the browser but the theme and such', async () => {
    const screens = kinds(sample);
    const page = await open(screens[0]);
    await page.getByRole('button', { name: 'Dark colours' }).click();
    for (const screen of screens) {
      await goTo(page, screen);
    }
    const kept = await page.evaluate(async () => ({
      local: { ...localStorage }, session: Object.keys(sessionStorage), cookies: document.cookie,
      databases: (await indexedDB.databases()).length, caches: (await caches.keys()).length,
      workers: (await navigator.serviceWorker?.getRegistrations())?.length ?? 0,
    }));
    const names = ['ctxdir.theme', 'ctxdir.lines', 'ctxdir.keys', 'ctxdir.diff', 'ctxdir.widths', 'ctxdir.group', 'ctxdir.sort'];
    assert.deepEqual(Object.keys(kept.local).filter((k) => !names.includes(k)), []);
    assert.deepEqual(Object.values(kept.local).filter((v) => !/^[a-z0-9.,:]{0,40}$/.test(v)), []);
    assert.equal(kept.local['ctxdir.theme'], 'dark');
    assert.deepEqual(kept.session, ['ctxdir.token']);
    assert.deepEqual([kept.cookies, kept.databases, kept.caches, kept.workers], ['', 0, 0, 0]);
  });

  test('offers no action where the server is read-only', async () => {
    const readOnly = await serve({ readOnly: true });
    const context = await windowOf(browser);
    const screens = kinds(sample);
    const page = await show(context, readOnly, screens[0]);
    await page.locator('.foot', { hasText: 'Read-only' }).waitFor();
    const words = /^(rename|set a label|add a label|move to the trash|archive|fork|rewind|make active|undo|restore|switch to)/i;
    const offered = [];
    for (const screen of screens) {
      await goTo(page, screen);
      for (const text of await page.locator('button:visible, [role=menuitem]:visible').allInnerTexts()) {
        if (words.test(text.trim())) offered.push(`${screen.name}: ${text.trim()}`);
      }
    }
    assert.deepEqual(offered, []);
  });
});
