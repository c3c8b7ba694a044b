// Chromium for the tests of the page, by playwright-core, which brings none.
import { accessSync, constants } from 'node:fs';
import { chromium } from 'playwright-core';
import { folder } from './store.mjs';

/** The browser that tests use: that of CHROMIUM, or Debian's. */
function find() {
  for (const candidate of [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']) {
    if (!candidate) continue;
    try {
      accessSync(candidate, constants.X_OK);
      return candidate;
    } catch {
      // The next one.
    }
  }
  return undefined;
}

const executablePath = find();

/** Why a test is skipped, or false. */
export const skip = executablePath ? false : 'no Chromium: install it, or name one in CHROMIUM';

export const patience = Number(process.env.PATIENCE ?? 180_000); // ms that a condition may take on a busy machine

/** Starts a browser that reaches only this machine. */
export async function launch() {
  const config = folder('browser');
  return chromium.launch({
    executablePath,
    env: { ...process.env, HOME: config, XDG_CONFIG_HOME: config, XDG_CACHE_HOME: config },
    args: [
      '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
      ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
    ],
  });
}

/** A window of its own: other storage, other size. */
export async function windowOf(browser, { width = 1440, height = 900, scheme = 'light', bypassCSP = false, permissions = [] } = {}) {
  const context = await browser.newContext({
    viewport: { width, height }, colorScheme: scheme, bypassCSP, permissions, locale: 'en-GB', timezoneId: 'UTC', reducedMotion: 'reduce', serviceWorkers: 'block',
  });
  context.setDefaultTimeout(patience);
  return context;
}

/** Opens a screen with the token, as the printed link does, and waits until it shows what it has. */
export async function show(context, server, screen) {
  const page = await context.newPage();
  page.faults = faultsOf(page, server.origin);
  page.asked = asked(page);
  await page.goto(server.at(screen.path));
  await ready(page, screen);
  return page;
}

/** The requests of a page that are under way. */
function asked(page) {
  const all = new Set();
  page.on('request', (r) => all.add(r));
  for (const end of ['requestfinished', 'requestfailed']) page.on(end, (r) => all.delete(r));
  return all;
}

/** Goes to another screen of a page, as its links do, by way of one that shows nothing of the store. */
export async function goTo(page, screen) {
  const go = (path) => page.evaluate((to) => {
    history.pushState(null, '', to);
    dispatchEvent(new PopStateEvent('popstate'));
  }, path);
  await page.keyboard.press('Escape'); // what stands over the screen goes
  await go('/c/x/nowhere');
  await page.locator('.empty', { hasText: 'This screen is not there' }).waitFor();
  await until(page, () => !document.querySelector('dialog'));
  await go(screen.path);
  await ready(page, screen);
}

export async function ready(page, screen) {
  await page.locator(screen.ready).first().waitFor();
  await until(page, () => !document.querySelector('[aria-busy=true], [data-waits]'));
  await screen.then?.(page);
}

/** What a page must never do, whatever it shows: ask another origin, open a dialog, break its own policy, throw. */
function faultsOf(page, origin) {
  const faults = [];
  page.on('dialog', (d) => {
    faults.push(`dialog: ${d.message()}`);
    void d.dismiss();
  });
  page.on('pageerror', (e) => faults.push(`exception: ${e.message}`));
  page.on('console', (m) => {
    // An answer with an error status is a case that screens handle.
    if (m.type() === 'error' && !/^Failed to load resource: the server responded with a status of/.test(m.text())) faults.push(`console: ${m.text()}`);
  });
  page.on('request', (r) => {
    const u = new URL(r.url());
    if (u.origin !== origin && !['blob:', 'data:'].includes(u.protocol)) faults.push(`request: ${r.url()}`);
  });
  page.on('popup', (p) => faults.push(`window: ${p.url()}`));
  return faults;
}

/** Waits until something holds in the page. */
export const until = (page, f, arg) => page.waitForFunction(f, arg, { timeout: patience });
