// A store for pictures of the page: invented conversations of some days, as agents record them.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { folder } from '../test/store.mjs';
import { answer, call, day, minute, prompt, result, second, thought } from '../test/sessions.mjs';

const home = '/home/ada/';
const models = { 'claude-code': 'claude-sonnet-4-5', codex: 'gpt-5.1-codex', opencode: 'claude-opus-4-5', 'gemini-cli': 'gemini-2.5-pro', pi: 'claude-haiku-4-5' };

/** A message of a model with the tokens that it took. */
const spent = (message, tool, input, cached, output) => ({
  ...message, model: models[tool], usage: { input_tokens: input, cache_read_input_tokens: cached, cache_creation_input_tokens: Math.round(input / 3), output_tokens: output },
});

const before = `type buffer struct {
	all []Reading
}

func (b *buffer) push(r Reading) {
	b.all = append(b.all, r)
}
`;
const after = `// buffer keeps the newest readings.
type buffer struct {
	all  [size]Reading
	next int // where the next reading goes
}

func (b *buffer) push(r Reading) {
	b.all[b.next%size] = r
	b.next++
}
`;

/** The conversation that most pictures show. */
function gauge(at, tool = 'claude-code') {
  const dir = home + 'tide/';
  const say = (t, text, input, cached, output) => spent(answer(at + t, text), tool, input, cached, output);
  const step = (t, id, name, input, out, bad) => [call(at + t, id, name, input), result(at + t + second, id, out, bad)];
  return [
    prompt(at, 'The tide gauge loses readings when the network is down for more than an hour. Find out why.'),
    thought(at + 3 * second, 'Readings go into a buffer until the sender takes them. Either the buffer drops some, or the sender does not try again.'),
    ...step(6 * second, 'a1', 'Grep', { pattern: 'buffer', path: dir }, 'buffer.go:3: type buffer struct\nsend.go:18: s.buffer.drain()\ngauge.go:41: g.buffer.push(r)'),
    ...step(9 * second, 'a2', 'Read', { file_path: dir + 'buffer.go' }, before),
    ...step(12 * second, 'a3', 'Read', { file_path: dir + 'send.go' }, 'func (s *sender) run() {\n\tfor range s.ticks {\n\t\tif err := s.post(s.buffer.drain()); err != nil {\n\t\t\tlog.Print(err)\n\t\t}\n\t}\n}\n'),
    say(31 * second, 'The sender takes all readings out of the buffer **before** it posts them. If the post fails, they are gone:\n\n```go\nif err := s.post(s.buffer.drain()); err != nil {\n\tlog.Print(err) // the readings were only here\n}\n```\n\nIn the first hour the kernel queues the connection, so nothing fails. After that each post does.', 4200, 11_800, 410),

    prompt(at + 4 * minute, 'Then keep them until they are sent, and make the buffer bounded: the newest readings count.'),
    ...step(4 * minute + 8 * second, 'b1', 'TodoWrite', { todos: [{ content: 'Bound the buffer', status: 'in_progress' }, { content: 'Drop readings only when they are sent', status: 'pending' }, { content: 'Test both', status: 'pending' }] }, 'ok'),
    ...step(4 * minute + 20 * second, 'b2', 'Edit', { file_path: dir + 'buffer.go', old_string: before, new_string: after }, 'The file was changed.'),
    ...step(4 * minute + 44 * second, 'b3', 'Bash', { command: 'go test ./...' }, '\u001b[31m--- FAIL: TestSender\u001b[0m (0.00s)\n    send_test.go:27: 40 readings, want 64\nFAIL\nFAIL\ttide\t0.014s\nexit status 1', true),
    ...step(5 * minute + 2 * second, 'b4', 'Edit', { file_path: dir + 'send.go', old_string: '\t\tif err := s.post(s.buffer.drain()); err != nil {\n\t\t\tlog.Print(err)\n\t\t}\n', new_string: '\t\treadings := s.buffer.newest()\n\t\tif err := s.post(readings); err != nil {\n\t\t\tlog.Print(err)\n\t\t\tcontinue\n\t\t}\n\t\ts.buffer.drop(len(readings))\n' }, 'The file was changed.'),
    ...step(5 * minute + 20 * second, 'b5', 'Bash', { command: 'go test ./...' }, 'ok  \ttide\t0.012s\n'),
    say(5 * minute + 41 * second, 'The buffer holds 64 readings, and a new one takes the place of the oldest. The sender drops readings only once the server has them.\n\n| while the network is down | before | now |\n| --- | --- | --- |\n| first hour | kept | kept |\n| after that | lost | the newest 64 are kept |', 5900, 21_400, 720),

    prompt(at + 12 * minute, 'Write a test that fills it twice while the sender runs.'),
    ...step(12 * minute + 10 * second, 'c1', 'Write', { file_path: dir + 'buffer_test.go', content: 'package tide\n\nimport "testing"\n\n// TestFillTwice fills the buffer twice while the sender takes from it.\nfunc TestFillTwice(t *testing.T) {\n\tb := &buffer{}\n\tfor i := range 2 * size {\n\t\tb.push(Reading{Level: i})\n\t}\n\tif got := b.newest(); got[0].Level != size {\n\t\tt.Errorf("the oldest is %d, want %d", got[0].Level, size)\n\t}\n}\n' }, 'The file was written.'),
    ...step(12 * minute + 31 * second, 'c2', 'Bash', { command: 'go test -race ./...' }, 'ok  \ttide\t1.204s\n'),
    say(12 * minute + 44 * second, '`TestFillTwice` passes, also with the race detector. It fails with the old buffer: the oldest reading is 0 there.', 3100, 27_900, 260),
  ];
}

