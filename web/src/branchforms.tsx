// What a change of a branch needs to know: a name, or a turn.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { get, type Branch, type Turn, type Turns } from './api';
import { pathOf } from './branchdata';
import type { Act, Doing, Run } from './inspector';
import { count, counted, T, timeOf } from './text';
import type { Node } from './tree';

export function Form({ act, context, n, b, doing, busy, run }: {
  act: Act; context: string; n: Node; b: Branch; doing: Doing; busy: boolean; run: Run;
}) {
  const name = useSignal(act === 'rename' ? b.name : act === 'fork' ? suggested(b.name) : '');
  const turn = useSignal<Turn | undefined>(undefined);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    const field = form.current?.querySelector<HTMLElement>('input, button');
    field?.focus();
    if (field instanceof HTMLInputElement) field.select();
  }, []);
  const t = turn.value;
  const lost = t ? b.messages - t.to : 0;
  const ready = {
    remove: true, rename: name.value !== '' && name.value !== b.name, fork: !!t && name.value !== '', rewind: lost > 0,
  }[act];
  const submit = (e: Event) => {
    e.preventDefault();
    if (!ready || busy) return;
    void run(() => (act === 'rename' ? doing.rename(b, name.value) : act === 'remove' ? doing.remove(b)
      : act === 'fork' ? doing.fork(b, name.value, t?.to ?? b.messages) : doing.rewind(b, t?.to ?? b.messages)));
  };
  const words = { fork: 'Fork', rename: 'Rename', rewind: 'Rewind', remove: 'Move to the trash' };
  return (
    <form class="iform" ref={form} onSubmit={submit} onKeyDown={(e) => { if (e.key === 'Escape') doing.show(undefined); }}>
      <h3>{{ fork: 'Fork from a turn', rename: 'Rename', rewind: 'Rewind to a turn', remove: 'Move to the trash' }[act]}</h3>
      {(act === 'rename' || act === 'fork') && (
        <label class="ifield">Name
          <input value={name.value} spellcheck={false} autocomplete="off" onInput={(e) => { name.value = e.currentTarget.value; }} />
        </label>
      )}
      {(act === 'fork' || act === 'rewind') && (
        <PickTurn path={pathOf(context, b.name)} b={b} act={act} turn={t} pick={(p) => { turn.value = p; }} />
      )}
      <p class="s t2">{effect(act, n, b, t)}</p>
      <div class="ibtns">
        <button class={act === 'remove' || act === 'rewind' ? 'btn danger' : 'btn pri'} disabled={!ready || busy}>{words[act]}</button>
        <button class="btn" type="button" onClick={() => doing.show(undefined)}>Cancel</button>
      </div>
    </form>
  );
}

/** What an action changes. */
function effect(act: Act, n: Node, b: Branch, t: Turn | undefined): string {
  switch (act) {
    case 'rename':
      return 'Its messages and its forks stay as they are.';
    case 'remove':
      if (n.own === 0) return 'It has no messages of its own, so no message moves.';
      return `The trash keeps its ${counted(n.own, 'own message')}, except those that other branches show.`;
    case 'fork':
      if (!t) return 'Choose the last turn that the new branch shows.';
      return `The new branch begins with ${counted(t.to, 'message')}, through turn ${count(t.number)}. `
        + `Nothing is copied, and ${b.active ? 'this branch' : 'the active branch'} stays active.`;
    case 'rewind':
      if (!t) return 'Choose the last turn that stays.';
      return `${counted(t.to, 'message')} stay. The ${counted(b.messages - t.to, 'message')} after turn ${count(t.number)} go, `
        + 'and the trash keeps those that no other branch shows.';
  }
}

const suggested = (name: string): string => (/^(.*)-(\d+)$/.test(name) ? name.replace(/\d+$/, (d) => String(Number(d) + 1)) : name + '-2');

const page = 60;

/** The turns of a branch, the newest first, to choose one. */
function PickTurn({ path, b, act, turn, pick }: { path: string; b: Branch; act: Act; turn: Turn | undefined; pick: (t: Turn) => void }) {
  const turns = useSignal<Turn[]>([]);
  const filter = useSignal('');
  const ended = useSignal(false);
  const load = async (abort: AbortSignal | undefined, more: boolean) => {
    const least = turns.value.at(-1)?.number ?? 0;
    const earlier = { from: Math.max(0, least - page), limit: Math.min(page, least) };
    const q = filter.value ? { q: filter.value, limit: page } : more ? earlier : { limit: page };
    const got = (await get<Turns>(path + '/turns', q, abort)).turns.toReversed();
    turns.value = more ? [...turns.value, ...got] : got;
    ended.value = !!filter.value || got.length === 0 || got.at(-1)?.number === 0 || got.at(-1)?.from === 0;
  };
  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(() => void load(abort.signal, false).catch(() => undefined), filter.value ? 120 : 0);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [filter.value]);
  const shown = act === 'rewind' ? turns.value.filter((t) => t.to < b.messages) : turns.value;
  return (
    <fieldset class="pickturn">
      <legend class="vh">{act === 'fork' ? 'The last turn that the new branch shows' : 'The last turn that stays'}</legend>
      <input type="search" aria-label="Filter prompts" placeholder="Filter prompts" value={filter.value}
        onInput={(e) => { filter.value = e.currentTarget.value; }} />
      <div class="scroll">
        {shown.map((t) => (
          <label key={t.number} class="pt">
            <input type="radio" name="turn" checked={t.number === turn?.number} onChange={() => pick(t)} />
            <span class="no num">{t.number || '–'}</span>
            <T class="ell" s={t.prompt || (t.number ? 'A prompt without text' : 'Before the first prompt')} title />
            <span class="num t3">{timeOf(t.at)}</span>
          </label>
        ))}
        {!ended.value && turns.value.length > 0 && (
          <button class="more" type="button" onClick={() => void load(undefined, true).catch(() => undefined)}>Show earlier turns</button>
        )}
        {shown.length === 0 && !ended.value && <p class="t3 s pad" aria-busy="true">Reading the turns…</p>}
        {shown.length === 0 && ended.value && (
          <p class="t3 s pad">{filter.value ? 'No prompt begins with these words' : 'There is no earlier turn'}</p>
        )}
      </div>
    </fieldset>
  );
}
