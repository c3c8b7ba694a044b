import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { lines } from './api';
import { link } from './route';
import { count, counted, T } from './text';

interface Finding {
  record: 'finding';
  context?: string;
  kind: string;
  severity: 'error' | 'warning' | 'info';
  path?: string;
  id?: string;
  detail: string;
  repairable: boolean;
}

interface Summary {
  record: 'summary';
  contexts: number;
  messages: number;
  findings: number;
}

/** What check finds in the store. The page repairs nothing. */
export function Health(_: { parts: string[] }) {
  const findings = useSignal<Finding[]>([]);
  const summary = useSignal<Summary | undefined>(undefined);
  const running = useSignal(false);
  const failed = useSignal('');
  const abort = useRef<AbortController>(undefined);
  const run = async () => {
    abort.current?.abort();
    const mine = new AbortController();
    abort.current = mine;
    running.value = true;
    failed.value = '';
    findings.value = [];
    summary.value = undefined;
    try {
      for (const l of await lines<Finding | Summary>('/check', {}, mine.signal)) {
        if (l.record === 'finding') findings.value = [...findings.value, l];
        else if (l.record === 'summary') summary.value = l;
      }
    } catch (e) {
      if (!mine.signal.aborted) failed.value = e instanceof Error ? e.message : String(e);
    }
    running.value = false;
  };
  useEffect(() => {
    void run();
    return () => abort.current?.abort();
  }, []);
  const s = summary.value;
  return (
    <div class="col">
      <header class="bar">
        <h1>Health</h1>
        <span class="t3 s num">{s && `${counted(s.messages, 'message')} of ${counted(s.contexts, 'context')} checked`}</span>
        <span class="sp" />
        {running.value ? <button class="btn" onClick={() => abort.current?.abort()}>Stop</button> : <button class="btn" onClick={() => void run()}>Check again</button>}
      </header>
      <div class="scroll" tabIndex={0} aria-label="Findings" aria-busy={running.value}>
        {failed.value && <p class="gap bad pad" role="alert"><T s={failed.value} /></p>}
        {running.value && findings.value.length === 0 && <p class="t3 pad" role="status">Checking every context…</p>}
        {s && s.findings === 0 && <div class="empty"><p>{count(s.messages)} messages checked, nothing found.</p></div>}
        {findings.value.map((f, i) => (
          <div key={i} class="finding">
            <span class={'chip ' + (f.severity === 'error' ? 'red' : 'warn')}><T s={f.kind} /></span>
            <div class="two">
              <T s={f.detail} />
              <span class="s t3">
                {f.context && <a class="link" href={link(['c', f.context], { m: f.id })}>{f.context.slice(0, 8)}</a>} <T class="mono" s={f.path} />
              </span>
            </div>
            <code>{f.context && /^[0-9a-f-]+$/.test(f.context) ? `ctxtool repair ${f.context.slice(0, 8)}` : 'ctxtool repair'}</code>
          </div>
        ))}
      </div>
    </div>
  );
}