const others = [
  ['Draw the flood warning for phones', 'ledger', 'codex', 0.12, 5],
  ['Why does the migration lock the table?', 'ledger', 'claude-code', 0.4, 9],
  ['Read the sensor without a driver', 'lamp', 'opencode', 0.9, 4],
  ['Replace the date picker', 'ledger', 'claude-code', 1.2, 12],
  ['Speed up the import of old logs', 'tide', 'codex', 1.5, 7],
  ['Explain the checksum of the frame', 'lamp', 'gemini-cli', 1.8, 3],
  ['Let the lamp dim at dawn', 'lamp', 'pi', 2.3, 6],
  ['Move the station list into a file', 'tide', 'claude-code', 2.6, 8],
  ['Compare tide tables of two harbours', 'tide', 'opencode', 3.1, 5],
  ['A smaller image for the gauge', 'tide', 'claude-code', 3.4, 10],
  ['Sort invoices by the day they were paid', 'ledger', 'codex', 4.2, 6],
  ['Write the release notes', 'ledger', 'claude-code', 4.7, 2],
];

/** Turns of an everyday conversation: a prompt, a look at a file, a change, an answer. */
function everyday(title, project, tool, at, turns) {
  const all = [];
  for (let i = 0; i < turns; i++) {
    const t = at + i * 6 * minute;
    const file = `${home}${project}/${['main', 'store', 'view', 'parse'][i % 4]}.go`;
    all.push(
      prompt(t, i === 0 ? `${title}.` : ['And the tests?', 'Do it for the second case, too.', 'Explain that in one sentence.', 'Now without the copy.'][i % 4]),
      call(t + 5 * second, `r${i}`, 'Read', { file_path: file }), result(t + 6 * second, `r${i}`, 'package main\n\nfunc run() error {\n\treturn nil\n}\n'),
      call(t + 15 * second, `e${i}`, 'Edit', { file_path: file, old_string: 'return nil', new_string: `return step${i}()` }), result(t + 16 * second, `e${i}`, 'The file was changed.'),
      spent(answer(t + 30 * second, ['Done: the view reads the list once, and sorts it in place.', 'The tests pass. One of them waited for the clock; it does not any more.', 'It was the index: the query now uses it, and takes 3 ms.', 'That works without the copy, since nobody else keeps the slice.'][i % 4]),
        tool, 1500 + 700 * i, 6000 + 5200 * i, 180 + 40 * i),
    );
  }
  return all;
}

