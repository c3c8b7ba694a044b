import { useSignal } from '@preact/signals';
import { invitation } from './token';

/** The way in for somebody with an invitation, who chooses a name and gets a token: that is shown this once. */
export function Join({ onToken }: { onToken: (token: string) => void }) {
  const wrong = useSignal('');
  const token = useSignal('');
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    const name = String(new FormData(e.target as HTMLFormElement).get('name') ?? '');
    try {
      const answer = await fetch('/join', {
        method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ invitation: invitation.value, name }),
        cache: 'no-store', redirect: 'error',
      });
      const got = (await answer.json().catch(() => ({}))) as { token?: string; detail?: string };
      if (got.token) token.value = got.token;
      else wrong.value = got.detail ?? answer.statusText;
    } catch {
      wrong.value = 'The server does not answer.';
    }
  };
  return (
    <main class="unlock">
      <h1>ctxdir</h1>
      {token.value ? (
        <form onSubmit={(e) => { e.preventDefault(); onToken(token.value); }}>
          <label for="token">This is your token. Keep it where you keep passwords: it is not shown again.</label>
          <input id="token" readOnly value={token.value} onFocus={(e) => e.currentTarget.select()} />
          <button class="btn pri">Continue</button>
        </form>
      ) : (
        <form onSubmit={submit}>
          <label for="name">You are invited to this server. Choose a name, which others there may see</label>
          <input id="name" name="name" autocomplete="username" spellcheck={false} autofocus required maxLength={64} placeholder="ada" />
          <button class="btn pri">Join</button>
          <p role="alert" class="del">{wrong}</p>
        </form>
      )}
    </main>
  );
}
