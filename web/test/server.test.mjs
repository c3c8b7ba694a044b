// The page of ctxserver: what others share, and the way in for somebody with an invitation.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { launch, show, skip, until, windowOf } from './browser.mjs';
import { folder, repository } from './store.mjs';

const port = 17434;
// Large enough to be a blob: what follows the end of a picture counts for nothing.
const square = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
const picture = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: Buffer.concat([square, Buffer.alloc(1 << 16, 7)]).toString('base64') } };

/** A running ctxserver. */
class TeamServer {
  constructor() {
    this.dir = folder('team');
    this.command = process.env.CTXSERVER ?? path.join(folder('bin'), 'ctxserver');
    if (!process.env.CTXSERVER) {
      execFileSync('go', ['build', '-trimpath', '-o', this.command, './cmd/ctxserver'], { cwd: path.join(repository, 'server'), stdio: ['ignore', 'inherit', 'inherit'] });
    }
    this.origin = `http://127.0.0.1:${port}`;
    this.token = '';
  }

  /** Runs a verb. */
  run(...args) {
    return execFileSync(this.command, ['--dir', this.dir, '--listen', `127.0.0.1:${port}`, ...args], { encoding: 'utf8', env: { PATH: process.env.PATH } }).trim();
  }

  async start() {
    this.child = spawn(this.command, ['--dir', this.dir, '--listen', `127.0.0.1:${port}`, '--json', '--audit', 'none'], { env: { PATH: process.env.PATH }, stdio: ['ignore', 'pipe', 'inherit'] });
    process.on('exit', () => this.child.kill('SIGKILL'));
    await new Promise((resolve, reject) => {
      this.child.stdout.once('data', resolve);
      this.child.once('exit', (code) => reject(new Error(`ctxserver ended with ${code}`)));
    });
  }

  async end() {
    const ended = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill('SIGINT');
    await ended;
  }

  at(screen) {
    return this.origin + screen + '#token=' + this.token;
  }

  async post(token, where, body) {
    const answer = await fetch(this.origin + '/v1' + where, {
      method: 'POST', body: JSON.stringify(body), headers: { Authorization: 'Bearer ' + token, 'Content-Type': 'application/json' },
    });
    assert.ok(answer.ok, `${where}: ${answer.status}`);
    return (await answer.text()).split('\n')[0];
  }

  async make(token, title, project, ...said) {
    const { id } = JSON.parse(await this.post(token, '/contexts', { title, labels: { project } }));
    for (const content of said) await this.post(token, `/contexts/${id}/branches/main/messages`, { role: 'user', content });
    return id;
  }
}

describe('a server for a team', { skip }, () => {
  let browser, server, ada, bob, harbour;
  before(async () => {
    server = new TeamServer();
    for (const name of ['ada', 'bob']) server.run('user', 'add', name);
    [ada, bob] = ['ada', 'bob'].map((name) => server.run('user', 'token', name));
    await server.start();
    harbour = await server.make(ada, 'Harbour plan', '/home/ada/harbour', 'Which berths are free on Monday?', [picture]);
    await server.make(ada, 'CANARY', '/home/ada/secret', 'CANARY');
    await server.make(bob, 'Notes of bob', '/home/bob/notes', 'What is a berth?');
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    await server?.end();
  });

  test('what another user shares stands in the Library with the name, and is read-only', async () => {
    server.run('user', 'share', 'ada', '--project', '/home/ada/harbour', '--with', 'bob');
    server.token = bob;
    const window = await windowOf(browser);
    const page = await show(window, server, { path: '/', ready: 'a.row' });
    const row = page.locator('a.row', { hasText: 'Harbour plan' });
    await row.waitFor();
    assert.match(await row.innerText(), /ada · harbour/);
    await page.locator('.grp', { hasText: 'Shared by ada' }).first().waitFor();
    assert.ok(await page.locator('a.row, a.liverow', { hasText: 'Notes of bob' }).count());
    assert.ok(!(await page.content()).includes('CANARY'));
    if (process.env.SHOTS) await page.screenshot({ path: path.join(process.env.SHOTS, 'share-library.png') });

    await row.click();
    await page.locator('.turn', { hasText: 'Which berths are free on Monday?' }).waitFor();
    assert.equal(new URL(page.url()).pathname, '/shared/ada/c/' + harbour);
    await page.locator('.shot img').waitFor();
    await page.locator('.strip', { hasText: 'These are conversations of ada' }).waitFor();
    await page.locator('.foot', { hasText: 'Read-only' }).waitFor();
    await page.locator('.views').waitFor();
    await page.getByRole('button', { name: 'More' }).click();
    assert.equal(await page.getByRole('menuitem', { name: /trash|label|rename/i }).count(), 0);
    await page.keyboard.press('Escape');
    if (process.env.SHOTS) await page.screenshot({ path: path.join(process.env.SHOTS, 'share-conversation.png') });

    await page.getByRole('link', { name: 'Search' }).first().click();
    await page.locator('.field input').fill('berths');
    await page.locator('.hit').first().waitFor();
    assert.equal(new URL(page.url()).pathname, '/shared/ada/search');
    await page.getByRole('link', { name: 'Go to yours' }).click();
    await page.locator('a.row, a.liverow', { hasText: 'Notes of bob' }).waitFor();
    assert.equal(new URL(page.url()).pathname, '/');
    assert.deepEqual(page.faults, []);

    server.run('user', 'unshare', 'ada', '--project', '/home/ada/harbour', '--with', 'bob');
    await page.reload();
    await page.locator('a.row, a.liverow', { hasText: 'Notes of bob' }).waitFor();
    await until(page, () => !document.querySelector('[aria-busy=true]'));
    assert.equal(await page.locator('a.row', { hasText: 'Harbour plan' }).count(), 0);
    await window.close();
  });

  test('an invitation makes a user, once', async () => {
    const link = server.run('user', 'invite');
    assert.ok(link.startsWith(server.origin + '/#invite='), link);
    const window = await windowOf(browser);
    const page = await window.newPage();
    await page.goto(link);
    await page.getByLabel(/Choose a name/).fill('ada');
    await page.getByRole('button', { name: 'Join' }).click();
    await page.getByRole('alert').filter({ hasText: 'the name is taken' }).waitFor();
    await page.getByLabel(/Choose a name/).fill('cleo');
    await page.getByRole('button', { name: 'Join' }).click();
    const token = await page.getByLabel(/This is your token/).inputValue();
    assert.match(token, /^[\w-]{64}$/);
    assert.equal(new URL(page.url()).hash, '');
    if (process.env.SHOTS) await page.screenshot({ path: path.join(process.env.SHOTS, 'share-join.png') });
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('The store has no conversation yet').waitFor();
    await server.make(token, 'Of cleo', '/x', 'hello');
    await page.locator('a.row', { hasText: 'Of cleo' }).or(page.locator('a.liverow', { hasText: 'Of cleo' })).first().waitFor();

    const again = await window.newPage();
    await again.goto(link);
    await again.getByLabel(/Choose a name/).fill('dan');
    await again.getByRole('button', { name: 'Join' }).click();
    await again.getByRole('alert').filter({ hasText: 'unknown, used or expired' }).waitFor();
    await window.close();
  });
});
