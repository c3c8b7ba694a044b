// What a model would get of a conversation: the answer of POST /v1/assemble.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { post } from './api';
import { Icon } from './icons';
import { changed, go, link, query } from './route';
import { Switch } from './shell';
import { count, counted, T, visible } from './text';

interface Item {
  kind: string;
  context?: string;
  branch: string;
  position?: number;
  id?: string;
  tokens: number;
  text: string;
  why?: string;
}

interface LeftOut {
  kind: string;
  items: number;
  reason: string;
}

interface Assembly {
  text: string;
  items: Item[];
  left_out?: LeftOut[];
  tokens: number;
  max_tokens: number;
  tokenizer: string;
  behind: number;
}

const budgets = [1000, 4000, 16_000, 64_000, 200_000];
const pause = 300; // ms without a key, before it asks

export function Assemble({ parts }: { parts: string[] }) {
  const id = parts[1] ?? '';
  const q = query.value;
  const [question, max, format, all, branch] = [q.get('q') ?? '', Number(q.get('max') ?? 4000), q.get('format') ?? 'text', q.get('all') === '1', q.get('b') ?? ''];
  const got = useSignal<Assembly | undefined>(undefined);
  const busy = useSignal(true);
  const failed = useSignal('');
  useEffect(() => {
    const abort = new AbortController();
    busy.value = true;
    const timer = setTimeout(() => {
      post<Assembly>('/assemble', { context: id, ...(branch && { branch }), query: question, max_tokens: max, all, format, explain: true }, abort.signal).then((a) => {
        got.value = a;
        failed.value = '';
        busy.value = false;
      }, (e: unknown) => {
        if (abort.signal.aborted) return;
        failed.value = e instanceof Error ? e.message : String(e);
        busy.value = false;
      });
    }, got.value ? pause : 0);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [id, branch, question, max, format, all]);
  const a = got.value;
  return (
    <>
      <header class="bar">
        <a class="ghost" href={link(['c', id], { b: branch })} aria-label="Back to the conversation"><Icon name="back" /></a>
        <h1>Assemble</h1>
        <label class="field framed">
          <Icon name="search" />
          <span class="vh">Question</span>
          <input type="search" value={question} spellcheck={false} placeholder="A question for the model" onInput={(e) => go(changed({ q: e.currentTarget.value }), true)} />
        </label>
        <button class="btn" disabled={!a} onClick={() => void navigator.clipboard?.writeText(a?.text ?? '')}>Copy</button>
      </header>
      <div class="facts wrap">
        <label class="pick">
          Budget
          <select value={String(max)} onChange={(e) => go(changed({ max: e.currentTarget.value }), true)}>
            {budgets.map((n) => <option value={String(n)}>{count(n)} tokens</option>)}
          </select>
        </label>
        <span class="seg" role="group" aria-label="Passages of">
          <Switch name="all" value="" now={all ? '1' : ''}>This conversation</Switch>
          <Switch name="all" value="1" now={all ? '1' : ''}>All</Switch>
        </span>
        <span class="seg" role="group" aria-label="Format">
          <Switch name="format" value="text" now={format}>Text</Switch>
          <Switch name="format" value="openai" now={format}>OpenAI</Switch>
          <Switch name="format" value="anthropic" now={format}>Anthropic</Switch>
        </span>
        {a && <span class="num">{count(a.tokens)} of {count(a.max_tokens)} tokens, counted by {a.tokenizer}</span>}
      </div>
      {failed.value && <p class="gap bad pad" role="alert"><T s={failed.value} /></p>}
      <div class={busy.value ? 'scroll dim' : 'scroll'} tabIndex={0} aria-label="Items" aria-busy={busy.value}>
        {a && <Budget a={a} />}
        {a && format !== 'text' && <pre class="out whole">{visible(a.text.slice(0, 100_000))}</pre>}
        {a && format === 'text' && a.items.map((item, i) => <ItemView key={i} item={item} id={id} />)}
        {a && a.items.length === 0 && <div class="empty"><p>Nothing fits into this budget</p></div>}
        {a?.left_out && a.left_out.length > 0 && (
          <section class="left">
            <h2>{counted(a.left_out.reduce((n, l) => n + l.items, 0), 'item')} left out</h2>
            <ul>{a.left_out.map((l) => <li><span class="chip"><T s={l.kind} /></span> <span class="num">{count(l.items)}</span> <T class="t2" s={l.reason} /></li>)}</ul>
          </section>
        )}
        <p class="t3 s pad">Nothing leaves this machine.</p>
      </div>
    </>
  );
}

/** The budget by kind. */
function Budget({ a }: { a: Assembly }) {
  const kinds = new Map<string, number>();
  for (const i of a.items) kinds.set(i.kind, (kinds.get(i.kind) ?? 0) + i.tokens);
  let x = 0;
  return (
    <figure class="budget">
      <svg viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" aria-label={`${a.tokens} of ${a.max_tokens} tokens`}>
        <rect class="room" width="1000" height="10" />
        {[...kinds.values()].map((n, i) => {
          const from = x;
          x += (n / Math.max(1, a.max_tokens)) * 1000;
          return <rect class={'kind r' + ((i % 7) + 1)} x={from} width={Math.max(2, x - from - 2)} height="10" />;
        })}
      </svg>
      <figcaption>{[...kinds].map(([kind, n], i) => <span><i class={'dot r' + ((i % 7) + 1)} /> <T s={kind} /> <span class="num t3">{count(n)}</span></span>)}</figcaption>
    </figure>
  );
}

function ItemView({ item, id }: { item: Item; id: string }) {
  return (
    <article class="item">
      <header>
        <span class="chip"><T s={item.kind} /></span>
        <T class="t3 s ell" s={item.why} />
        <span class="sp" />
        <span class="t3 s num">{counted(item.tokens, 'token')}</span>
        {item.id && <a class="link" href={link(['c', item.context ?? id], { b: item.branch, m: item.id })}>Open</a>}
      </header>
      <div class="said" dir="auto">{visible(item.text.length > 4000 ? item.text.slice(0, 4000) + ' …' : item.text)}</div>
    </article>
  );
}
