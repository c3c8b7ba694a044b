// Writes LICENSES.txt: the licence of every package of which the built page has code. The build leaves comments out.
import { build } from 'esbuild';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';

const { metafile } = await build({
  entryPoints: ['src/main.tsx', 'src/worker.ts', 'css/page.css'], outdir: 'dist', bundle: true, splitting: true, format: 'esm', minify: true,
  jsx: 'automatic', jsxImportSource: 'preact', metafile: true, write: false, logLevel: 'warning',
});
const packages = new Set();
for (const output of Object.values(metafile.outputs)) {
  for (const [file, { bytesInOutput }] of Object.entries(output.inputs)) {
    const name = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1];
    if (name && bytesInOutput > 0) packages.add(name);
  }
}

let text = 'The page has code of these packages.\n';
for (const name of [...packages].sort()) {
  const folder = path.join('node_modules', name);
  const { version, license } = JSON.parse(await readFile(path.join(folder, 'package.json'), 'utf8'));
  const files = (await readdir(folder)).filter((f) => /^(licen[cs]e|notice)(\.\w+)?$/i.test(f)).sort();
  if (files.length === 0) throw new Error(`${name} has no file with its licence`);
  text += `\n${'='.repeat(80)}\n${name} ${version}, ${license}\n`;
  for (const file of files) text += '\n' + (await readFile(path.join(folder, file), 'utf8')).replace(/\r\n/g, '\n').replace(/[ \t]+$/gm, '').trim() + '\n';
}
await writeFile('LICENSES.txt', text);
