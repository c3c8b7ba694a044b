// Takes the pictures of the page that README and docs show: six screens, in both schemes. FONTS names a folder with Inter
// and JetBrains Mono, which stand for the fonts of a desktop; without it the page has those of this machine.
//
//	node shots/shots.mjs
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { launch, ready, windowOf } from '../test/browser.mjs';
import { folder, repository, Store } from '../test/store.mjs';
import { fill } from './demo.mjs';

const to = path.join(repository, 'docs/pictures');
mkdirSync(to, { recursive: true });
if (process.env.FONTS) {
  const alias = (name, font) => `<match target="pattern"><test name="family"><string>${name}</string></test><edit name="family" mode="prepend" binding="strong"><string>${font}</string></edit></match>`;
  const conf = path.join(folder('fonts'), 'fonts.conf');
  writeFileSync(conf, `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig><dir>${process.env.FONTS}</dir><dir>/usr/share/fonts</dir>
    <cachedir>${folder('fonts')}</cachedir>${['system-ui', 'sans-serif'].map((n) => alias(n, 'Inter')).join('')}
    ${['ui-monospace', 'monospace'].map((n) => alias(n, 'JetBrains Mono')).join('')}</fontconfig>`);
  process.env.FONTCONFIG_FILE = conf;
}
const store = new Store();
const screens = fill(store);
const [server, browser] = await Promise.all([store.serve(), launch()]);
for (const scheme of ['light', 'dark']) {
  const context = await windowOf(browser, { width: 1280, height: 800, scheme });
  for (const [name, [where, wanted]] of Object.entries(screens)) {
    const page = await context.newPage();
    await page.goto(server.at(where));
    await ready(page, { ready: wanted });
    await page.waitForLoadState('networkidle');
    await page.screenshot({ path: path.join(to, `page-${name}-${scheme}.png`) });
    await page.close();
  }
  await context.close();
}
await browser.close();
await server.end();
