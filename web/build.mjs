// Builds the page into dist: one script and chunks that screens load when they open, a worker, a style sheet and the
// document. Names have the hash of their content, so a browser may keep them for ever. The output is committed; the same
// sources give the same bytes.
import { build } from 'esbuild';
import { gzipSync } from 'node:zlib';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';

const limits = { js: 250 << 10, css: 20 << 10, first: 120 << 10 }; // compressed, in bytes

await rm('dist', { recursive: true, force: true });
const result = await build({
  entryPoints: { page: 'src/main.tsx', worker: 'src/worker.ts', style: 'css/page.css' },
  outdir: 'dist', entryNames: '[name]-[hash]', chunkNames: 'part-[hash]', assetNames: '[name]-[hash]',
  bundle: true, splitting: true, format: 'esm', target: 'es2022', minify: true, legalComments: 'none',
  jsx: 'automatic', jsxImportSource: 'preact', metafile: true, write: false, logLevel: 'warning',
});
await mkdir('dist', { recursive: true });
const sizes = { js: 0, css: 0 };
const named = {};
for (const file of result.outputFiles) {
  const name = path.basename(file.path);
  const kind = path.extname(name).slice(1);
  sizes[kind] += gzipSync(file.contents, { level: 9 }).length;
  named[name.replace(/-[^-]*$/, '') + '.' + kind] = name;
  await writeFile(path.join('dist', name), file.contents);
}

// What a screen loads: a chunk and those that it imports at once.
const outputs = Object.fromEntries(Object.entries(result.metafile.outputs).map(([k, v]) => [path.basename(k), v]));
const follow = (name, all) => {
  if (all.has(name)) return all;
  all.add(name);
  for (const i of outputs[name].imports) if (i.kind === 'import-statement') follow(path.basename(i.path), all);
  return all;
};
const chunkOf = (source) => Object.keys(outputs).find((name) => outputs[name].entryPoint === source);
const first = follow(named['page.js'], new Set());
// The document names the chunks of the screens that open most, so that they come at once and not one after the other.
const soon = new Set(first);
for (const source of ['src/library.tsx', 'src/conversation.tsx', 'src/markdown.ts']) follow(chunkOf(source), soon);
const preloads = [...soon].filter((name) => name !== named['page.js']).sort().map((name) => `<link rel="modulepreload" href="/assets/${name}">\n`);
const html = (await readFile('src/page.html', 'utf8'))
  .replace('{style}', named['style.css']).replace('{page}', named['page.js']).replace('{worker}', named['worker.js']).replace('{preloads}\n', preloads.join(''));
await writeFile('dist/index.html', html);
await writeFile('dist/icon.svg', await readFile('src/icon.svg'));
let firstSize = 0;
for (const file of result.outputFiles) if (first.has(path.basename(file.path))) firstSize += gzipSync(file.contents, { level: 9 }).length;

const report = { 'script': [sizes.js, limits.js], 'script of the first screen': [firstSize, limits.first], 'style': [sizes.css, limits.css] };
let failed = false;
for (const [what, [size, limit]] of Object.entries(report)) {
  console.log(`${what}: ${(size / 1024).toFixed(1)} of ${limit / 1024} KiB, compressed`);
  failed ||= size > limit;
}
if (failed) process.exit(1);
