// What people come to the page for: five tasks of each of three, by keyboard and by pointer. A task whose screen is missing
// is marked as to be done.
import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { goTo, launch, ready, show, skip, until, windowOf } from './browser.mjs';
import { fill } from './sessions.mjs';
import { Store } from './store.mjs';

describe('tasks', { skip, timeout: 3_600_000 }, () => {
  let browser;
  let server;
  let sample;
  let page;
  before(async () => {
    const store = new Store();
    sample = fill(store);
    sample.agents = store.importFile('testdata/claude-code/release-notes-tuesday.jsonl');
    const broken = path.join(store.dir, sample.waiting, 'messages', 'branch-main');
    writeFileSync(path.join(broken, readdirSync(broken)[0]), 'damaged');
    [server, browser] = await Promise.all([store.serve(), launch()]);
    const context = await windowOf(browser, { permissions: ['clipboard-read', 'clipboard-write'] });
    page = await show(context, server, { path: '/', ready: 'a.row' });
  });
  after(() => Promise.all([browser?.close(), server?.end()]));

  const at = async (screen, wanted = 'a.row') => {
    await goTo(page, { path: screen, ready: wanted });
    await page.evaluate(() => document.activeElement?.blur());
  };
  const seen = (text, within = 'main') => page.locator(within).getByText(text).filter({ visible: true }).first().waitFor();
  const click = (role, name) => page.getByRole(role, { name, exact: true }).first().click();
  /** Presses keys. Those of a sequence ("g g") come at once: the page waits a second for the next, which a stalled machine exceeds. */
  const keys = async (...all) => {
    for (const key of all) {
      if (!key.includes(' ')) await page.keyboard.press(key);
      else await page.evaluate((names) => {
        for (const name of names) document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true }));
      }, key.split(' '));
    }
  };
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  const onScreen = (name) => until(page, (p) => location.pathname === p, name);
  /** Moves the focus with Tab until it is where it should be; a person has no other way without a key. */
  const tabTo = async (selector) => {
    for (let i = 0; i < 120; i++) {
      if (await page.evaluate((s) => document.activeElement?.matches(s), selector)) return;
      await page.keyboard.press('Tab');
    }
    assert.fail(`Tab does not lead to ${selector}`);
  };
  /** The talk shows an element, not only its document. */
  const inView = (text) => until(page, (t) => {
    const box = document.querySelector('.talk > .scroll')?.getBoundingClientRect();
    return box && [...document.querySelectorAll('.talk .said, .talk .md, .talk .diff td')].some((el) => {
      const r = el.getBoundingClientRect();
      return el.textContent.includes(t) && r.top < box.bottom && r.bottom > box.top;
    });
  }, text);
  const conversation = () => at(`/c/${sample.bounded}`, '.turn');
  const firstHit = async () => {
    await page.locator('.hit').first().waitFor();
    await until(page, () => !document.querySelector('[aria-busy=true]'));
  };

  /** A task by each of its ways. */
  const task = (title, ways) => {
    for (const [way, run] of Object.entries(ways)) {
      if (way !== 'todo') test(`${title}, by ${way}`, { todo: ways.todo }, run);
    }
  };

  describe('of who watches agents', () => {
    const states = async () => {
      const row = (title) => page.locator('a.liverow', { hasText: title });
      await row('Count the waves').getByText('no result yet').waitFor();
      await row('Paint the pier').locator('.dot.wait').waitFor();
      await row('Repair the harbour lamp').waitFor();
    };
    task('sees which agent works or waits', {
      pointer: async () => { await at('/usage', '.tab'); await click('link', 'Library'); await states(); },
      keyboard: async () => { await at('/usage', '.tab'); await keys('g l'); await states(); },
    });
    task('sees in the Library which agent failed', {
      pointer: async () => { await at('/'); await page.locator('a.liverow', { hasText: 'Repair the harbour lamp' }).getByText('failed').waitFor(); },
    });
    task('reads its newest turn', {
      pointer: async () => { await at('/'); await page.locator('.side').getByText('Count the waves').click(); await inView('Count the waves'); },
      keyboard: async () => {
        await at('/');
        await page.locator('a.liverow').first().waitFor();
        await tabTo('main .scroll');
        await keys('j', 'Enter');
        await page.locator('.turn').last().waitFor();
        assert.match(page.url(), /\/c\//);
      },
    });
    task('sees what it changed, as a diff', {
      pointer: async () => {
        await conversation();
        await page.locator('.ntabs').getByText('Files').click();
        await page.locator('.nfile', { hasText: /^ring\.go/ }).click();
        await inView('var all [64]int');
      },
      keyboard: async () => {
        await conversation();
        await keys('g g', '}');
        await inView('var all [64]int');
        await keys('G', '{', '{');
        await inView('var all [64]int');
      },
      'keyboard on a slow line': async () => {
        await at(`/c/${sample.bounded}?p=0`, '.turn');
        let answer;
        const pressed = new Promise((done) => { answer = done; });
        await page.route('**/parts?*', async (route) => {
          await pressed;
          await route.continue();
        });
        await keys('G', '{', '{');
        answer();
        await until(page, () => {
          const change = document.querySelector('.talk .diff');
          return change && Math.abs(change.getBoundingClientRect().top - document.querySelector('.talk > .scroll').getBoundingClientRect().top - 44) < 2;
        });
        await page.unroute('**/parts?*');
      },
    });
    task('jumps back to an earlier prompt', {
      pointer: async () => { await conversation(); await page.locator('.nt', { hasText: 'Question 2 about' }).click(); await inView('Question 2 about'); },
      keyboard: async () => {
        await conversation();
        await keys('p');
        await until(page, () => document.activeElement?.matches('.nfil input'));
        await page.keyboard.type('Question 2');
        await page.locator('.nt').first().waitFor();
        await tabTo('.nt');
        await keys('Enter');
        await inView('Question 2 about');
      },
    });
    const resumes = async () => {
      await until(page, () => navigator.clipboard.readText().then((text) => /^codex resume [0-9a-f-]{36}$/.test(text)));
      await page.evaluate(() => navigator.clipboard.writeText(''));
    };
    task('opens what a sub-agent did', {
      pointer: async () => {
        await at(`/c/${sample.agents}`, '.turn');
        await click('link', 'Open its 4 messages');
        await inView('Names only.');
        assert.match(page.url(), /b=sidechain-/);
      },
    });
    task('copies the command that resumes it', {
      pointer: async () => {
        await at(`/c/${sample.imported}`, '.turn');
        await click('button', 'More');
        await click('menuitem', 'Copy the command to resume');
        await resumes();
      },
      keyboard: async () => { await at(`/c/${sample.imported}`, '.turn'); await keys('Y'); await resumes(); },
    });
  });

  describe('of who looks for something', () => {
    task('reads the output of a tool that has a word', {
      pointer: async () => {
        await at('/search?q=FAIL&role=tool', '.hit');
        await firstHit();
        await page.locator('.hit', { hasText: 'TestRing' }).first().click();
        await page.locator('.step .out', { hasText: '--- FAIL: TestRing' }).first().waitFor();
        assert.match(page.url(), /role=tool/);
      },
    });
    task('types a query at once', {
      keyboard: async () => { await at('/'); await page.keyboard.type('/lighthouse'); await until(page, () => new URLSearchParams(location.search).get('q') === 'lighthouse'); },
    });
    const hits = async () => { await firstHit(); await seen(/lighthouse/); };
    task('searches all conversations', {
      pointer: async () => {
        await at('/');
        await click('link', 'Search');
        await page.locator('.field input').fill(sample.word);
        await hits();
      },
      keyboard: async () => {
        await at('/usage', '.tab');
        await keys('/');
        await until(page, () => document.activeElement?.matches('.field input'));
        await page.keyboard.type(sample.word);
        await hits();
      },
    });
    task('reads a hit in its turn', {
      pointer: async () => { await at(`/search?q=${sample.word}`, '.hit'); await firstHit(); await page.locator('.hit').nth(2).click(); await inView('lighthouse'); },
      keyboard: async () => {
        await at(`/search?q=${sample.word}`, '.hit');
        await firstHit();
        await tabTo('.field input');
        await keys('ArrowDown', 'ArrowDown', 'Enter');
        await page.locator('.turn').first().waitFor();
        await inView('lighthouse');
      },
    });
    /** The change of the file stands beside the list, with the prompt that asked for it. */
    const changes = async () => {
      await page.locator('.touch .diff', { hasText: 'var all [64]int' }).waitFor();
      await page.locator('.touch .why', { hasText: 'Make the buffer bounded' }).waitFor();
    };
    task('sees what was done to a file', {
      pointer: async () => {
        await at('/files', '.filerow');
        await page.locator('.field input').fill('ring.go');
        await until(page, () => [...document.querySelectorAll('.filerow')].every((r) => r.textContent.includes('ring.go')) && document.querySelector('.filerow'));
        await page.locator('.filerow').first().click();
        await changes();
        await page.locator('.why').first().click();
        await inView('var all [64]int');
      },
      keyboard: async () => {
        await at('/', 'a.row');
        await keys('g f');
        await page.locator('.filerow').first().waitFor();
        await tabTo('.field input');
        await page.keyboard.type('ring.go');
        await until(page, () => [...document.querySelectorAll('.filerow')].every((r) => r.textContent.includes('ring.go')) && document.querySelector('.filerow'));
        await tabTo('.filerow');
        await keys('Enter');
        await changes();
      },
    });
    /** Each file has a row, the most often touched first. */
    const most = async () => {
      await page.locator('.paths').waitFor();
      const times = await page.locator('.paths td:nth-child(2)').allTextContents();
      assert.ok(times.length > 1);
      assert.deepEqual(times.map(Number), times.map(Number).toSorted((a, b) => b - a));
    };
    task('sees which file is touched most', {
      pointer: async () => {
        await at('/files', '.filerow');
        await page.getByRole('link', { name: 'Most touched' }).click();
        await most();
        await page.locator('.paths a').first().click();
        await page.locator('.touch').first().waitFor();
      },
      keyboard: async () => {
        await at('/files', '.filerow');
        await tabTo('.opt[href*="order=most"]');
        await keys('Enter');
        await most();
        await tabTo('.paths a');
        await keys('Enter');
        await page.locator('.touch').first().waitFor();
      },
    });
    task('finds where two attempts parted, and compares them', {
      pointer: async () => {
        await conversation();
        await click('link', 'Branches');
        await page.locator('[role=treeitem]', { hasText: sample.branch }).click();
        await page.locator('aside, main').getByText('Compare', { exact: false }).filter({ visible: true }).first().click();
        await onScreen(`/c/${sample.bounded}/compare`);
        await seen(/messages in common/);
      },
      keyboard: async () => { await conversation(); await keys('c'); await onScreen(`/c/${sample.bounded}/compare`); await seen(/messages in common/); },
    });
    task('copies a link to a turn', {
      pointer: async () => {
        await conversation();
        await page.getByRole('button', { name: 'Copy the link to this turn' }).last().click();
        const link = new URL(await copied());
        assert.equal(link.hash, '');
        await page.goto(link.href);
        await inView('Make the buffer bounded');
      },
      keyboard: async () => {
        await conversation();
        await keys('y');
        await until(page, () => navigator.clipboard.readText().then((t) => t.startsWith('http')));
        assert.equal(new URL(await copied()).hash, '');
      },
    });
    const saved = async (press) => {
      await at(`/c/${sample.bounded}`, '.turn');
      await press();
      await page.locator('.outfile pre').waitFor();
      await ready(page, { ready: '.outfile pre' });
      const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Save', exact: true }).press('Enter')]);
      assert.match(file.suggestedFilename(), /^ctxdir-[0-9a-f]{8}\.html$/);
    };
    task('exports one conversation', { pointer: () => saved(() => click('link', 'Export')) });
  });

  describe('of who keeps the store', () => {
    const damage = async () => { await page.locator('.finding').first().waitFor(); await seen(`ctxtool repair ${sample.waiting.slice(0, 8)}`); };
    task('sees damage, and what to run', {
      pointer: async () => { await at('/'); await click('link', 'Health'); await damage(); },
      keyboard: async () => { await at('/'); await keys('g h'); await damage(); },
    });
    const figures = async () => {
      for (const title of ['By project', 'By model', 'Most expensive prompts', 'Tokens', 'Cost']) await seen(title);
      await seen('claude-sonnet-4-5');
    };
    task('sees tokens and cost by day, project, model and prompt', {
      pointer: async () => { await at('/'); await click('link', 'Usage'); await figures(); },
      keyboard: async () => { await at('/'); await keys('g u'); await figures(); },
    });
    task('sees which day cost most, and what it was spent on', {
      pointer: async () => {
        await at('/usage', '.tab a');
        const day = page.locator('.tab', { hasText: 'Most expensive days' }).locator('a').first();
        const name = await day.textContent();
        await day.click();
        await page.locator('.bar .fil.on', { hasText: name }).waitFor();
        await page.locator('.tab', { hasText: 'Most expensive conversations' }).locator('a').first().waitFor();
        assert.match(page.url(), /[?&]from=\d{4}-\d\d-\d\d/);
        await page.locator('.plot [role=link]').first().click(); // a bar of the plot
        await page.locator('.bar .fil.on').click();
        await until(page, () => !document.querySelector('.bar .fil.on'));
      },
    });
    task('goes from an expensive prompt to its turn', {
      pointer: async () => {
        await at('/usage', '.tab a');
        await page.locator('.tab', { hasText: 'Most expensive prompts' }).locator('a').first().click();
        await page.locator('.turn').first().waitFor();
      },
    });
    task('goes from an expensive project to its conversations', {
      pointer: async () => {
        await at('/usage', '.tab a');
        await page.locator('.tab', { hasText: 'By project' }).locator('a').first().click();
        await page.locator('a.row').first().waitFor();
        assert.match(page.url(), /\/\?project=/);
      },
    });
    task('goes from failure to failure', {
      keyboard: async () => {
        await at(`/c/${sample.failing}`, '.turn');
        await until(page, () => document.querySelector('.map'));
        await keys('e');
        await page.waitForURL(/[?&]m=/);
        await page.locator('.step .del', { hasText: 'failed' }).first().waitFor();
      },
    });
    task('finds what made a conversation grow', {
      pointer: async () => {
        await conversation();
        await page.locator('.ntabs').getByText('Marks').click();
        await page.locator('.nmark', { hasText: 'Question 3 about' }).first().waitFor();
        await page.locator('.nmark', { hasText: 'retry' }).click();
        await inView('Answer 2:');
      },
    });
    task('sees sizes, and what archive would free', {
      pointer: async () => { await at('/health', '.finding'); await seen('Message files', '.room'); await seen('ctxtool archive --all', '.room'); },
    });
    task('sees what a model would get', {
      pointer: async () => { await conversation(); await click('link', 'Assemble'); await page.locator('.item').first().waitFor(); await seen(/of 4,000 tokens/); },
      keyboard: async () => { await conversation(); await keys('a'); await page.locator('.item').first().waitFor(); await seen(/of 4,000 tokens/); },
    });
    const raw = () => page.locator('.raw pre', { hasText: '"role"' }).first().waitFor();
    task('sees a record byte for byte', {
      pointer: async () => { await conversation(); await click('link', 'Everything'); await page.getByRole('button', { name: 'Raw', exact: true }).last().click(); await raw(); },
      keyboard: async () => { await conversation(); await keys('3'); await page.locator('.raw button').first().waitFor(); await tabTo('.raw button'); await keys('Enter'); await raw(); },
    });
  });
});
