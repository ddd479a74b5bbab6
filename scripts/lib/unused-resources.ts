/**
 * Leaves resources of model vendors' clients (files, images, fine-tuning, administration, ...) out of a bundle. A client makes an object of
 * each of its resources, with those below them, whenever it is made: that is for each model call. No wire uses them: pi-ai's adapters make
 * one request each. In their place are classes without members, so a new use fails at its first call, in the tests of the wires.
 */
import { readFileSync } from "node:fs";
import { dirname, join, resolve, sep } from "node:path";
import type { Plugin } from "esbuild";
import { ROOT } from "./root.ts";

/** Modules that import resources, below `node_modules`, and what they import of them that is used. */
export const USED: Readonly<Record<string, readonly string[]>> = {
  "openai/client.mjs": ["./resources/index.mjs", "./resources/chat/chat.mjs", "./resources/responses/responses.mjs"],
  "openai/resources/index.mjs": ["./chat/index.mjs", "./responses/responses.mjs", "./webhooks.mjs"],
  "@anthropic-ai/sdk/client.mjs": ["./resources/index.mjs", "./resources/beta/beta.mjs"],
  "@anthropic-ai/sdk/resources/index.mjs": ["./beta/beta.mjs"],
  "@anthropic-ai/sdk/resources/beta/beta.mjs": ["./messages/messages.mjs"],
};
const USED_BY = new Map(Object.entries(USED).map(([path, used]) => [join(ROOT, "node_modules", path), used]));
const RESOURCES = `${sep}resources${sep}`;
const EXPORTED_CLASS = /^export class (\w+)/gm;

/** The text of a module that has the classes of this one, all empty. */
export const emptied = (text: string): string => [...text.matchAll(EXPORTED_CLASS)].map(([, name]) => `export class ${name} {}`).join("\n");

export const unusedResources: Plugin = {
  name: "unused-resources",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^\.\// }, ({ path, importer }) => {
      const used = USED_BY.get(importer);
      const file = resolve(dirname(importer), path);
      if (used === undefined || used.includes(path) || !file.includes(RESOURCES)) return undefined;
      return { path: file, namespace: "unused-resource", sideEffects: false };
    });
    onLoad({ filter: /./, namespace: "unused-resource" }, ({ path }) => ({ contents: emptied(readFileSync(path, "utf8")), loader: "js" }));
  },
};
