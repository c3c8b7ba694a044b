// Lets the conformance suite run on Node 20: it imports fs.globSync, which came with Node 22, and does not call it here.
import fs from "node:fs";
import { register } from "node:module";

const source = 'export * from "node:fs"; export { default } from "node:fs"; export const globSync = undefined;';
const hooks = `
export const resolve = (name, context, next) =>
  name === "fs" && context.parentURL.includes("/conformance/") ? { url: "shim:fs", shortCircuit: true } : next(name, context);
export const load = (url, context, next) =>
  url === "shim:fs" ? { format: "module", source: ${JSON.stringify(source)}, shortCircuit: true } : next(url, context);
`;
if (!fs.globSync) register("data:text/javascript," + encodeURIComponent(hooks));
