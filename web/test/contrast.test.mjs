// Every pair of colours that the page uses, in both schemes: WCAG 2.2 wants 4.5 for text, and 3 for the lines of branches.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const css = readFileSync(new URL('../css/tokens.css', import.meta.url), 'utf8');

/** The colours that a rule sets. */
function colours(selector) {
  const at = css.indexOf(selector + ' {');
  assert.ok(at >= 0, `tokens.css has no rule ${selector}`);
  return Object.fromEntries([...css.slice(at).split('}')[0].matchAll(/(--[\w-]+):\s*(#[0-9a-f]{6})\b/g)].map((m) => [m[1], m[2]]));
}

const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

function luminance(hex) {
  const [r, g, b] = channels(hex).map((v) => v / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function ratio(a, b) {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}

/** A colour over a ground, as color-mix does it. */
function mix(colour, ground, share) {
  const under = channels(ground);
  return '#' + channels(colour).map((v, i) => Math.round(v * share + under[i] * (1 - share)).toString(16).padStart(2, '0')).join('');
}

const badge = 'badge'; // letters on 11 % of their own colour
const pairs = [];
const add = (texts, grounds, least) => {
  for (const t of texts) for (const g of grounds) pairs.push([t, g, least]);
};
const syntax = ['--syn-kw', '--syn-str', '--syn-num', '--syn-fn'];
add(['--text', '--text-2', '--text-3', '--accent', '--green', '--red', '--amber'],
  ['--bg', '--bg-side', '--bg-inset', '--bg-hover', '--bg-select', '--bg-pop', '--bg-prompt'], 4.5);
add(['--text', '--text-3', '--syn-com', ...syntax], ['--bg', '--bg-inset', '--green-bg', '--red-bg'], 4.5);
add(['--text', ...syntax], ['--green-mark', '--red-mark'], 4.5);
for (const c of ['--green', '--red', '--amber']) add([c], [c + '-bg'], 4.5);
add(['--on-accent'], ['--accent-fill'], 4.5);
add(['--on-mark'], ['--mark'], 4.5);
for (let n = 1; n <= 8; n++) {
  add([`--r${n}`], ['--bg', '--bg-side', '--bg-select'], 3);
  add([`--r${n}`], [badge], 4.5);
}

const light = colours(':root');
const schemes = { light, dark: { ...light, ...colours(':root[data-theme=dark]') } };

test('there are 124 pairs of colours', () => assert.equal(pairs.length, 124));

for (const [name, scheme] of Object.entries(schemes)) {
  test(`every pair of colours has contrast in the ${name} scheme`, () => {
    const low = [];
    for (const [text, ground, least] of pairs) {
      assert.ok(scheme[text], `tokens.css has no colour ${text}`);
      assert.ok(ground === badge || scheme[ground], `tokens.css has no colour ${ground}`);
      const is = ratio(scheme[text], ground === badge ? mix(scheme[text], scheme['--bg'], 0.11) : scheme[ground]);
      if (is < least) low.push(`${text} on ${ground} is ${is.toFixed(2)}, and needs ${least}`);
    }
    assert.deepEqual(low, []);
  });
}