/** Adds conversations of earlier days. They are imported, so that they have the times of their messages. */
function older(store, now) {
  const uuid = (n) => `a0000000-0000-4000-8000-${n.toString(16).padStart(12, '0')}`;
  for (const [n, [title, project, tool, days, turns]] of others.entries()) {
    const dir = path.join(folder('histories'), String(n));
    mkdirSync(dir, { recursive: true });
    const all = everyday(title, project, tool, now - days * day, turns).map(({ at, ...message }, i) => JSON.stringify({
      type: message.role, uuid: uuid((n + 1) * 4096 + i), parentUuid: i ? uuid((n + 1) * 4096 + i - 1) : null, sessionId: uuid(n + 1),
      timestamp: new Date(at).toISOString(), cwd: home + project, message,
    }));
    writeFileSync(path.join(dir, 'session.jsonl'), all.join('\n') + '\n');
    const done = JSON.parse(store.run('--json', '--quiet', 'import', dir).split('\n')[0]);
    store.run('meta', done.context, '--title', title, '--label', `tool=${tool}`);
  }
}

/** Fills a store, and returns the addresses of the pictures. */
export function fill(store, now = Date.now()) {
  const of = (title, project, tool) => store.create({ title, labels: { tool, project: home + project }, model: models[tool] });
  older(store, now);
  const id = of('Keep readings while the network is down', 'tide', 'claude-code');
  const at = now - 26 * minute;
  const all = gauge(at);
  store.append(id, all);
  const fork = (name, position) => store.run('branch', 'fork', id, name, '--at', String(position));
  const second2 = all.findIndex((m) => typeof m.content === 'string' && m.content.startsWith('Then keep them'));
  fork('on-disk', second2);
  store.append(id, [
    prompt(at + 7 * minute, 'Then keep them on the disk until they are sent.'),
    call(at + 7 * minute + 9 * second, 'd1', 'Edit', { file_path: home + 'tide/buffer.go', old_string: before, new_string: '// buffer is a file with a reading a line.\ntype buffer struct {\n\tfile *os.File\n}\n\nfunc (b *buffer) push(r Reading) error {\n\t_, err := fmt.Fprintln(b.file, r.Time.Unix(), r.Level)\n\treturn err\n}\n' }),
    result(at + 7 * minute + 10 * second, 'd1', 'The file was changed.'),
    spent(answer(at + 7 * minute + 32 * second, 'Readings are lines of a file now, and survive a restart. The gauge writes to flash once a minute, which wears it out in about four years.'), 'claude-code', 4800, 17_000, 310),
  ], 'on-disk');
  fork('smaller', all.length - 6);
  store.append(id, [
    prompt(at + 14 * minute, 'Would 16 readings do?'),
    spent(answer(at + 14 * minute + 15 * second, 'For a gauge that measures every four minutes, 16 readings are an hour: not enough for the outages of last winter.'), 'claude-code', 2100, 24_000, 140),
  ], 'smaller');

  const works = of('Calibrate the gauge at low water', 'tide', 'codex');
  store.append(works, [...everyday('Calibrate the gauge', 'tide', 'codex', now - 20 * minute, 2), prompt(now - 40 * second, 'Run it against last year.'),
    call(now - 20 * second, 'w', 'Bash', { command: 'go run ./cmd/replay --year 2025' })]);
  const waits = of('Which colours for the warning levels?', 'ledger', 'claude-code');
  store.append(waits, [prompt(now - 9 * minute, 'Which colours for the warning levels?'),
    spent(answer(now - 8 * minute, 'Four levels, readable without colour as well. Shall I use the ones of the weather service, or those of your charts?'), 'claude-code', 1900, 8000, 220)]);
  store.run('index');
  return {
    library: ['/', 'a.row'],
    conversation: [`/c/${id}?p=${second2}`, '.diff'],
    branches: [`/c/${id}/branches`, '[role=treeitem]'],
    compare: [`/c/${id}/compare?l=main&r=on-disk`, '.turn'],
    search: ['/search?q=network+down+readings', '.hit'],
    usage: ['/usage', '.tab'],
  };
}
