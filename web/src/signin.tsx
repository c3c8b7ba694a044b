import { useEffect } from 'preact/hooks';
import { useSignal } from '@preact/signals';

/** The way in for people with an account, where the server has one. */
export function SignIn() {
  const path = useSignal('');
  useEffect(() => {
    fetch('/healthz')
      .then((r) => r.json() as Promise<{ login?: string }>)
      .then((health) => (path.value = health.login ?? ''))
      .catch(() => undefined); // the form is there anyway
  }, []);
  if (!path.value) return null;
  return (
    <p>
      <a class="btn pri" href={path.value}>
        Sign in
      </a>
    </p>
  );
}
