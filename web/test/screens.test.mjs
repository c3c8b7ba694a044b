// Every screen, in both schemes, at the widths of a desktop, of 200 % zoom, and of a phone: it looks as its stored picture,
// and axe-core finds nothing serious or critical. axe is put into the page past the page's policy, in this test alone.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, describe, test } from 'node:test';
import { goTo, launch, show, skip, until, windowOf } from './browser.mjs';
import { Pictures, views } from './pictures.mjs';
import { screensOf } from './screens.mjs';
import { fill } from './sessions.mjs';
import { Store } from './store.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Findings that people must not meet, each with the elements that have them. */
async function findings(page, rules) {
  const found = await page.evaluate((only) => globalThis.axe.run(document, { resultTypes: ['violations'], preload: false, ...(only && { runOnly: only }) }), rules);
  return found.violations.filter((v) => v.impact === 'serious' || v.impact === 'critical')
    .flatMap((v) => v.nodes.slice(0, 5).map((n) => `${v.id}: ${n.target.join(' ')}: ${n.failureSummary.replace(/\s+/g, ' ').slice(0, 300)}`));
}

/** Findings at each width in both schemes, and pictures. Between the schemes only colours differ. */
async function everywhere(page, pictures) {
  await page.evaluate(axe);
  const all = {};
  for (const view of views) {
    const { width, scheme } = view;
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme: scheme });
    await until(page, (s) => document.documentElement.dataset.theme === s, scheme);
    const found = await findings(page, scheme === 'dark' ? ['color-contrast'] : undefined);
    if (found.length > 0) all[`${scheme}, ${width} px`] = found;
    await pictures.take(page, view);
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: views[0].width, height: 900 });
  return all;
}

describe('screens', { skip }, () => {
  let browser;
  let server;
  let screens;
  let page;
  let pictures;
  before(async () => {
    const store = new Store();
    screens = screensOf(fill(store));
    [server, browser] = await Promise.all([store.serve(), launch()]);
    page = await show(await windowOf(browser, { bypassCSP: true }), server, screens[0]);
    pictures = new Pictures(await (await browser.newContext()).newPage());
  });
  after(() => Promise.all([browser?.close(), server?.end()]));

  test('look as they did, and axe finds nothing, in both schemes and at every width', async (t) => {
    for (const screen of screens) {
      await t.test(screen.name, { todo: screen.todo }, async () => {
        await goTo(page, screen);
        assert.deepEqual(await everywhere(page, pictures), {});
        assert.deepEqual(await pictures.compare(screen.name), []);
      });
    }
  });

  test('axe finds nothing on the field for the token', async () => {
    const context = await windowOf(browser, { bypassCSP: true });
    const locked = await context.newPage();
    await locked.goto(server.origin);
    await locked.locator('#link').waitFor();
    assert.deepEqual(await everywhere(locked, pictures), {});
    assert.deepEqual(await pictures.compare('Field for the token'), []);
    await context.close();
  });
});
