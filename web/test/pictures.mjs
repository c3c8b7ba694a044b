// Stored pictures of screens. A sheet has one screen at each width, in both schemes, at an eighth of its size: small enough
// that a time or a font matters little, and large enough that a missing column or colour does not pass. PICTURES=update
// stores new ones. VIEWS=few looks at each width in one scheme: light and dark take turns.
// What is left out comes the next day.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { folder, repository } from './store.mjs';

const stored = path.join(repository, 'web/test/pictures');
const update = process.env.PICTURES === 'update';
export const few = process.env.VIEWS === 'few' && !update;
export const today = Math.floor(Date.now() / (24 * 60 * 60 * 1000));
const schemes = ['light', 'dark'];

const every = [1440, 720, 320].flatMap((width, i) => schemes.map((scheme, j) => ({ width, scheme, place: 2 * i + j, day: (i + j) % 2 })));

/** The views of a screen, each with its place on the sheet. */
export const views = every.filter(({ day }) => !few || day === today % 2);

const tolerance = 0.06; // part of a picture that may differ; it differs by up to 0.035 between runs

export class Pictures {
  constructor(blank) {
    this.blank = blank; // a page of no origin, which draws
    this.shots = [];
  }

  async take(page, { width, scheme, place }) {
    this.shots.push({ name: `${scheme}, ${width} px`, place, png: (await page.screenshot({ animations: 'disabled', caret: 'hide' })).toString('base64') });
  }

  /** Compares what was taken with the stored sheet of a screen, and returns how much of which picture differs. */
  async compare(screen) {
    const file = screen.toLowerCase().replace(/[^a-z]+/g, '-') + '.png';
    const was = path.join(stored, file);
    const shots = this.shots.splice(0);
    const before = existsSync(was) && !update ? readFileSync(was).toString('base64') : '';
    const { sheet, differs } = await this.blank.evaluate(compare, { shots, before, rows: every.length });
    if (update) {
      mkdirSync(stored, { recursive: true });
      writeFileSync(was, Buffer.from(sheet, 'base64'));
      return [];
    }
    if (!before) return [`there is no picture of "${screen}": PICTURES=update stores it`];
    const all = differs.filter((d) => d.part > tolerance).map((d) => `${d.name}: ${(d.part * 100).toFixed(1)} % differ`);
    if (all.length > 0) writeFileSync(path.join(folder('pictures'), file), Buffer.from(sheet, 'base64'));
    return all;
  }
}

/** Draws a sheet, and compares it with another one. It runs in the blank page. */
async function compare({ shots, before, rows }) {
  const scale = 8;
  const far = 6; // of 255, in one colour
  const picture = async (base64) => createImageBitmap(await (await fetch('data:image/png;base64,' + base64)).blob());
  const all = [];
  for (const { name, place, png } of shots) all.push({ name, place, image: await picture(png) });
  const height = Math.floor(all[0].image.height / scale); // of each
  const canvas = new OffscreenCanvas(Math.max(...all.map(({ image }) => Math.floor(image.width / scale))), height * rows);
  const pen = canvas.getContext('2d', { willReadFrequently: true });
  pen.imageSmoothingQuality = 'high';
  const places = all.map(({ name, place, image }) => ({ name, y: place * height, width: Math.floor(image.width / scale), height, image }));
  for (const { y, width, image } of places) pen.drawImage(image, 0, 0, width * scale, height * scale, 0, y, width, height);
  const blob = await canvas.convertToBlob({ type: 'image/png' });
  const sheet = btoa(Array.from(new Uint8Array(await blob.arrayBuffer()), (b) => String.fromCharCode(b)).join(''));
  if (!before) return { sheet, differs: [] };
  const old = await picture(before);
  const under = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
  under.drawImage(old, 0, 0);
  const differs = places.map(({ name, y: top, width }) => {
    if (old.width !== canvas.width || old.height !== canvas.height) return { name, part: 1 };
    const a = pen.getImageData(0, top, width, height).data;
    const b = under.getImageData(0, top, width, height).data;
    let n = 0;
    for (let i = 0; i < a.length; i += 4) if ([0, 1, 2].some((c) => Math.abs(a[i + c] - b[i + c]) > far)) n++;
    return { name, part: n / (width * height) };
  });
  return { sheet, differs };
}
