import { render } from 'preact';
import { signal } from '@preact/signals';
import { askAhead } from './ahead';
import { locked } from './api';
import * as keys from './keys';
import * as live from './live';
import * as route from './route';
import { preload, Shell } from './shell';
import * as store from './store';
import { Unlock } from './unlock';
import * as theme from './theme';
import * as token from './token';

token.takeFromAddress();
theme.start();
route.start();
keys.start();
preload();
if (token.stored()) askAhead();

const known = signal(false);

function App() {
  if (!known.value) return null;
  return locked.value ? <Unlock onToken={() => { live.start(); void store.load(); }} /> : <Shell />;
}

const app = document.getElementById('app');
if (app) render(<App />, app);

const found = await token.ask();
if (found) token.keep(found);
locked.value = !found;
known.value = true;
if (found) {
  live.start();
  void store.load();
}
