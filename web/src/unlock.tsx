import { useSignal } from '@preact/signals';
import { get, locked, type Store } from './api';
import { SignIn } from './signin';
import { keep, pasted } from './token';

/** Asks for the address that serve printed. No stored text is on the screen. */
export function Unlock({ onToken }: { onToken: () => void }) {
  const wrong = useSignal('');
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    const text = new FormData(e.target as HTMLFormElement).get('link');
    const token = pasted(String(text ?? ''));
    if (!token) {
      wrong.value = 'This is not the address that serve printed: it has a token at its end.';
      return;
    }
    keep(token);
    try {
      await get<Store>('/store');
      locked.value = false;
      onToken();
    } catch (err) {
      wrong.value = err instanceof Error ? err.message : String(err);
    }
  };
  return (
    <main class="unlock">
      <h1>ctxdir</h1>
      <SignIn />
      <form onSubmit={submit}>
        <label for="link">Paste the link that <code>ctxtool serve</code> printed, or your token</label>
        <input id="link" name="link" autocomplete="off" spellcheck={false} autofocus placeholder="http://127.0.0.1:7433/#token=…" />
        <button class="btn pri">Open</button>
        <p role="alert" class="del">{wrong}</p>
      </form>
    </main>
  );
}
