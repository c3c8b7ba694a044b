// Conversations as agents record them, for the tests of the page.
export const second = 1000;
export const minute = 60 * second;
export const day = 24 * 60 * minute;

export const project = '/home/ada/tide';
const labels = { tool: 'claude-code', project };
export const model = 'claude-sonnet-4-5';

export const prompt = (at, text) => ({ at, role: 'user', content: text });
export const answer = (at, text) => ({ at, role: 'assistant', model, content: [{ type: 'text', text }], usage: { input_tokens: 1200, output_tokens: 90 } });
export const thought = (at, thinking) => ({ at, role: 'assistant', model, content: [{ type: 'thinking', thinking }] });
export const call = (at, id, name, input) => ({ at, role: 'assistant', model, content: [{ type: 'tool_use', id, name, input }] });
export const result = (at, id, content, failed = false) => ({
  at, role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content, ...(failed && { is_error: true }) }],
});

const square = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const markdown = `The buffer is bounded now.

## What changed
| file | lines |
| --- | --- |
| \`ring.go\` | 12 |
| \`a/rather/long/path/to/a/file/that/does/not/fit/into/a/phone.go\` | 3 |

1. It *drops* the oldest.
2. See [the notes](https://example.org/notes) and <https://example.org>.

- [x] done
- [ ] not yet

\`\`\`go
func (r *ring) push(v int) { r.all[r.next%len(r.all)] = v; r.next++ } // a long line of code that does not fit into a phone
\`\`\`

> It was unbounded.
`;

/** A turn with every kind of step. */
function work(at) {
  const all = [
    { at, role: 'user', content: [
      { type: 'text', text: 'Make the buffer bounded, as in the drawing.' },
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: square } },
    ] },
    thought(at + 2 * second, 'The buffer grows without end. A ring would do.'),
  ];
  for (let i = 0; i < 8; i++) {
    all.push(call(at + 3 * second, `read${i}`, 'Read', { file_path: `${project}/file${i}.go` }), result(at + 4 * second, `read${i}`, `package tide ${i}\n`));
  }
  all.push(
    thought(at + 5 * second, 'Now the change.'),
    call(at + 6 * second, 'edit', 'Edit', { file_path: `${project}/ring.go`, old_string: 'var all []int\n', new_string: 'var all [64]int\nvar next int\n' }),
    result(at + 7 * second, 'edit', 'The file was changed.'),
    call(at + 8 * second, 'write', 'Write', { file_path: `${project}/ring_test.go`, content: 'package tide\n\nfunc TestRing() {}\n' }),
    result(at + 9 * second, 'write', 'The file was written.'),
    call(at + 10 * second, 'grep', 'Grep', { pattern: 'unbounded', path: project }),
    result(at + 11 * second, 'grep', 'ring.go:1: // unbounded'),
    call(at + 12 * second, 'todo', 'TodoWrite', { todos: [{ content: 'Bound it', status: 'completed' }, { content: 'Test it', status: 'in_progress' }] }),
    result(at + 13 * second, 'todo', 'ok'),
    call(at + 14 * second, 'fetch', 'WebFetch', { url: 'https://example.org/rings', prompt: 'How do rings work?' }),
    result(at + 15 * second, 'fetch', 'They go round.'),
    call(at + 16 * second, 'agent', 'Task', { description: 'Review', prompt: 'Review the ring.' }),
    result(at + 17 * second, 'agent', 'It is good.'),
    call(at + 18 * second, 'other', 'mcp__sea__depth', { where: 'Dover' }),
    result(at + 19 * second, 'other', 'no such sea', true),
    call(at + 20 * second, 'test', 'Bash', { command: 'go test ./...' }),
    result(at + 22 * second, 'test', '\u001b[31m--- FAIL: TestRing\u001b[0m\nexit status 1', true),
    call(at + 23 * second, 'test2', 'Bash', { command: 'go test ./...' }),
    result(at + 25 * second, 'test2', 'ok  \ttide\t0.012s\n'),
    answer(at + 26 * second, markdown),
  );
  return all;
}

/** Turns of a prompt and an answer. */
export function talk(from, turns, at) {
  const all = [];
  for (let i = 0; i < turns; i++) {
    all.push(prompt(at + i * minute, `Question ${from + i} about the lighthouse`),
      answer(at + i * minute + 20 * second, `Answer ${from + i}: the lighthouse stands.\n\nIt has a lamp, and a keeper who minds the lamp.`));
  }
  return all;
}

/** A store with what people meet: agents at work, old conversations, branches, histories of other tools. */
export function fill(store) {
  const now = Date.now();
  const noon = Math.floor(now / day) * day - day / 2; // of yesterday: what is old is of one day at any hour
  store.importFixtures('claude-code', 'codex', 'gemini', 'copilot', 'opencode', 'pi');
  const of = (title) => store.create({ title, labels, model });

  const bounded = of('Make the buffer bounded');
  const ids = store.append(bounded, [...talk(1, 6, noon - 20 * minute), ...work(noon)]);
  store.run('branch', 'fork', bounded, 'retry', '--at', '4');
  store.append(bounded, talk(100, 2, noon + 5 * minute), 'retry');

  const failing = of('Repair the harbour lamp');
  store.append(failing, [
    prompt(now - 40 * second, 'Repair the lamp'), call(now - 30 * second, 'a', 'Bash', { command: 'make lamp' }),
    result(now - 20 * second, 'a', 'make: *** No rule to make target', true),
  ]);
  const working = of('Count the waves');
  store.append(working, [prompt(now - 30 * second, 'Count the waves'), call(now - 12 * second, 'b', 'Bash', { command: 'count --all waves' })]);
  const waiting = of('Paint the pier');
  store.append(waiting, [prompt(now - 10 * minute, 'Paint the pier'), answer(now - 9 * minute, 'Which colour should the pier have?')]);
  const empty = of('A conversation without messages');
  store.run('index');
  const imported = store.run('--json', 'ls').split('\n').map((line) => JSON.parse(line)).find((c) => c.tool === 'codex').id;
  return { bounded, failing, working, waiting, empty, imported, message: ids[5], branch: 'retry', file: `${project}/ring.go`, word: 'lighthouse' };
}
